"""Weights that are a function of a column, as in "amount:log"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.errors import InputError, Param
from ohmlearn.reading.source_errors import refuse_source

if TYPE_CHECKING:
    from ohmlearn.reading.table_reader import RawBatch, Source

SCALED = re.compile(r"(.+):(log|sqrt|cap(?:=.*)?)", re.DOTALL)
SAMPLE = 100_000  # edges whose weights decide where `cap` is
WORDS = {"log": "log(1 + {})", "sqrt": "sqrt({})"}


class ScaledColumn(NamedTuple):
    """A column and the function of it that is the weight."""

    column: str | int
    function: str = ""  # "log", "sqrt", "cap" or none
    quantile: float = 1.0

    def describe(self, name: str | None) -> str:
        """Return the weight in words, given the name of the column."""
        if self.function == "cap":
            return f"{name}, at most its {self.quantile:g} quantile"
        return WORDS.get(self.function, "{}").format(name)


def split_weight(given: str | int) -> ScaledColumn:
    """Return the column and the function that an option for weights names."""
    found = SCALED.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        return ScaledColumn(given)
    column: str | int = int(found[1]) if found[1].isdecimal() else found[1]
    function, _, text = found[2].partition("=")
    if function != "cap":
        return ScaledColumn(column, function)
    try:
        quantile = float(text)
    except ValueError:
        quantile = 0.0
    if not 0.0 < quantile < 1.0:
        why = f"{Param('weight_col', given)} needs a quantile between 0 and 1"
        raise InputError(why, remedy=f"for example {found[1]}:cap=0.99")
    return ScaledColumn(column, function, quantile)


class WeightScale:
    """The function of a stream's weights.

    `cap` is a quantile of the weights of the first 100,000 edges, or of all if there are fewer, so
    it depends neither on batches nor on threads. Other edges are not needed to know it.
    """

    def __init__(self, how: ScaledColumn, sources: list[Source]) -> None:
        self._how, self._sources = how, sources
        self._cap: float | None = None

    def scale(self, batches: Iterator[RawBatch]) -> Iterator[RawBatch]:
        """Yield batches with the function of their weights."""
        if self._how.function == "cap" and self._cap is None:
            batches = self._find_cap(batches)
        for raw in batches:
            yield raw if raw.w is None else raw._replace(w=self._apply(raw.w))

    def _apply(self, w: NDArray[np.float32] | NDArray[np.float64]) -> NDArray[np.float64]:
        x: NDArray[np.float64] = w.astype(np.float64, copy=False)
        if self._how.function == "cap":
            return np.minimum(x, np.float64(self._cap or 0.0))
        return np.log1p(x) if self._how.function == "log" else np.sqrt(x)

    def _find_cap(self, batches: Iterator[RawBatch]) -> Iterator[RawBatch]:
        """Find the quantile in the first edges, and return all batches."""
        seen: list[RawBatch] = []
        name = self._sources[0].name
        if all(source.rereadable for source in self._sources):
            every: Iterable[RawBatch] = chain.from_iterable(
                source.batches(None) for source in self._sources
            )
        elif len(self._sources) == 1:
            every, batches = batches, chain(seen, batches)
        else:
            refuse_source(name, "a quantile needs files, or a single pipe; write the edges to one")
        n_left = SAMPLE
        for raw in every:
            seen.append(raw)
            n_left -= 0 if raw.w is None else len(raw.w)
            if n_left <= 0:
                break
        weights = [np.zeros(0), *(raw.w for raw in seen if raw.w is not None)]
        first: NDArray[np.float64] = np.concatenate(weights)[:SAMPLE].astype(np.float64)
        if len(first) > 0:
            self._cap = float(np.quantile(first, self._how.quantile, method="inverted_cdf"))
        if self._cap == 0.0:
            why = f"the {self._how.quantile:g} quantile of the weights of the first edges is 0"
            refuse_source(name, f"{why}; use a larger one, or log")
        return batches
