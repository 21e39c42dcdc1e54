"""Commands on a graph in files, against the library on the same graph."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from ohmlearn import Graph, LaplacianSolver, effective_resistance, gallery
from ohmlearn.cli import main


def invoke(*args: object) -> Result:
    return CliRunner().invoke(main, [*map(str, args), "-q"])


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    """A ring of five named nodes, a chord, and a pair apart."""
    path = tmp_path / "ring.txt"
    path.write_text("# a ring\na b 2\nb c 1\nc d 1\nd e 1\ne a 1\nb e 0.5\nx y 1\nx x 3\n")
    return path


def test_info_counts_in_one_pass(ring: Path):
    result = CliRunner().invoke(main, ["info", str(ring), "--weight-col", "2", "--json"])
    facts = json.loads(result.stdout)
    assert facts == {
        "nodes": 7, "edges": 7, "self_loops": 1, "zero_weights": 0, "components": 2,
        "largest_component": 5, "isolated_nodes": 0, "degree_mean": 2.0, "degree_median": 2.0,
        "degree_max": 3, "weighted_degree_max": 3.5, "weight_min": 0.5,
        "weight_mean": pytest.approx(7.5 / 7), "weight_max": 2.0, "bad_rows": 0,
    }  # fmt: skip


def test_sparsify_and_certify(tmp_path: Path):
    u, v, _ = gallery.complete(300).edges()
    edges, kept = tmp_path / "edges.csv", tmp_path / "h.csv"
    np.savetxt(edges, np.column_stack([u, v]), fmt="%d", delimiter=",", header="u,v", comments="")
    assert invoke("sparsify", edges, "-o", kept, "--epsilon", 0.9, "--seed", 1).exit_code == 0
    found = rows(kept.read_text())
    assert len(found) < 0.4 * len(u)
    assert sum(float(row["w"]) for row in found) == pytest.approx(len(u), rel=0.05)
    result = invoke("certify", edges, kept)
    assert result.exit_code == 0, result.output
    assert "H is within 1 ± 0." in result.output
    facts = json.loads(
        CliRunner().invoke(main, ["certify", str(edges), str(kept), "--json"]).stdout
    )
    h = Graph.from_edges(*(np.array([float(r[k]) for r in found]).astype(t)
                           for k, t in (("u", int), ("v", int), ("w", float))))  # fmt: skip
    ratios = np.linalg.eigvalsh(h.laplacian().toarray())[1:] / 300  # all those of G are 300
    assert facts["lower"] == pytest.approx(ratios[0], rel=0.05)
    assert facts["upper"] == pytest.approx(ratios[-1], rel=0.05)


def test_resistance_of_edges_and_of_pairs(ring: Path, tmp_path: Path):
    graph = Graph.from_edges([0, 1, 2, 3, 4, 1, 5], [1, 2, 3, 4, 0, 4, 6], [2, 1, 1, 1, 1, 0.5, 1])
    result = invoke("resistance", ring, "--weight-col", 2)
    found = {(r["u"], r["v"]): float(r["resistance"]) for r in rows(result.output)}
    expected = effective_resistance(graph, exact=True)
    names = "abcdexy"
    for a, b, value in zip(*graph.edges()[:2], expected, strict=True):
        assert found[names[a], names[b]] == pytest.approx(value)
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("a c\na x\n")
    answers = rows(invoke("resistance", ring, "--weight-col", 2, "--pairs", pairs).output)
    assert float(answers[0]["resistance"]) == pytest.approx(
        effective_resistance(graph, [[0, 2]])[0]
    )
    assert answers[1]["resistance"] == "inf"
    pairs.write_text("a nobody\n")
    result = invoke("resistance", ring, "--pairs", pairs)
    assert result.exit_code == 2
    assert "node 'nobody' is not in the graph" in result.output


def test_solve(ring: Path, tmp_path: Path):
    values = tmp_path / "b.csv"
    values.write_text("node,value\na,1\nc,-1\n")
    result = invoke("solve", ring, values, "--weight-col", 2)
    found = {row["node"]: float(row["value"]) for row in rows(result.output)}
    graph = Graph.from_edges([0, 1, 2, 3, 4, 1, 5], [1, 2, 3, 4, 0, 4, 6], [2, 1, 1, 1, 1, 0.5, 1])
    expected = LaplacianSolver(graph).solve(np.array([1.0, 0, -1.0, 0, 0, 0, 0]))
    np.testing.assert_allclose([found[name] for name in "abcdexy"], expected, atol=1e-9)
    values.write_text("node,value\na,much\n")
    result = invoke("solve", ring, values)
    assert result.exit_code == 2
    assert "a number is needed for each node, got 'much'" in result.output


def test_a_pipe_cannot_be_certified(ring: Path):
    result = CliRunner().invoke(main, ["certify", "-", str(ring), "-q"], input="a,b\n")
    assert result.exit_code == 2
    assert "several times: give a file, not a pipe" in result.output
