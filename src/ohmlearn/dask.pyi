# The public names of ohmlearn.dask: `import ohmlearn.dask` reads this list.
from ohmlearn.cluster.cluster_calls import Labelled as Labelled
from ohmlearn.cluster.cluster_errors import PartitionError as PartitionError
from ohmlearn.cluster.cluster_errors import WorkerError as WorkerError
from ohmlearn.cluster.dask_edges import ClusterEdges as ClusterEdges
from ohmlearn.cluster.dask_edges import label as label
from ohmlearn.cluster.dask_edges import sparsify as sparsify
