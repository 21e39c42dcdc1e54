"""The shape of the tree in which the results of partitions are merged.

On each level, groups of `split_every` neighbours are merged; a group of one waits for the next
level. So the shape follows from the number of partitions and `split_every` alone, and a merge is
known by its level, from 1, and its index on that level. Every engine merges in this shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

__all__ = ["Result", "level_sizes", "merge_in_turn", "merge_levels"]

Result = TypeVar("Result")
Merge = Callable[[list[Result], int, int], Result]  # parts, level, index


def level_sizes(n_partitions: int, split_every: int) -> list[int]:
    """Return the number of results on each level, partitions first.

    Examples
    --------
    >>> level_sizes(10, 3)
    [10, 4, 2, 1]
    """
    sizes = [n_partitions]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // split_every))
    return sizes


def merge_levels(
    results: list[Result], split_every: int, merge: Merge[Result], level: int = 0
) -> Result:
    """Merge the results of a level, by default those of partitions, level after level.

    Examples
    --------
    >>> merge_levels(list("abcde"), 2, lambda parts, level, index: f"({''.join(parts)})")
    '(((ab)(cd))e)'
    """
    while len(results) > 1:
        level += 1
        groups = [results[at : at + split_every] for at in range(0, len(results), split_every)]
        results = [
            group[0] if len(group) == 1 else merge(group, level, index)
            for index, group in enumerate(groups)
        ]
    return results[0]


def merge_in_turn(results: Iterable[Result], split_every: int, merge: Merge[Result]) -> Result:
    """Merge results as they come, in order of partitions; few of them wait at a time.

    Examples
    --------
    >>> merge_in_turn(iter("abcde"), 2, lambda parts, level, index: f"({''.join(parts)})")
    '(((ab)(cd))e)'
    """
    waiting: list[list[Result]] = [[]]  # by level
    merged = [0]  # groups so far, by level

    def close(level: int) -> None:
        group, waiting[level] = waiting[level], []
        if level + 1 == len(waiting):
            waiting.append([])
            merged.append(0)
        found = group[0] if len(group) == 1 else merge(group, level + 1, merged[level])
        merged[level] += 1
        waiting[level + 1].append(found)
        if len(waiting[level + 1]) == split_every:
            close(level + 1)

    for result in results:
        waiting[0].append(result)
        if len(waiting[0]) == split_every:
            close(0)
    level = 0
    while level + 1 < len(waiting) or len(waiting[level]) > 1:
        if waiting[level]:
            close(level)
        level += 1
    return waiting[level][0]
