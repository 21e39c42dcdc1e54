# The public names of ohmlearn.dask: `import ohmlearn.dask` reads this list.
from ohmlearn.cluster.cluster_errors import PartitionError as PartitionError
from ohmlearn.cluster.cluster_errors import WorkerError as WorkerError
from ohmlearn.cluster.dask_calls import label as label
from ohmlearn.cluster.dask_calls import sparsify as sparsify
from ohmlearn.cluster.dask_edges import ClusterEdges as ClusterEdges
from ohmlearn.cluster.labelled_nodes import Labelled as Labelled
