"""HTML pages that show a result with text, tables and pictures, and load no other file.

Pictures are matplotlib figures, embedded in the page as SVG. Whatever they draw in `INK` gets the
colour of the page's text, so that the same picture works in light mode, dark mode and print.
"""

import html
import io
import os
import platform
import re
import shlex
import warnings
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

from ohmlearn import __version__
from ohmlearn._arrays_file import write_whole
from ohmlearn._display import COLOURS as COLOURS
from ohmlearn._display import INK as INK
from ohmlearn.checks.parameters import require_extra

STYLE = """
:root { color-scheme: light dark; --ink: #1b2a38; --soft: #5d6b78; --line: #d5dbe1;
  --ground: #ffffff; --shade: #f3f6f8; --accent: #2d6da8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ee; --soft: #9eabb7; --line: #36414c;
  --ground: #12171c; --shade: #1c242c; --accent: #7db8ea; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.2rem 3rem; color: var(--ink);
  background: var(--ground); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .4rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .5rem; padding-top: .7rem;
  border-top: 1px solid var(--line); }
p { margin: .5rem 0; max-width: 46rem; }
.lead { color: var(--soft); font-size: 1.05rem; }
figure { margin: 1.2rem 0; break-inside: avoid; }
figure svg { display: block; width: 100%; height: auto; color: var(--ink); }
figure svg text { font-family: inherit !important; }
figcaption, caption { color: var(--soft); font-size: .9rem; text-align: left; }
figcaption { margin-top: .3rem; max-width: 46rem; }
caption { padding-bottom: .4rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; border-bottom: 2px solid var(--line); vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; padding-left: .1rem; }
.text { text-align: left; white-space: normal; }
tbody tr:hover { background: var(--shade); }
pre { background: var(--shade); padding: .8rem 1rem; border-radius: .4rem;
  white-space: pre-wrap; overflow-wrap: anywhere;
  font: .85rem/1.5 ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; }
.alarm { border-left: .3rem solid #d1453b; background: var(--shade); padding: .6rem 1rem;
  border-radius: .2rem; }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .85rem;
  border-top: 1px solid var(--line); padding-top: .7rem; }
@media print { body { max-width: none; padding: 0; font-size: 10.5pt; } .wide { overflow: visible; }
  table { font-size: 8.5pt; break-inside: avoid; }
  h2 { break-after: avoid; }
  th, td { padding: .15rem .4rem; } }
"""


