"""The paper's experiment, in small: its numbers against answers on the stored graph."""

import json
from pathlib import Path

import numpy as np
import pytest
from commands import invoke, refuse, succeed
from pages import Page

from ohmlearn import StreamingSparsifier, gallery, sparsify
from ohmlearn.harmonic import solve_hfs
from ohmlearn.paper import generalization_bound, spectral_extremes
from ohmlearn.paper.experiment_job import draw_labelled, make_classes, run_job, score

N = 605


def job(kind, k, **more):
    return {"kind": kind, "k": k, "n_points": N, "draws": 3, "seed": 0, "epsilon": 0.8, **more}


@pytest.mark.parametrize("k", [20, 200, 225, 400, 600])
def test_streamed_answers_are_those_of_the_stored_graph(k):
    found = run_job(job("stream", k))
    graph, y = gallery.paper_knn(k, n_points=N), make_classes(N)
    assert found["n_edges"] == graph.n_edges
    assert found["n_components"] == graph.components()[0]
    for draw, exact in zip(draw_labelled(N, 3, 0), found["exact"], strict=True):
        expected = score(solve_hfs(graph, draw, y[draw]).f, y, draw)
        assert exact == pytest.approx(expected, abs=1e-12)
    assert found["exact_error"] <= 1e-9
    assert len(found["by_pass"]) == found["exact_passes"]
    assert found["by_pass"][-1] == pytest.approx(np.mean(found["exact"]))
    stored = run_job(job("stored", k))
    assert stored["exact"][0] == pytest.approx(found["exact"][0], abs=1e-12)
    assert stored["n_edges"] == graph.n_edges


def test_refinement_brings_the_answer_nearer_to_the_exact_one():
    found = run_job(job("stream", 225))
    assert max(found["relative_errors"]) < 1e-2
    assert np.mean(found["refined"]) >= np.mean(found["sparse"])
    assert found["sparse_cost"]["peak_bytes"] <= found["refined_cost"]["peak_bytes"]


def test_scheme_of_the_paper_runs_the_same_experiment():
    found = run_job(job("paper", 225))
    assert found["n_edges"] == gallery.paper_knn(225, n_points=N).n_edges
    assert 0 < found["kept_share"] < 1
    assert np.mean(found["sparse"]) > 0.8


def test_ties_count_one_half():
    y = make_classes(4)
    f = np.array([1.0, 1e-9, -1e-9, -1.0])
    assert score(f, y, np.array([0, 3])) == 0.5
    assert score(f[::-1].copy(), y, np.array([1, 2])) == 0.0


def test_labels_are_drawn_from_the_outer_clusters():
    assert [draw.tolist() for draw in draw_labelled(12_100, 1, 0)] == [[1915, 2072, 8191, 11898]]
    outer = round(N * 4050 / 12_100)
    for draw in draw_labelled(N, 20, 3):
        assert len(set(draw.tolist())) == 4
        assert draw[:2].max() < outer
        assert draw[2:].min() >= N - outer
    assert not np.array_equal(draw_labelled(N, 1, 0), draw_labelled(N, 1, 1))


