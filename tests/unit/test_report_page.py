"""Pages need no other file, escape names, and are written completely or not at all."""

import os
from pathlib import Path

import pytest
from pages import Page

from ohmlearn import __version__
from ohmlearn.report.page import INK, Report, add_legend, figure_to_png, new_figure, style_axes


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
