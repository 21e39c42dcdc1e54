# The public names of ohmlearn.engine: `import ohmlearn.engine` reads this list.
from ohmlearn.engine.errors import PartitionError as PartitionError
from ohmlearn.engine.errors import WorkerError as WorkerError
from ohmlearn.engine.labelled import Labelled as Labelled
from ohmlearn.engine.local import LocalEdges as LocalEdges
from ohmlearn.engine.partial import Partial as Partial
from ohmlearn.engine.partial import merge_partials as merge_partials
from ohmlearn.engine.partial import sparsify_partition as sparsify_partition
from ohmlearn.engine.product import PartialProduct as PartialProduct
from ohmlearn.engine.product import add_products as add_products
from ohmlearn.engine.product import multiply_partition as multiply_partition
