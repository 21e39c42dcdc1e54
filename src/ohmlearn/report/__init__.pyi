# The public names of ohmlearn.report: `import ohmlearn.report` reads this list.
from ohmlearn.report.html_page import Report as Report
