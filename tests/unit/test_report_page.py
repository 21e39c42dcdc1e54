"""Pages need no other file, escape names, and are written completely or not at all."""

import html
import os
import shlex
import warnings
from pathlib import Path

import numpy as np
import pytest
from pages import Page

from ohmlearn import HFSClassifier, __version__, gallery, read_edges
from ohmlearn.estimators.label_columns import AnswerTable
from ohmlearn.report.html_page import (
    INK,
    Report,
    add_legend,
    figure_to_png,
    figure_to_svg,
    new_figure,
    style_axes,
    wrap_command,
)
from ohmlearn.report.label_report import _add_suggestions, lay_out


def draw():
    figure = new_figure(4, 2)
    axes = figure.subplots()
    style_axes(axes, "A title", "steps", "volts")
    axes.plot([0, 1, 2], [0, 1, 4], marker="o", label="seen")
    axes.scatter([0, 1], [1, 2], rasterized=True)
    add_legend(axes)
    return figure


@pytest.fixture
def page(tmp_path: Path) -> Page:
    report = Report("Tea & <biscuits>", "What was found.")
    report.add_heading("One").add_text("a < b").add_code("x = 1 & 2\n  y")
    report.add_table(["k", "value"], [[1, "0.50"], [2, "<b>"]], "A caption")
    report.add_figure(draw(), 'First "picture"').add_figure(draw(), "Second picture")
    report.add_command("ohmlearn demo -o out")
    report.write(tmp_path / "page.html")
    return Page(tmp_path / "page.html")


def test_page_loads_nothing_and_is_well_formed(page: Page):
    assert page.faults == []
    assert page.n_figures == 2


def test_words_and_tables_come_through_as_they_were(page: Page):
    assert page.tables == [[["k", "value"], ["1", "0.50"], ["2", "<b>"]]]
    for words in ("Tea & <biscuits>", "a < b", "x = 1 & 2\n  y", 'First "picture"', "A title"):
        assert words in page.text
    assert f"ohmlearn {__version__}" in page.text
    assert "ohmlearn demo -o out" in page.text


def test_the_parser_sees_faults(tmp_path: Path):
    path = tmp_path / "bad.html"
    path.write_text(
        '<p id="a"><img src="http://x/y.png"><b id="a"></p><svg clip="url(#none)"/>'
        "<script></script>"
    )
    faults = " ".join(Page(path).faults)
    for fault in ("img loads http://x/y.png", "id a twice", "no id none", "<script>", "</p>"):
        assert fault in faults


def test_ink_follows_the_page_and_same_figures_give_the_same_page():
    first, again = (Report("x").add_figure(draw(), "y").to_html() for _ in range(2))
    assert first == again
    assert INK not in first.split("</style>")[1]
    assert "currentColor" in first


def test_writing_leaves_no_trace_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "page.html"
    Report("old").write(path)

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        Report("new").write(path)
    assert "<h1>old</h1>" in path.read_text(encoding="utf-8")
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]


def test_pictures_are_written_as_png(tmp_path: Path):
    figure_to_png(draw(), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_command_is_wrapped_at_options_and_a_shell_reads_it_as_one():
    words = ["ohmlearn", "label", "my edges.csv", *(f"day{day}.csv" for day in range(20))]
    words += ["--labels", "known labels.csv", "--seed", "0", "--since", "-1", "--note", "it's\na"]
    command = shlex.join(words)
    lines = wrap_command(command)
    assert shlex.split(lines.replace("\\\n", " ")) == words
    assert max(map(len, lines.splitlines())) <= 78
    assert "--labels 'known labels.csv'" in lines
    assert lines in html.unescape(Report("x").add_command(command).to_html())
    assert "white-space: pre-wrap" in Report("x").to_html()  # what is still too long


def suggestions(edges, y):
    """Return the text and the tables about the nodes to label next."""
    report = Report("x")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = HFSClassifier(random_state=0).fit_edges(read_edges(edges), y)
        assert model.nodes_ is not None
        _add_suggestions(
            report, model.kept_, model.answer_, model.nodes_, AnswerTable(model.answer_)
        )
    return report.to_html().partition("<main>")[2]


def test_ties_are_a_sentence_and_no_table():
    pairs = [(f"a{i}", f"b{i}") for i in range(50)]
    u, v = (np.array(side, dtype=object) for side in zip(*pairs, strict=True))
    found = suggestions((u, v), {"a0": "x", "b0": "y"})
    assert "49 components of 2 nodes have no label." in found
    assert "<table>" not in found
    # A larger component comes first, and is listed.
    path = [f"p{i}" for i in range(10)]
    u, v = np.append(u, path[:-1]), np.append(v, path[1:])
    found = suggestions((u, v), {"a0": "x", "b0": "y"})
    assert found.count("<tr>") == 2  # the heading, and this one
    assert "covers a component of 10 nodes without a label" in found
    assert "49 components of 2 nodes have no label." in found


def test_nodes_that_look_alike_are_a_sentence_and_no_table():
    leaves = np.array([f"leaf{i}" for i in range(60)], dtype=object)
    u = np.append(leaves, ["hub"])
    v = np.append(np.full(60, "hub", dtype=object), ["end"])
    found = suggestions((u, v), {"leaf0": "x", "leaf1": "y", "end": "x"})
    assert "best nodes are alike, such as leaf" in found
    assert found.count("leaf") < 5


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_smallest_graphs_have_a_place_for_each_node(n: int):
    nodes, places = lay_out(gallery.path(n))
    assert nodes.tolist() == list(range(n))
    assert np.isfinite(places).all()


def test_neighbours_have_places_together():
    _, places = lay_out(gallery.path(5))
    assert (np.diff(places[:, 0] * np.sign(places[-1, 0])) > 0).all()


def test_letters_that_matplotlib_cannot_draw_stay_text():
    figure = new_figure(4, 2)
    figure.subplots().set_title("日本語")
    assert "日本語" in figure_to_svg(figure)  # without a warning, which would be an error
