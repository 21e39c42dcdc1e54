# The public names of ohmlearn.spark: `import ohmlearn.spark` reads this list.
from ohmlearn.cluster.cluster_errors import PartitionError as PartitionError
from ohmlearn.cluster.cluster_errors import WorkerError as WorkerError
from ohmlearn.cluster.spark_edges import LabelledFrame as LabelledFrame
from ohmlearn.cluster.spark_edges import SparkEdges as SparkEdges
from ohmlearn.cluster.spark_edges import label as label
from ohmlearn.cluster.spark_edges import sparsify as sparsify
