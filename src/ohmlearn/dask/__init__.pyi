# The public names of ohmlearn.dask: `import ohmlearn.dask` reads this list.
from ohmlearn.dask.api import Labelled as Labelled
from ohmlearn.dask.api import label as label
from ohmlearn.dask.api import sparsify as sparsify
from ohmlearn.dask.edges import ClusterEdges as ClusterEdges
from ohmlearn.dask.partitions import PartitionError as PartitionError
from ohmlearn.dask.tree import WorkerError as WorkerError
