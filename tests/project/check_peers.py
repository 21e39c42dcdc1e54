"""Run other packages' own tests on this one: ``python tests/project/check_peers.py``.

The tests are those in the installed packages (PYTHONPATH may name others); nothing is fetched. A
copy of a test file imports the adapters below instead of the package's functions. Each test that
fails must be in FILES with its reason, and each of these must fail. docs/guides/coming-from.md has
what was run.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ohmlearn import Graph, HFSClassifier, LaplacianSolver, effective_resistance, sparsify
from ohmlearn.graph.graph import graph_of

HERE = Path(__file__)
PRIVATE = "calls the private _build_graph and compares with LabelSpreading's own equations"
SYMMETRIC = "its kernel is not symmetric; such kernels are refused, as energies need symmetry"

# Name of a test file, what is replaced in it, and the tests that fail, with reasons.
FILES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "sklearn.semi_supervised.tests.test_label_propagation": (
        {
            "from sklearn.semi_supervised import _label_propagation as label_propagation": (
                "import check_peers as label_propagation"
            )
        },
        {
            "test_label_spreading_closed_form": PRIVATE,
            "test_label_propagation_closed_form": PRIVATE,
            "test_label_propagation_build_graph_normalized": SYMMETRIC,
            "test_predict_sparse_callable_kernel": SYMMETRIC,
            "test_predict_proba": "with one neighbour the new point, halfway between two, has "
            "the class of one of them; scikit-learn counts the point itself",
            "test_convergence_warning": "there is no max_iter: the solver stops at tol",
        },
    ),
    "networkx.algorithms.tests.test_node_classification": (
        {
            "from networkx.algorithms import node_classification": (
                "import check_peers as node_classification"
            )
        },
        {},
    ),
    "networkx.algorithms.tests.test_distance_measures": (
        {
            "nx.resistance_distance(": "resistance_distance(",
            "\nimport networkx as nx": (
                "\nfrom check_peers import resistance_distance\nimport networkx as nx"
            ),
        },
        {
            "test_resistance_distance_neg_weight": "weights must be positive",
            "test_resistance_distance_not_connected": "resistances between components are infinite",
        },
    ),
    "sknetwork.classification.tests.test_diffusion": (
        {"from sknetwork.classification import": "from check_peers import"},
        {
            "test_graph": "wants a probability above 0.99 from one label for each class; ours are "
            "calibrated",
        },
    ),
    "sknetwork.classification.tests.test_propagation": (
        {"from sknetwork.classification import": "from check_peers import"},
        {},
    ),
    "sknetwork.classification.tests.test_pagerank": (
        {"from sknetwork.classification import": "from check_peers import"},
        {},
    ),
    # Of the others in these files, none is of what ohmlearn does.
    "networkit.test.test_centrality": (
        {
            'nk.readGraph("input/looptest1.gml", nk.Format.GML)': "None",  # not in the wheel
            'nk.readGraph("input/looptest2.gml", nk.Format.GML)': "None",
            "nk.centrality.ApproxElectricalCloseness(": "check_peers.ApproxElectricalCloseness(",
            "nk.centrality.ApproxSpanningEdge(": "check_peers.ApproxSpanningEdge(",
            "import unittest": "import unittest, check_peers",
        },
        {},
    ),
    "networkit.test.test_sparsification": (
        {
            'readGraph("input/jazz.graph", Format.METIS)': (  # as large; that one is not there
                "generators.ErdosRenyiGenerator(198, 0.14).generate()"
            ),
            "self.sparsifiers = [": "self.sparsifiers = [check_peers.Sparsifier()]\n\t\t_ = [",
            "import unittest": "import unittest, check_peers",
        },
        {},
    ),
    "pyamg.tests.test_blackbox": (  # the cases that are Laplacians with ground
        {
            "from pyamg.blackbox import solve": "from check_peers import solve",
            "for A, b in self.cases:": "for A, b in self.cases[:2]:",
            "# Special tests": "return",
        },
        {},
    ),
}
CHOSEN = {  # of files with other tests
    "networkx.algorithms.tests.test_distance_measures": "resistance",
    "networkit.test.test_centrality": "ElectricalCloseness or SpanningEdge",
}


# scikit-learn


def _from_kernel(gamma_of_model: float | str, kernel: Any, gamma: float, n_neighbors: int) -> Any:
    """Return what the guide says to use; alpha, max_iter and tol have no use."""
    how: dict[str, Any] = {"gamma": gamma_of_model, "epsilon": None, "random_state": 0}
    if kernel == "knn":
        return HFSClassifier(weights="uniform", n_neighbors=max(1, n_neighbors - 1), **how)
    return HFSClassifier(affinity=kernel, kernel_gamma=None if callable(kernel) else gamma, **how)


def LabelSpreading(kernel: Any = "rbf", gamma: float = 20, n_neighbors: int = 7, **_: Any) -> Any:
    return _from_kernel("auto", kernel, gamma, n_neighbors)


def LabelPropagation(kernel: Any = "rbf", gamma: float = 20, n_neighbors: int = 7, **_: Any) -> Any:
    return _from_kernel(1e-6, kernel, gamma, n_neighbors)


# networkx: our errors are translated into its classes


@contextmanager
def _translated(graph: Any) -> Iterator[None]:
    import networkx as nx

    try:
        yield
    except ValueError as error:
        raise (nx.NetworkXNotImplemented if graph.is_directed() else nx.NetworkXError) from error


def _label(G: Any, label_name: str, **how: Any) -> list[Any]:
    with _translated(G):
        y = {node: data[label_name] for node, data in G.nodes(data=True) if label_name in data}
        model = HFSClassifier(epsilon=None, random_state=0, **how).fit_edges(G, y)
        return list(model.transduction_)


def harmonic_function(G: Any, label_name: str = "label") -> list[Any]:
    return _label(G, label_name, normalization=None, gamma=1e-6)


def local_and_global_consistency(G: Any, alpha: float = 0.99, label_name: str = "label") -> Any:
    return _label(G, label_name, method="restart", gamma=max(alpha, 1e-6) / (1 - min(alpha, 0.999)))


def resistance_distance(
    G: Any, nodeA: Any = None, nodeB: Any = None, weight: Any = None, invert_weight: bool = True
) -> Any:
    with _translated(G):
        graph = Graph.from_networkx(G, weight=weight)
        if weight is not None and invert_weight:  # weights are resistances
            u, v, w = Graph.from_networkx(networkx_inverted(G, weight)).edges()
            graph = Graph.from_edges(u, v, w, n_nodes=graph.n_nodes)
        number = {node: at for at, node in enumerate(G)}
        if not set(number) >= {nodeA, nodeB} - {None}:
            raise ValueError("no such node")
        if not number:
            raise ValueError("no node")
        first = list(G) if nodeA is None else [nodeA]
        second = list(G) if nodeB is None else [nodeB]
        if nodeA is None and nodeB is not None:
            first, second = second, first
        pairs = [(number[a], number[b]) for a in first for b in second]
        found = iter(effective_resistance(graph, pairs, exact=True).tolist())
        rows = {a: {b: next(found) for b in second} for a in first}
    one = rows[first[0]]
    if nodeA is None and nodeB is None:
        return rows
    return one[second[0]] if nodeA is not None and nodeB is not None else one


def networkx_inverted(G: Any, weight: str) -> Any:
    """Return a copy whose weights are conductances."""
    copy = G.copy()
    for *_, data in copy.edges(data=True):
        data["weight"] = 1.0 / data.get(weight, 1.0)
    return copy


# scikit-network


class DiffusionClassifier:
    """Its interface of labels, also for matrices of two kinds of nodes."""

    def __init__(self, n_iter: int = 10, **_: Any) -> None:
        if n_iter < 1:
            raise ValueError("n_iter")

    def fit(
        self, A: Any, labels: Any = None, labels_row: Any = None, labels_col: Any = None
    ) -> DiffusionClassifier:
        self.n_rows, n_columns = A.shape
        is_square = self.n_rows == n_columns and labels_row is None
        graph = Graph.from_scipy((A + A.T) / 2) if is_square else Graph.from_biadjacency(A)
        y = dict(labels or labels_row or {})
        y |= {self.n_rows + node: label for node, label in (labels_col or {}).items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = HFSClassifier(epsilon=None, random_state=0).fit_edges(graph, y)
            self.p = self.model.label_distributions_
        self.labels_ = self.labels_row_ = self.predict()
        self.labels_col_ = self.predict(columns=True)
        return self

    def predict(self, columns: bool = False) -> Any:
        return self.model.transduction_[self._rows(columns)]

    def predict_proba(self, columns: bool = False) -> Any:
        return self.p[self._rows(columns)]

    def _rows(self, columns: bool) -> slice:
        return slice(self.n_rows, None) if columns else slice(self.n_rows)

    transform = predict_proba

    def fit_predict(self, *args: Any, **labels: Any) -> Any:
        return self.fit(*args, **labels).predict()

    def fit_predict_proba(self, *args: Any, **labels: Any) -> Any:
        return self.fit(*args, **labels).predict_proba()

    fit_transform = fit_predict_proba


Propagation = PageRankClassifier = DiffusionClassifier


# NetworKit


class ApproxElectricalCloseness:
    """The diagonal of the pseudo-inverse of the Laplacian, in one block solve."""

    def __init__(self, G: Any, epsilon: float) -> None:
        self.graph, self.epsilon = graph_of(G), epsilon

    def run(self) -> ApproxElectricalCloseness:
        return self

    def getDiagonal(self) -> Any:
        return LaplacianSolver(self.graph).solve(np.eye(self.graph.n_nodes)).diagonal()


class ApproxSpanningEdge:
    """Weight times effective resistance of each edge, in the order of NetworKit's ids of edges."""

    def __init__(self, G: Any, epsilon: float) -> None:
        self.given, self.epsilon = G, epsilon

    def run(self) -> None:
        pairs = np.empty((self.given.numberOfEdges(), 2), np.int64)
        for u, v in self.given.iterEdges():
            pairs[self.given.edgeId(u, v)] = u, v
        how = {"rtol": self.epsilon, "random_state": 0}
        self.r = effective_resistance(graph_of(self.given), pairs, **how)

    def scores(self) -> Any:
        return self.r.tolist()


