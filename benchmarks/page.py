"""Fill all tables of figures in the documentation from the committed results.

``python -m benchmarks.page`` draws the pictures of docs/benchmarks.md and fills the blocks

    <!-- figures: NAME -->
    ...
    <!-- end of figures -->

of that page and those behind it, of the README, and of docs/defaults.md, choosing.md,
calibration.md and guides/why.md.
A test compares the blocks with the results.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import (
    advice_tables,
    feature_tables,
    forgetting_tables,
    label_tables,
    reason_tables,
    solver_tables,
    stream_tables,
    ten_figures,
    trust_tables,
)
from benchmarks.measure import ROOT
from benchmarks.results import FOLDER, Results

DOCS = ROOT / "docs"
PAGE = DOCS / "benchmarks.md"
PAGES = (PAGE, *sorted((DOCS / "benchmarks").glob("*.md")))
FILLED = (
    ROOT / "README.md",
    *(DOCS / f"{name}.md" for name in ("defaults", "choosing", "calibration", "guides/why")),
    *PAGES,
)
BLOCK = re.compile(r"(<!-- figures: ([^>]*) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def losses(results: Results) -> str:
    """Return a list of the cases where peers are better."""
    lines = [
        f"Solver: {solver_tables.loss_sentence(results)}",
        *label_tables.label_losses(results),
        *label_tables.events_losses(results),
        *stream_tables.stream_losses(results),
        *feature_tables.feature_losses(results),
    ]
    return "\n".join(f"- {line}" for line in lines)


# The function that writes the text of each block, by the name of the block.
BLOCKS: dict[str, Callable[[Results], str]] = {
    "ten": ten_figures.ten_table,
    "machine": stream_tables.machine_table,
    "label cost": label_tables.label_cost,
    "label scale": label_tables.label_scale,
    "all costs": label_tables.cost_table,
    "events": label_tables.events_table,
    "accuracy": label_tables.accuracy,
    "passes": advice_tables.passes_table,
    "alike": advice_tables.alike_sentence,
    "gamma": advice_tables.gamma_table,
    "weights": advice_tables.weights_sentence,
    "neighbours": advice_tables.neighbours_sentence,
    "unequal": advice_tables.unequal_table,
    "unequal digits": advice_tables.unequal_sentence,
    "wrong labels": advice_tables.wrong_table,
    **trust_tables.BLOCKS,
    **forgetting_tables.BLOCKS,
    **feature_tables.BLOCKS,
    **reason_tables.BLOCKS,
    "mean accuracy": label_tables.accuracy_means,
    "large sets": label_tables.large_sets,
    "edges": label_tables.edge_table,
    "solvers": partial(solver_tables.solver_table, graphs=solver_tables.README_GRAPHS),
    "all solvers": solver_tables.solver_table,
    "solver notes": solver_tables.readme_sentences,
    "threads": solver_tables.thread_table,
    "resistances": solver_tables.resistance_table,
    "pass": stream_tables.pass_table,
    "memory": stream_tables.memory_table,
    "hindsight": stream_tables.hindsight_table,
    "streams": stream_tables.stream_table,
    "edge log": stream_tables.edge_log_table,
    "serve ingest": stream_tables.serve_ingest_table,
    "serve lookup": stream_tables.serve_lookup_sentence,
    "serve memory": stream_tables.serve_memory_table,
    "neighbors": stream_tables.neighbors_table,
    "smoothing": stream_tables.smoothing_table,
    "losses": losses,
}


def fill(text: str, results: Results) -> str:
    """Fill the marked blocks of a text with tables and sentences."""

    def put(found: re.Match[str]) -> str:
        begin, name, end = found.groups()
        block = BLOCKS[name]
        try:
            filled = block(results)
        except (LookupError, ValueError, ZeroDivisionError) as error:
            print(f"not filled: {name}: {error!r}", file=sys.stderr)
            filled = "Not measured."
        return f"{begin}\n{filled}\n\n{end}"

    return BLOCK.sub(put, text)


def main() -> None:
    """Fill the pages, or write filled copies of those of the benchmarks elsewhere."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=FOLDER, help="folder with the figures")
    parser.add_argument("--out", type=Path, help="folder for copies of the pages")
    options = parser.parse_args()
    results = Results(options.results)
    places = {path: path for path in FILLED}
    if options.out is not None:
        places = {path: options.out / path.relative_to(DOCS) for path in PAGES}
    for source, target in places.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(fill(source.read_text(encoding="utf-8"), results), encoding="utf-8")
        print(target)
    from benchmarks import plots

    (places[PAGE].parent / "images").mkdir(exist_ok=True)
    for path in plots.draw_all(results, places[PAGE].parent / "images"):
        print(path)


if __name__ == "__main__":
    main()
