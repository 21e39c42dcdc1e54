"""How objects show themselves: briefly, without reading, and also if they cannot be used."""

import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import Page

import ohmlearn
from ohmlearn import (
    EdgeLog,
    HFSClassifier,
    LaplacianSolver,
    NodeTable,
    StreamingSparsifier,
    certify,
    gallery,
    kernel_edges,
    knn_edges,
    read_edges,
    refine,
    solve_hfs,
    suggest_neighbors,
)

EVIL = "<script>alert(1)</script>&"


def cells(shown: Any) -> list[str]:
    """Return the cells of the table as which an object is shown in a notebook."""
    Path("shown.html").write_text(shown._repr_html_())
    page = Page(Path("shown.html"))
    assert page.faults == []  # all is closed, and nothing is loaded
    return [cell for row in page.tables[0] for cell in row]


@pytest.fixture
def edges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    name = f"{EVIL.replace('/', '')}.csv"
    Path(name).write_text(f"src,dst\nann,{EVIL}\nann,bob\nbob,\n")
    return name


def examples(edges: str) -> dict[str, Any]:
    graph = gallery.complete(30)
    sparsifier = StreamingSparsifier(epsilon=0.9, random_state=0).update(graph)
    points = np.random.default_rng(0).normal(size=(40, 2))
    stream = read_edges(edges, on_bad="skip")
    solver = LaplacianSolver(graph)
    solver.solve(np.eye(30)[:, :2])
    with EdgeLog("log") as log:
        log.append(["ann"], [EVIL])
        live = log.live_edges()
    return {
        "stream": stream,
        "nodes": stream.nodes,
        "sparsifier": sparsifier,
        "certificate": certify(graph, sparsifier, random_state=0),
        "result": solve_hfs(graph, [0, 1], [1.0, -1.0]),
        "refined": refine(graph, sparsifier, [0, 1], [1.0, -1.0]),
        "solver": solver,
        "report": solver.report_,
        "graph": graph,
        "log": log,
        "live": live,
        "knn": knn_edges(points, n_neighbors=3),
        "kernel": kernel_edges(points),
        "advice": suggest_neighbors(points, {i: i % 2 for i in range(10)}, candidates=(3, 5)),
    }


def test_reprs_are_short_and_say_something(edges: str):
    shown = {name: repr(one) for name, one in examples(edges).items()}
    for name, text in shown.items():
        assert len(text) < 250, name
        assert " object at 0x" not in text
        assert "array(" not in text
        assert "\n" not in text
    assert shown["stream"] == (
        f"<EdgeStream: source {edges}, columns u = 'src', v = 'dst', no weights (guessed)>"
    )


def test_html_is_a_plain_table_with_everything_escaped(edges: str):
    found = examples(edges)
    for name, one in found.items():
        assert len(cells(one)) >= 2, name
    list(found["stream"])
    assert {edges, "2", "1"} <= set(cells(found["stream"]))  # edges and bad rows, once read
    assert EVIL in " ".join(cells(found["nodes"]))


def test_showing_a_stream_reads_nothing(edges: str):
    def forbidden() -> Any:
        raise AssertionError("read")
        yield

    stream = read_edges(forbidden, time=True)
    assert repr(stream).startswith("<EdgeStream: source ")
    assert stream._repr_html_()
    pipe = read_edges(iter([([0], [1])]))
    assert "readable once" in repr(pipe)
    assert [batch.u.tolist() for batch in pipe] == [[0]]


def test_objects_that_cannot_be_used_are_shown():
    sparsifier = StreamingSparsifier(random_state=0).update([0], [1])
    sparsifier._is_cut_off = True  # as in a child that was forked during an update
    assert repr(sparsifier).startswith("<StreamingSparsifier: not usable: another thread was")
    assert "not usable" in sparsifier._repr_html_()
    table = NodeTable()
    table.add(["ann"])
    table._is_cut_off = True
    assert repr(table).startswith("<NodeTable: not usable: another thread")
    for kind in (StreamingSparsifier, NodeTable, EdgeLog, type(read_edges([([0], [1])]))):
        half = kind.__new__(kind)  # as a debugger may see it
        assert repr(half).startswith(f"<{kind.__name__}: not usable: ")
        assert half._repr_html_().startswith("<table>")


def test_a_sparsifier_at_work_is_not_waited_for():
    sparsifier = StreamingSparsifier(random_state=0).update([0], [1])
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with sparsifier._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert repr(sparsifier) == "<StreamingSparsifier(): at work>"
    done.set()
    thread.join()
    assert repr(sparsifier) == "<StreamingSparsifier(): 1 edge seen, 1 row, 2 nodes>"


@pytest.mark.slow
def test_modules_are_there_after_import_ohmlearn_which_is_cheap():
    code = """
import sys, ohmlearn
assert "gallery" in dir(ohmlearn) and "paper" in dir(ohmlearn) and "reading" in dir(ohmlearn)
assert not {"numpy", "scipy", "sklearn"} & set(sys.modules)
assert not {"re", "Any", "Path"} & set(dir(ohmlearn))
print(ohmlearn.gallery.path(3), ohmlearn.paper.__name__, ohmlearn.reading.SourceError.__name__)
sys.modules["distributed"] = None
print(hasattr(ohmlearn, "dask"))  # whose extra is missing
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "Graph(n_nodes=3, n_edges=2) ohmlearn.paper SourceError\nFalse\n"


def test_every_module_in_the_stub_exists():
    stub = Path(str(ohmlearn.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
    names = re.findall(r"^from ohmlearn import (\w+)", stub, re.M)
    assert "gallery" in names
    folder = Path(str(ohmlearn.__file__)).parent
    for name in names:
        assert (folder / name).is_dir() or (folder / f"{name}.py").is_file()
        assert name not in ohmlearn.__all__


def test_reviews_and_suggestions_are_tables_in_notebooks():
    y = {node: "<left>" if node < 20 else "right" for node in range(0, 40, 2)}
    model = HFSClassifier(random_state=0).fit_edges(gallery.path(40), y)
    for answer in (model.review(), model.suggest_labels(2)):
        page = answer._repr_html_()
        names = re.findall("<th[^>]*>([^<]*)</th>", page)
        assert names == answer.to_frame().columns.tolist()
        assert page.count("<tr>") == 1 + len(answer.to_frame())
    assert "&lt;left&gt;" in model.review()._repr_html_()
