# The public names of ohmlearn.dask: `import ohmlearn.dask` reads this list.
from ohmlearn.dask.api import label as label
from ohmlearn.dask.api import sparsify as sparsify
from ohmlearn.dask.edges import ClusterEdges as ClusterEdges
from ohmlearn.engine.errors import PartitionError as PartitionError
from ohmlearn.engine.errors import WorkerError as WorkerError
from ohmlearn.engine.labelled import Labelled as Labelled
