# The public names of ohmlearn.estimators: `import ohmlearn.estimators` reads this list.
from ohmlearn.estimators.calibration import AccuracyEstimate as AccuracyEstimate
from ohmlearn.estimators.calibration import Calibration as Calibration
from ohmlearn.estimators.hfs_classifier import HFSClassifier as HFSClassifier
from ohmlearn.estimators.hfs_regressor import HFSRegressor as HFSRegressor
from ohmlearn.estimators.neighbor_advice import NeighborAdvice as NeighborAdvice
from ohmlearn.estimators.neighbor_advice import suggest_neighbors as suggest_neighbors
from ohmlearn.estimators.reasons import Explanation as Explanation
from ohmlearn.estimators.review import Review as Review
from ohmlearn.estimators.state_file import StateFile as StateFile
from ohmlearn.estimators.suggest_labels import Suggestion as Suggestion
