"""How many edges a command may keep, if the memory of the whole command is limited.

The peak is either while edges are taken in and the sparsifier is resampled, or while equations are
solved for the classes. The constants are measured: the peaks of commands with 10^5 to 10^6 nodes,
2 to 58 classes and 2 to 12 edges kept for each node are 2 to 25 % less than these sums.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import click

from ohmlearn.checks.parameters import check_memory
from ohmlearn.cli.options import Options
from ohmlearn.edges import Edges
from ohmlearn.estimators.problem import most_left_out
from ohmlearn.sparsifier.sparsifier_options import NODE_BYTES, ROW_BYTES, TIME_BYTES

START = 275 << 20  # Python, its packages, and batches of edges
PAGE = 120 << 20  # of --report: pictures
NODE_WHEN_SOLVING = 500  # bytes for each node, and for each node and class
CLASS_IN_MEMORY, CLASS_IN_PASSES = 110, 100
NODE_OF_CERTIFICATE = 600
EDGE_WHEN_SOLVING = 240  # bytes for each edge kept, if the solver needs a factor
STRING = 130  # bytes for an id that is text, besides its characters, which are there twice


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What the memory of a command depends on."""

    n_nodes: int
    n_classes: int = 0  # 0 for a command that does not solve for labels
    passes: int = 1
    id_length: float | None = None  # mean number of characters of ids; None if they are integers
    has_times: bool = False  # whether the sparsifier keeps times
    has_page: bool = False  # whether a page is made

    def memory_for(self, n_edges: int) -> int:
        """Return the bytes that the command takes if it keeps so many edges."""
        return max(fixed + rate * n_edges for fixed, rate in self._phases())

    def edges_within(self, memory: int | str) -> int:
        """Return how many edges may be kept, at least two for each node; refuse too little."""
        limit = check_memory("memory", memory)
        least = 2 * self.n_nodes
        n_edges = min((limit - fixed) // rate for fixed, rate in self._phases())
        if n_edges >= least:
            return n_edges
        what = f"{self.n_nodes:,} nodes"
        if self.n_classes > 0:
            what += f" and {self.n_classes} classes"
        remedy = f"give at least {_megabytes(self.memory_for(least))}"
        if self.passes > 1 and self.n_classes > 0:
            fewer = replace(self, passes=1).memory_for(least)
            remedy += f", or {_megabytes(fewer)} with --passes 1"
        raise click.UsageError(f"--memory {memory} is too little for {what}; {remedy}")

    def _phases(self) -> list[tuple[int, int]]:
        """Return for each phase the bytes that it needs anyway, and for each edge kept."""
        n, length = self.n_nodes, self.id_length
        ids = 0 if length is None else round(n * (STRING + 2 * length))
        phases = [(START + ids + n * NODE_BYTES, ROW_BYTES + TIME_BYTES * self.has_times)]
        if self.n_classes > 0:
            # One more column, whose solution makes the scores sum to zero.
            rate = CLASS_IN_MEMORY if self.passes == 1 else CLASS_IN_PASSES
            fixed = START + ids + n * (NODE_WHEN_SOLVING + rate * (self.n_classes + 1))
            if self.passes > 1:
                fixed += 4 * n * most_left_out(n)
            phases.append((fixed, EDGE_WHEN_SOLVING))
        if self.has_page:
            phases = [(fixed + PAGE + n * NODE_OF_CERTIFICATE, rate) for fixed, rate in phases]
        return phases


def within_memory(
    options: Options,
    stream: Edges | None,
    passes: int = 1,
    classes: Iterable[Any] = (),
    labelled: Iterable[Any] = (),
) -> dict[str, Any]:
    """Return the options with the number of edges that --memory allows, if it is given.

    The first ids of the stream show how long ids are; if they are not known before it is read,
    those of `labelled` nodes do.
    """
    if options.get("memory") is None:
        return options
    if options["n_nodes"] is None:
        raise click.UsageError("--memory needs --n-nodes, because the nodes use part of it")
    if options["max_edges"] is not None:
        raise click.UsageError("--memory and --max-edges limit the same edges; give one of them")
    names = [str(name) for name in (stream.first_ids() if stream else []) or labelled]
    are_integers = all(name.strip().lstrip("-").isdecimal() for name in names)
    budget = Budget(
        n_nodes=options["n_nodes"], n_classes=len(set(classes)), passes=passes,
        id_length=None if are_integers else sum(map(len, names)) / len(names),
        has_times=any(options[name] is not None for name in ("half_life", "horizon", "since")),
        has_page=options.get("report") is not None,
    )  # fmt: skip
    return {**options, "max_edges": budget.edges_within(options["memory"])}


def _megabytes(memory: int) -> str:
    return f"{-(-memory // 10**6)}MB"
