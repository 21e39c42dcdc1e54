"""The documentation does what it says: examples, commands, links, and the list of public names."""

import doctest
import re
import shlex
import subprocess
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from ohmlearn.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FENCES = re.compile(r"^```(pycon|console)\n(.*?)^```", re.M | re.S)
README = ROOT / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize(
    "page", [page for page in PAGES if FENCES.search(page.read_text(encoding="utf-8"))], ids=str
)
def test_examples_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run a page from top to bottom in an empty folder, its commands, too."""
    if page.name == "cells.md":
        pytest.importorskip("anndata")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for fence in FENCES.finditer(text):
        line = text.count("\n", 0, fence.start(2))
        if fence[1] == "pycon":
            run_python(fence[2], names, page, line)
        else:
            run_console(fence[2], page, line)


def run_python(code: str, names: dict[str, object], page: Path, line: int) -> None:
    example = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
    runner = doctest.DocTestRunner(optionflags=FLAGS | doctest.REPORT_ONLY_FIRST_FAILURE)
    printed: list[str] = []
    runner.run(example, out=printed.append, clear_globs=False)
    names |= example.globs
    assert runner.summarize(verbose=False).failed == 0, "".join(printed)


def run_console(session: str, page: Path, line: int) -> None:
    """Compare what commands print; numbers may differ, since times and samples do."""
    parts = re.split(r"^\$ (.*)\n", session, flags=re.M)
    assert parts[0] == "", f"{page}:{line}: output before the first command"
    for command, promised in zip(parts[1::2], parts[2::2], strict=True):
        program, *words = shlex.split(command, comments=True)
        if program == "ohmlearn":
            printed = CliRunner().invoke(main, words).output
        else:
            printed = subprocess.run([program, *words], capture_output=True, text=True).stdout
        assert without_numbers(printed) == without_numbers(promised), f"{page}:{line}: {command}"


def without_numbers(text: str) -> list[str]:
    masked = re.sub(r"\d[\d,.]*(e[-+]\d+)?", "#", text)
    return [" ".join(line.split()) for line in masked.strip().splitlines()]


def headings(page: Path) -> set[str]:
    """Return the anchors of a page, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md"), *PAGES], ids=str
)
def test_links_to_files(page: Path):
    text = re.sub(r"^```(?!\{).*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    made = {DOCS / "gallery": DOCS / "examples"}  # made when the site is built
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue  # to other sites: make check-links
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if path.parent in made or path.parent.parent in made:
            continue  # checked by make docs
        assert path.exists(), f"{page}: there is no {target}"
        if anchor:
            assert anchor in headings(path), f"{page}: no heading {target}"


STUB = (ROOT / "src/ohmlearn/__init__.pyi").read_text(encoding="utf-8")
MODULES = {*re.findall(r"^from ohmlearn import (\w+)", STUB, re.M), "client", "cluster", "edges"}
LISTED = re.findall(r"^   (?:(\w+)\.)?(\w+)$", (DOCS / "api.rst").read_text(encoding="utf-8"), re.M)


def import_part(name: str) -> ModuleType:
    """Import a module of ohmlearn; skip a test about Spark where it is not installed."""
    if name == "spark":
        pytest.importorskip("pyspark")
    return import_module(f"ohmlearn.{name}" if name else "ohmlearn")


@pytest.mark.parametrize("name", ["", "spark", *sorted(MODULES - {"errors"})])
def test_reference_has_every_public_name(name: str):
    module = import_part(name)
    assert set(module.__all__) <= {listed for _, listed in LISTED}, "docs/api.rst lacks names"


def test_reference_has_every_name_once():
    names = [listed for home, listed in LISTED if home != "spark"]  # which is like ohmlearn.dask
    names = [listed for listed in names if listed != "sparsify"]  # also in ohmlearn.dask
    assert len(set(names)) == len(names), "docs/api.rst repeats a name"


def test_every_public_name_is_called_settled_or_not():
    told = (DOCS / "stability.md").read_text(encoding="utf-8")
    whole = [line for line in told.splitlines() if "all names in the reference" in line]
    homes = set(re.findall(r"`ohmlearn\.(\w+)`", "".join(whole)))
    assert [f"{h}.{n}" for h, n in LISTED if h not in homes and f"`{n}`" not in told] == []


# Without faiss, or a cluster whose workers fail, there is nothing to show.
@pytest.mark.parametrize(("home", "name"), LISTED)
def test_every_public_name_has_an_example(home: str, name: str):
    if name in ("FaissKnnEdges", "PartitionError", "WorkerError"):
        return
    documented = getattr(import_part(home), name)
    assert ">>> " in documented.__doc__


def test_session_is_one_of_the_documentation():
    """There `test_examples_of_a_page` runs it."""
    (session,) = re.findall(
        r"^```console\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S
    )
    assert BLOCKS
    assert session in (DOCS / "start.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", BLOCKS)
def test_example_prints_its_comments(code: str, capsys: pytest.CaptureFixture[str]):
    exec(compile(code, str(README), "exec"), {})
    promised = re.findall(r"^print\(.*\)  # (.*)$", code, re.M)
    assert len(promised) > 0
    assert capsys.readouterr().out.splitlines() == promised