@pytest.mark.slow
def test_command_writes_figures_numbers_and_a_page(tmp_path: Path):
    options = ["--points", str(N), "-k", "225", "-k", "20", "--draws", "2", "--paper-scheme", "all"]
    result = succeed("paper run", *options, "-o", tmp_path / "paper")
    names = ["figure-abc.png", "figure-d.png", "paper.html", "paper.json", "paper.md"]
    assert sorted(path.name for path in (tmp_path / "paper").iterdir()) == names
    assert "[6/6, " in result.stderr  # progress is on stderr
    assert "[6/6, " not in result.stdout

    numbers = json.loads((tmp_path / "paper" / "paper.json").read_text())
    assert [found["k"] for found in numbers["results"]] == [20, 225]
    for found in numbers["results"]:
        assert found["n_edges"] == gallery.paper_knn(found["k"], n_points=N).n_edges
        assert len(found["stream"]["sparse"]) == 2
        assert found["stored"]["cost"]["peak_bytes"] > 1e7

    page = Page(tmp_path / "paper" / "paper.html")
    assert page.faults == []
    tables = (tmp_path / "paper" / "paper.md").read_text(encoding="utf-8")
    for table in page.tables:
        for row in table:
            assert "| " + " | ".join(row) + " |" in tables
    assert page.n_figures == 2
    labels, scheme, costs = page.tables
    assert [row[0] for row in labels] == ["k", "20", "225"]
    assert labels[2][4] == f"{numbers['results'][1]['exact']:.3f}"
    assert [row[0] for row in scheme] == [row[0] for row in costs] == ["k", "20", "225"]
    assert "ohmlearn paper run --neighbors 225 --neighbors 20 --draws 2" in page.text


@pytest.mark.slow
def test_failure_of_a_job_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ohmlearn.paper.experiment.JOB", "ohmlearn.no_such_module")
    result = invoke("paper run --points 300 -k 20 -o", tmp_path)
    assert result.exit_code == 1
    assert "at k = 20 failed: " in result.stderr.splitlines()[-1]
    assert "no_such_module" in result.stderr.splitlines()[-1]


@pytest.fixture
def dense(tmp_path: Path):
    """A dense graph, and a file with its edges."""
    graph = gallery.stochastic_blocks([60, 60], 1.0, bridges=40, random_state=0)
    path = tmp_path / "edges.csv"
    u, v, _ = graph.edges()
    path.write_text("u,v\n" + "".join(f"{a},{b}\n" for a, b in zip(u, v, strict=True)))
    return graph, path


@pytest.mark.parametrize("constants", ["practical", "theory"])
def test_sparsify_is_algorithm_2(dense, tmp_path: Path, constants: str):
    path, out = dense[1], str(tmp_path / "h.ohm")
    options = ["--n-nodes", "120", "--epsilon", "0.9", "--constants", constants, "--seed", "3"]
    result = succeed("paper sparsify", path, *options, "-o", out)
    how = {"n_nodes": 120, "epsilon": 0.9, "constants": constants, "random_state": 3}
    found = StreamingSparsifier.load(out)
    assert found.options.scheme == "paper"
    assert found.snapshot() == sparsify(path, scheme="paper", **how)
    assert ("a tenth of the paper's copies" in result.stderr) == (constants == "practical")


def test_bound_takes_numbers_or_a_graph(dense):
    graph, path = dense
    of_error = ["--error", "0.3", "--labelled", "60", "--gamma", "2", "--epsilon", "0.5"]
    extremes = spectral_extremes(graph, random_state=0)
    low, high = extremes.lambda_1, extremes.lambda_n
    numbers = ["--unlabelled", "60", "--lambda-1", str(low), "--lambda-n", str(high)]
    how = {"gamma": 2.0, "epsilon": 0.5, "lambda_1": low, "lambda_n": high}
    expected = generalization_bound(0.3, 60, 60, **how)
    for given in (numbers, [str(path)]):
        result = succeed("paper bound", *of_error, *given)
        assert result.stdout.endswith(f"{expected}\n")
        assert "u = 60, lambda_1 = " in result.stdout
    found = json.loads(invoke("paper bound", *of_error, *numbers, "--json").stdout)
    assert found["repaired"]["stability"] == expected.repaired.stability
    assert found["lambda_1"] == low


def test_bound_needs_numbers_about_the_graph():
    refuse("paper bound --error 0.3 --labelled 0")
    # The printed form is infinite with three labels.
    numbers = "--labelled 3 --unlabelled 9 --lambda-1 0.001 --lambda-n 2"
    result = succeed(f"paper bound --error 0.3 {numbers} --json")
    assert json.loads(result.stdout)["printed"]["stability"] == "inf"
