# The public modules and names of ohmlearn: `import ohmlearn` reads this list.
from ohmlearn import anndata as anndata
from ohmlearn import certificate as certificate
from ohmlearn import dask as dask
from ohmlearn import edge_log as edge_log
from ohmlearn import entities as entities
from ohmlearn import errors as errors
from ohmlearn import estimators as estimators
from ohmlearn import features as features
from ohmlearn import gallery as gallery
from ohmlearn import graph as graph
from ohmlearn import harmonic as harmonic
from ohmlearn import nodes as nodes
from ohmlearn import paper as paper
from ohmlearn import points as points
from ohmlearn import reading as reading
from ohmlearn import report as report
from ohmlearn import resistance as resistance
from ohmlearn import solver as solver
from ohmlearn import sparsifier as sparsifier
from ohmlearn.certificate import Certificate as Certificate
from ohmlearn.certificate import certify as certify
from ohmlearn.edge_log import EdgeLog as EdgeLog
from ohmlearn.estimators import HFSClassifier as HFSClassifier
from ohmlearn.estimators import HFSRegressor as HFSRegressor
from ohmlearn.estimators import StateFile as StateFile
from ohmlearn.estimators import suggest_neighbors as suggest_neighbors
from ohmlearn.features import GraphFeatureClassifier as GraphFeatureClassifier
from ohmlearn.features import GraphFeatureRegressor as GraphFeatureRegressor
from ohmlearn.features import GraphSmoother as GraphSmoother
from ohmlearn.features import NodeFeatures as NodeFeatures
from ohmlearn.features import read_features as read_features
from ohmlearn.graph import Graph as Graph
from ohmlearn.harmonic import HFSResult as HFSResult
from ohmlearn.harmonic import refine as refine
from ohmlearn.harmonic import solve_hfs as solve_hfs
from ohmlearn.nodes import NodeTable as NodeTable
from ohmlearn.points import kernel_edges as kernel_edges
from ohmlearn.points import knn_edges as knn_edges
from ohmlearn.reading import read_edges as read_edges
from ohmlearn.resistance import effective_resistance as effective_resistance
from ohmlearn.solver import LaplacianSolver as LaplacianSolver
from ohmlearn.sparsifier import StreamingSparsifier as StreamingSparsifier
from ohmlearn.sparsifier import sparsify as sparsify

__version__: str

def _attach_names(package: str) -> tuple[object, object, list[str]]: ...
