"""Numbers far out of range are refused with a message about the number."""

import math
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from refuses import refuses

from ohmlearn import (
    Graph,
    HFSClassifier,
    HFSRegressor,
    LaplacianSolver,
    StreamingSparsifier,
    certify,
    effective_resistance,
    gallery,
    kernel_edges,
    knn_edges,
    refine,
    solve_hfs,
    sparsify,
    suggest_neighbors,
)
from ohmlearn.cli import main
from ohmlearn.paper import stability_beta

GRID = gallery.grid2d(4, 4)
X = np.random.default_rng(0).normal(size=(30, 2))
Y = np.where(np.arange(30) < 6, np.arange(30) % 2, -1)
HUGE = 10**400  # too large for a float
LABELS = ([0, 15], [0.0, 1.0])


def fit(kind, **parameters):
    return kind(**parameters).fit(X, Y)


CALLS = {
    "sparsify": lambda **p: sparsify(GRID, **p),
    "StreamingSparsifier": lambda **p: StreamingSparsifier(**p).update([0], [1]),
    "certify": lambda **p: certify(GRID, GRID, **p),
    "solve_hfs": lambda **p: solve_hfs(GRID, *LABELS, **p),
    "refine": lambda **p: refine(GRID, GRID, *LABELS, **p),
    "LaplacianSolver": lambda n_jobs: LaplacianSolver(GRID, n_jobs=n_jobs),
    "solve": lambda **p: LaplacianSolver(GRID).solve(np.zeros(16), **p),
    "effective_resistance": lambda **p: effective_resistance(GRID, **p),
    "HFSClassifier": lambda **p: fit(HFSClassifier, **p),
    "HFSRegressor": lambda **p: fit(HFSRegressor, **p),
    "knn_edges": lambda **p: list(knn_edges(X, **{"n_neighbors": 3, **p})),
    "kernel_edges": lambda **p: list(kernel_edges(X, **p)),
    "suggest_neighbors": lambda **p: suggest_neighbors(X, Y, **p),
    "stability_beta": lambda **p: stability_beta(**{"n_labelled": 9, "lambda_1": 1.0, **p}),
}


FITS = "HFSClassifier", "HFSRegressor"
SOLVERS = "sparsify", "StreamingSparsifier", "certify", "solve_hfs", "refine", "LaplacianSolver"
BUILT = "effective_resistance", *FITS, "knn_edges", "kernel_edges", "suggest_neighbors"
NOT_GAMMA = [1e308, 5e-324, math.nan, math.inf, HUGE]
LARGEST = 2**63 - 1
# Calls, a parameter of them, and values that must not reach a kernel.
OUT_OF_RANGE = [
    (SOLVERS + BUILT, "n_jobs", [4097, 2**31, 2**40, 2**63, HUGE]),
    (SOLVERS[:2], "max_edges", [2**53 + 1, LARGEST, 2**63, 2**64, HUGE]),
    (FITS, "max_edges", [2**63, HUGE]),
    (("solve_hfs", "refine", "kernel_edges", "stability_beta"), "gamma",
     [*NOT_GAMMA, 1e101, 1e-101, -1.0, -HUGE]),
    (FITS, "gamma", NOT_GAMMA),
    (FITS, "kernel_gamma", NOT_GAMMA),
    (("sparsify",), "epsilon", [1e308, math.nan, math.inf, HUGE, -HUGE]),
    (("effective_resistance",), "rtol", [1e308, math.nan, math.inf, HUGE, -HUGE]),
    (("certify",), "eta", [1e308, math.nan, math.inf, HUGE, -HUGE]),
    (("certify",), "confidence", [1e308, math.nan, math.inf, HUGE, -HUGE]),
    (("solve_hfs", "refine", "solve"), "tol", [1e308, math.nan, math.inf, HUGE, -HUGE]),
    (("certify",), "n_starts", [1001, 2**63, HUGE]),
    (("certify",), "max_passes", [2**63, HUGE]),
    (("suggest_neighbors",), "n_splits", [10_001, 2**63, HUGE]),
    (("refine",), "passes", [2**63, HUGE]),
    (("knn_edges", "kernel_edges"), "block", [2**63, HUGE]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "parameter", "values"),
    [(name, parameter, values) for names, parameter, values in OUT_OF_RANGE for name in names],
    ids=str,
)
def test_numbers_out_of_range(name, parameter, values):
    for value in values:
        with refuses(parameter=parameter, value=value):
            CALLS[name](**{parameter: value})


def test_the_largest_budgets_work():
    assert sparsify(GRID, max_edges=2**53).n_edges == 24
    assert sparsify(GRID, n_nodes=16, memory=2**60).n_edges == 24
    for value in ("9" * 400 + "TB", "2000000000GB", "1048577TiB", 2**60 + 1, HUGE):
        with refuses(parameter="memory"):
            sparsify(GRID, n_nodes=16, memory=value)


@pytest.mark.parametrize("value", [1e100, 1e-100])
def test_the_largest_and_smallest_gamma_work(value):
    scores = solve_hfs(GRID, *LABELS, gamma=value, normalization=None).f
    expected = 0.5 if value > 1 else [0.0, 1.0]
    np.testing.assert_allclose(scores[[0, 15]], expected, atol=1e-9)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-9, 1 - 1e-12])
def test_the_paper_needs_a_moderate_epsilon(epsilon):
    with refuses(parameter="epsilon", value=epsilon):
        sparsify(GRID, epsilon=epsilon, scheme="paper")


@pytest.mark.parametrize("value", [2**31, 2**63, HUGE])
def test_nodes(value):
    for call in (CALLS["sparsify"], CALLS["StreamingSparsifier"]):
        with refuses(parameter="n_nodes"):
            call(n_nodes=value)
    with refuses(parameter="n_nodes"):
        Graph.from_edges([0], [1], n_nodes=value)


@pytest.mark.slow
def test_no_memory_for_all_nodes():
    code = """
import resource
from ohmlearn import Graph, StreamingSparsifier
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
for call in (
    lambda: StreamingSparsifier(n_nodes=2**30),
    lambda: Graph.from_edges([0], [1], n_nodes=2**31 - 1),
):
    try:
        call()
    except MemoryError as error:
        print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "there is not enough memory for 1073741824 nodes",
        "there is not enough memory for a graph of 2147483647 nodes and 1 edges",
    ]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["label", "--threads", 2**40], "--threads must be at most 4096 threads, got"),
        (["label", "--gamma", 1e308], "or a number in [1e-100, 1e+100], got 1e+308"),
        (["label", "--cluster", "local:99999999"], "from 1 to 1024"),
        (["sparsify", "--max-edges", 2**63], "--max-edges must be at most 9007199254740992, got"),
        (["sparsify", "--seed", 2**64], "'--seed': 18446744073709551616 is not in the range"),
        (["sparsify", "--epsilon", "nan"], "'--epsilon': nan is not a number"),
        (["info", "--from", 2**63], "has no column 9223372036854775808, only 2 of them"),
    ],
)
def test_options_of_commands(tmp_path, args, message):
    edges, labels = tmp_path / "edges.csv", tmp_path / "labels.csv"
    edges.write_text("u,v\n1,2\n2,3\n")
    labels.write_text("node,label\n1,a\n3,b\n")
    more = ["--labels", str(labels)] if args[0] == "label" else []
    result = CliRunner().invoke(main, [args[0], str(edges), *more, *map(str, args[1:])])
    assert result.exit_code == 2, result.output
    assert message in result.stderr
