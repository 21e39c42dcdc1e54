# The public names of ohmlearn: `import ohmlearn` reads this list.
from ohmlearn.certificate import Certificate as Certificate
from ohmlearn.certificate import certify as certify
from ohmlearn.edge_log import EdgeLog as EdgeLog
from ohmlearn.graph import Graph as Graph
from ohmlearn.harmonic import HFSResult as HFSResult
from ohmlearn.harmonic import refine as refine
from ohmlearn.harmonic import solve_hfs as solve_hfs
from ohmlearn.nodes import NodeTable as NodeTable
from ohmlearn.resistance import effective_resistance as effective_resistance
from ohmlearn.semi_supervised import HFSClassifier as HFSClassifier
from ohmlearn.semi_supervised import HFSRegressor as HFSRegressor
from ohmlearn.semi_supervised import suggest_neighbors as suggest_neighbors
from ohmlearn.solver import LaplacianSolver as LaplacianSolver
from ohmlearn.sparsifier import StreamingSparsifier as StreamingSparsifier
from ohmlearn.sparsifier import sparsify as sparsify
from ohmlearn.streams import kernel_edges as kernel_edges
from ohmlearn.streams import knn_edges as knn_edges
from ohmlearn.streams import read_edges as read_edges

__version__: str

def _attach_names(package: str) -> tuple[object, list[str]]: ...
