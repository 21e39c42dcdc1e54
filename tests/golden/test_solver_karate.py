"""Compare with the answers of scipy's sparse LU, stored by make_karate_solutions.py."""

import json
from pathlib import Path

import numpy as np
import pytest

from ohmlearn import Graph, LaplacianSolver

GOLDEN = json.loads(Path(__file__).with_name("karate_solutions.json").read_text())


@pytest.mark.parametrize("method", ["auto", "diagonal", "cholesky", "direct"])
def test_karate_club(method):
    u, v, w = (np.array(column) for column in zip(*GOLDEN["edges"], strict=True))
    labels = np.zeros(34)
    labels[GOLDEN["labelled"]] = 1.0, -1.0

    solver = LaplacianSolver(Graph.from_edges(u, v, w), random_state=0, method=method)
    np.testing.assert_allclose(solver.solve(labels, tol=1e-13), GOLDEN["potential"], atol=1e-11)

    graph = Graph.from_edges(u, v, GOLDEN["gamma"] * w)
    solver = LaplacianSolver(graph, ground=abs(labels), random_state=0, method=method)
    np.testing.assert_allclose(solver.solve(labels, tol=1e-13), GOLDEN["harmonic"], atol=1e-11)
