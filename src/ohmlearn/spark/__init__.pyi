# The public names of ohmlearn.spark: `import ohmlearn.spark` reads this list.
from ohmlearn.engine.errors import PartitionError as PartitionError
from ohmlearn.engine.errors import WorkerError as WorkerError
from ohmlearn.spark.api import label as label
from ohmlearn.spark.api import sparsify as sparsify
from ohmlearn.spark.edges import SparkEdges as SparkEdges
from ohmlearn.spark.frames import LabelledFrame as LabelledFrame
