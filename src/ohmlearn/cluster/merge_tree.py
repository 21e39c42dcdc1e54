"""Work on partitions, and the tree in which its results are merged, the same for every engine.

On each level, groups of `split_every` neighbours are merged; a group of one waits for the next
level. So the shape follows from the number of partitions and `split_every` alone, and a merge is
known by its level, from 1, and its index on that level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, Protocol, TypeVar

Result = TypeVar("Result")
Merge = Callable[[list[Result], int, int], Result]  # parts, level, index
Progress = Callable[[str, int, int], None]  # stage, partitions done, partitions


class Work(Protocol):
    """Two pure functions that an engine runs: `read` for each partition, `merge` in the tree.

    Results have `to_bytes` and `from_bytes`. All that a call depends on is in its arguments and in
    the fields of the work, so it gives the same bytes wherever and however often it runs.
    """

    stage: ClassVar[str]  # what is done, for messages
    result: ClassVar[Any]  # the class of results

    def read(self, content: Any, number: int, name: str, *shared: Any) -> Any:
        """Return the result of a partition; `shared` is what all partitions need."""

    def merge(self, parts: list[Any], level: int, index: int) -> Any:
        """Return one result for several, in order of their partitions."""


def level_sizes(n_results: int, split_every: int) -> list[int]:
    """Return the number of results on each level, those that are not merged yet first."""
    sizes = [n_results]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // split_every))
    return sizes


def merge_tree(
    results: Sequence[Result] | Iterator[Result],
    n_results: int,
    split_every: int,
    merge: Merge[Result],
    level: int = 0,
) -> Result:
    """Merge results, by default those of partitions, as they come; few of them wait at a time.

    Examples
    --------
    >>> merge_tree("abcde", 5, 2, lambda parts, level, index: f"({''.join(parts)})")
    '(((ab)(cd))e)'
    """
    for above in range(level + 1, level + len(level_sizes(n_results, split_every))):
        results = _merge_level(results, split_every, merge, above)
    return next(iter(results))


def _merge_level(
    results: Iterable[Result], split_every: int, merge: Merge[Result], level: int
) -> Iterator[Result]:
    below, index = iter(results), 0
    while group := list(islice(below, split_every)):
        found = [group[0] if len(group) == 1 else merge(group, level, index)]
        group.clear()  # what has been merged leaves the memory before the next group is read
        yield found.pop()
        index += 1