class Report:
    """A page that is built from top to bottom and written as one file.

    Parameters
    ----------
    title : str
    lead : str
        One or two sentences below the title that state the result.

    Examples
    --------
    >>> from ohmlearn.report import Report
    >>> report = Report("Resistors").add_text("Two in parallel.")
    >>> report = report.add_table(["ohms", "amperes"], [[1, 2.0], [2, 1.0]])
    >>> "<td>2</td>" in report.to_html()
    True
    """

    def __init__(self, title: str, lead: str = "") -> None:
        self.title = title
        self.lead = lead
        self._parts: list[str] = []
        self._n_figures = 0

    def add_heading(self, text: str) -> Self:
        """Start a section."""
        self._parts.append(f"<h2>{html.escape(text)}</h2>")
        return self

    def add_text(self, text: str) -> Self:
        """Add a paragraph."""
        self._parts.append(f"<p>{html.escape(text)}</p>")
        return self

    def add_alarm(self, text: str) -> Self:
        """Add a paragraph that must not be overlooked."""
        self._parts.append(f'<p class="alarm" role="alert">{html.escape(text)}</p>')
        return self

    def add_code(self, text: str) -> Self:
        """Add preformatted lines, such as the output of a command."""
        self._parts.append(f"<pre>{html.escape(text)}</pre>")
        return self

    def add_table(
        self,
        header: Sequence[str],
        rows: Iterable[Sequence[Any]],
        caption: str = "",
        text_columns: Collection[int] = (),
    ) -> Self:
        """Add a table; cells are converted with ``str``, so format numbers first.

        Columns are aligned to the right, except the first one and `text_columns`.
        """
        style = [' class="text"' if at in text_columns else "" for at in range(len(header))]

        def join_cells(cells: Sequence[Any], tag: str, scope: str = "") -> str:
            marked = zip(map(html.escape, map(str, cells)), style, strict=True)
            return "".join(f"<{tag}{scope}{kind}>{text}</{tag}>" for text, kind in marked)

        head = join_cells(header, "th", ' scope="col"')
        body = "\n".join(f"<tr>{join_cells(row, 'td')}</tr>" for row in rows)
        title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
        self._parts.append(
            f'<div class="wide"><table>{title}<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{body}\n</tbody></table></div>"
        )
        return self

    def add_figure(self, figure: Any, caption: str) -> Self:
        """Add a matplotlib figure; the caption is also its alternative text."""
        self._n_figures += 1
        svg = figure_to_svg(figure, prefix=f"f{self._n_figures}-")
        text = html.escape(caption, quote=True)
        svg = svg.replace("<svg ", f'<svg role="img" aria-label="{text}" ', 1)
        self._parts.append(f"<figure>{svg}<figcaption>{text}</figcaption></figure>")
        return self

    def add_command(self, command: str) -> Self:
        """Add the command that repeats the run, and the versions it ran with."""
        self.add_heading("How to reproduce this page").add_code(wrap_command(command))
        return self.add_text(f"Made with {describe_versions()}.")

    def to_html(self) -> str:
        """Return the page as HTML."""
        title = html.escape(self.title)
        lead = f'<p class="lead">{html.escape(self.lead)}</p>' if self.lead else ""
        body = "\n".join(self._parts)
        return (
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
            f"<header><h1>{title}</h1>{lead}</header>\n<main>\n{body}\n</main>\n"
            f"<footer>ohmlearn {__version__}</footer>\n</body>\n</html>\n"
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page completely or not at all.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from ohmlearn.report import Report
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Report("Empty").write(f"{folder}/page.html")
        ...     pathlib.Path(f"{folder}/page.html").read_text(encoding="utf-8")[:15]
        '<!DOCTYPE html>'
        """
        write_whole(path, self.to_html().encode("utf-8"))


def wrap_command(command: str, width: int = 78) -> str:
    r"""Return a command in lines that a shell reads as one; an option keeps its value beside it."""
    parts: list[str] = []
    for word in map(shlex.quote, shlex.split(command)):
        if parts and not word.startswith("-") and parts[-1].startswith("--"):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    lines = [""]
    for part in parts:
        if lines[-1].strip() and len(lines[-1]) + len(part) + 3 > width:  # with a blank and " \\"
            lines.append("   ")
        lines[-1] += f" {part}" if lines[-1] else part
    return " \\\n".join(lines)


def describe_versions() -> str:
    """Return the versions on which a result may depend, and the kind of machine."""
    found = [f"ohmlearn {__version__}", f"Python {platform.python_version()}"]
    for package in ("numpy", "scipy", "scikit-learn", "matplotlib"):
        with suppress(PackageNotFoundError):
            found.append(f"{package} {version(package)}")
    return ", ".join(found) + f"; {platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def new_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib figure, without pyplot's windows and global state."""
    require_extra("matplotlib", "plot")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def style_axes(axes: Any, title: str = "", xlabel: str = "", ylabel: str = "") -> None:
    """Draw frame, ticks and text in `INK`, with a faint grid and no box."""
    axes.set_title(title, color=INK, loc="left", fontsize=11)
    axes.set_xlabel(xlabel, color=INK)
    axes.set_ylabel(ylabel, color=INK)
    axes.tick_params(colors=INK, which="both")
    axes.set_facecolor("none")
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)
    axes.grid(True, color=INK, alpha=0.12, linewidth=0.8)
    axes.set_axisbelow(True)


def add_legend(axes: Any, **options: Any) -> None:
    """Add a legend without a frame, in `INK`."""
    axes.legend(frameon=False, labelcolor=INK, **options)


def figure_to_svg(figure: Any, prefix: str = "") -> str:
    """Return a figure as an <svg> element whose ids start with `prefix`."""
    import matplotlib

    written = io.StringIO()
    # Keep text as text, and make ids and dates the same in every run.
    with (
        matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ohmlearn"}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser has other fonts
        figure.savefig(
            written, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    svg = written.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (width|height)="[^"]*"', "", svg, count=2)  # of the whole
    svg = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{prefix}", svg)
    return svg.replace(INK, "currentColor").strip()


def figure_to_png(figure: Any, path: str | os.PathLike[str], dpi: int = 110) -> None:
    """Write a figure as a PNG on white, completely or not at all."""
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=dpi, facecolor="white", metadata={"Software": None})
    write_whole(path, written.getvalue())