class Sparsifier:
    def getSparsifiedGraphOfSize(self, G: Any, ratio: float) -> Any:
        import networkit

        wanted = round(ratio * G.numberOfEdges())
        found = networkit.Graph(G.numberOfNodes(), weighted=True)
        for u, v, w in zip(*sparsify(G, max_edges=wanted, random_state=0).edges(), strict=True):
            found.addEdge(int(u), int(v), float(w))
        return found


# pyamg


def solve(A: Any, b: Any, **_: Any) -> Any:
    return LaplacianSolver.from_sddm(A).solve(b)


def run(module: str, replaced: dict[str, str], differences: dict[str, str]) -> bool:
    """Run the tests of a module; return whether the failures are the differences."""
    found = importlib.util.find_spec(module)
    assert found is not None, module
    assert found.origin is not None, module
    code = Path(found.origin).read_text()
    for old, new in replaced.items():
        assert old in code, old
        code = code.replace(old, new)
    with TemporaryDirectory() as folder:
        Path(folder, "test_peer.py").write_text(code)
        Path(folder, "conftest.py").write_text(DTYPE)
        command = [sys.executable, "-m", "pytest", "-q", "-W", "ignore", "--junitxml=out.xml"]
        places = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
        environ = os.environ | {"PYTHONPATH": places}
        command += ["-k", CHOSEN.get(module, ""), "."]
        subprocess.run(command, cwd=folder, env=environ, stdout=subprocess.DEVNULL)
        every = ET.parse(Path(folder, "out.xml")).iter("testcase")
    # scikit-network's files import functions called test_graph, which return graphs.
    of_class = module.startswith("sknetwork")
    cases = [one for one in every if not of_class or ".Test" in one.attrib["classname"]]
    failed = Counter(
        case.attrib["name"].partition("[")[0]
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    )
    skipped = sum(case.find("skipped") is not None for case in cases)
    package = module.partition(".")[0]
    name = {"sklearn": "scikit-learn", "sknetwork": "scikit-network"}.get(package, package)
    print(
        f"{name} {version(name)}, {module.rpartition('.')[2]}: {len(cases)} run, "
        f"{len(cases) - failed.total() - skipped} passed, {skipped} skipped, "
        f"{failed.total()} differ"
    )
    for test, count in failed.items():
        print(f"  {test}: {count}: {differences.get(test, 'NOT EXPLAINED')}")
    for test in differences.keys() - failed.keys():
        print(f"  {test} is explained, but passes")
    return bool(cases) and failed.keys() == differences.keys()


DTYPE = """
import numpy, pytest

@pytest.fixture(params=["float32", "float64"])
def global_dtype(request):
    return numpy.dtype(request.param)
"""

if __name__ == "__main__":
    results = [run(module, *how) for module, how in FILES.items()]
    sys.exit(not all(results))
