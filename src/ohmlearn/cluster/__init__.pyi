# The public names of ohmlearn.cluster: `import ohmlearn.cluster` reads this list.
from ohmlearn.cluster.cluster_calls import Labelled as Labelled
from ohmlearn.cluster.cluster_errors import PartitionError as PartitionError
from ohmlearn.cluster.cluster_errors import WorkerError as WorkerError
from ohmlearn.cluster.partition_product import PartialProduct as PartialProduct
from ohmlearn.cluster.partition_product import add_products as add_products
from ohmlearn.cluster.partition_product import multiply_partition as multiply_partition
from ohmlearn.cluster.partition_sparsifier import Partial as Partial
from ohmlearn.cluster.partition_sparsifier import merge_partials as merge_partials
from ohmlearn.cluster.partition_sparsifier import sparsify_partition as sparsify_partition
from ohmlearn.cluster.partitioned_edges import LocalEdges as LocalEdges
