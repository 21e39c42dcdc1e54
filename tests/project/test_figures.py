"""Every figure in a table of the documentation is one of the committed results."""

import doctest
import importlib
import json
import re
import subprocess
import sys
import time

import pytest

from benchmarks import page
from benchmarks.measure import Others, run_child
from benchmarks.results import FOLDER, Results

README = page.ROOT / "README.md"
UNITS = re.compile(r"\d[\d.,]*\s*(?:CPU )?(?:ms|s|seconds|[KMG]i?B|times|%|fold)(?![\w-])")


@pytest.fixture(scope="module")
def results() -> Results:
    return Results()


@pytest.mark.parametrize("path", page.FILLED, ids=lambda path: path.name)
def test_tables_are_those_of_the_results(path, results: Results):
    text = path.read_text(encoding="utf-8")
    assert page.BLOCK.search(text)
    assert text == page.fill(text, results), "run make bench-page to fill the tables again"


def test_readme_has_no_other_figures():
    text = README.read_text(encoding="utf-8")
    assert "<!-- figures: solvers -->" in text
    assert len(UNITS.findall("2.3 s, 155 MiB, 17 times, 4 CPU s, 0.9%")) == 5
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)  # test_documentation.py
    assert UNITS.findall(page.BLOCK.sub("", text)) == []


def test_changed_figure_is_noticed(tmp_path, results: Results):
    for file in FOLDER.glob("*.jsonl"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        if file.name == "solver.jsonl":
            chosen = next(f for f in lines if f.get("solver") == "ohmlearn" and f["threads"] == 1)
            chosen["solve_cpu_s"] *= 3
        (tmp_path / file.name).write_text("".join(json.dumps(f) + "\n" for f in lines))
    text = README.read_text(encoding="utf-8")
    assert page.fill(text, results) != page.fill(text, Results(tmp_path))


def test_every_picture_of_the_pages_is_there():
    pictures = [
        path.parent / picture
        for path in page.PAGES
        for picture in re.findall(r"\]\(([./]*images/.*?)\)", path.read_text(encoding="utf-8"))
    ]
    assert len(pictures) == 7
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)


EXAMPLES = "feature_tables forgetting label_methods machine resistance results scaling run"


@pytest.mark.parametrize("name", [*EXAMPLES.split(), "stream_tables", "trust"])
def test_examples_of_the_benchmarks(name: str):
    assert doctest.testmod(importlib.import_module(f"benchmarks.{name}")).failed == 0


@pytest.mark.parametrize(
    ("statement", "limit", "end", "note"),
    [
        ("pass", 60.0, "ok", ""),
        ("raise ValueError('no such thing')", 60.0, "failed", "ValueError: no such thing"),
        ("while True: pass", 0.6, "unfinished", r"stopped after \d+ (CPU )?s"),
    ],
)
def test_child_ends_are_told(statement: str, limit: float, end: str, note: str):
    *_, last = run_child("timeit", ["-n1", "-r1", statement], limit)
    assert last["end"] == end
    assert re.fullmatch(note, last["note"])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere others are not seen")
def test_others_are_seen():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        others = Others()
        while others.cores() < 0.2:  # or the time limit of a test
            time.sleep(0.1)
        process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the limit is not kept")
def test_child_may_not_take_all_memory():
    arguments = ["-n1", "-r1", "bytearray(2**31)"]
    *_, last = run_child("timeit", arguments, limit=60, memory_gib=0.5)
    assert (last["end"], last["note"]) == ("failed", "MemoryError")
