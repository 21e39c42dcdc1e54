"""A sparsifier of some partitions: how it is made, how several are merged, and how it travels.

What travels are the rows of a sparsifier and the ids of its nodes, as flat arrays. Estimates of
resistances stay behind: a merge makes new ones. So a row takes 12 bytes and a node 8, or the length
of its id and 8.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ohmlearn._arrays_file import check_arrays, pack_arrays, unpack_arrays
from ohmlearn.cluster.cluster_errors import PartitionError, in_partition
from ohmlearn.cluster.partitions import open_partition
from ohmlearn.errors import Place, Setting, text_of
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_ids import Ids, ids_in, kinds_in
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.time_rule import find_conflict
from ohmlearn.sparsifier import StreamingSparsifier

ESTIMATES = ("nodes", "clusters", "pairs")  # what the sampler knows of resistances
LEFT_BEHIND = ("parameters", *ESTIMATES)
ABOUT = ("partitions", "n_bad", "first_bad", "traffic", "time_unit")  # beside the arrays


@dataclass
class Partial:
    """A sparsifier of some partitions.

    Attributes
    ----------
    arrays : dict
        The state of the sampler, all but its estimates, and that of the table of nodes.
    partitions : (int, int)
        The first one, and the last.
    n_bad : int
    first_bad : str or None
        Rows left out.
    time_unit : str or None
        See `EdgeStream`; "unknown" if no edge has a time.
    traffic : tuple of int
        Bytes of all that was merged to this, by level of the tree, that of partitions first.

    Examples
    --------
    >>> from ohmlearn.reading import ReadOptions
    >>> first, second = (
    ...     sparsify_partition(([0], [at]), at, f"partition {at}", ReadOptions(), {}, seed=at)
    ...     for at in (1, 2)
    ... )
    >>> both = Partial.from_bytes(merge_partials([first, second], {}, seed=3).to_bytes())
    >>> both.name, both.sparsifier({}, seed=3).n_edges_seen_, both.nodes().ids().tolist()
    ('partitions 1 to 2', 2, [0, 1, 2])
    """

    arrays: dict[str, NDArray[Any]]
    partitions: tuple[int, int]
    n_bad: int = 0
    first_bad: str | None = None
    traffic: tuple[int, ...] = field(default=())
    time_unit: str | None = "unknown"

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def name(self) -> str:
        """The partitions, for messages."""
        first, last = self.partitions
        return f"partition {first}" if first == last else f"partitions {first} to {last}"

    def __sizeof__(self) -> int:
        return self.nbytes + 1000  # Dask asks, to know how full the memory of a worker is

    def to_bytes(self) -> bytes:
        """Return it as bytes with a checksum; the same partial gives the same bytes."""
        about = {name: getattr(self, name) for name in ABOUT}
        return pack_arrays({**self.arrays, "about": np.array(json.dumps(about))})

    @classmethod
    def from_bytes(cls, content: bytes, name: str = "the sparsifier of a partition") -> Partial:
        """Return what `to_bytes` was called on; it is safe to read any bytes.

        Raises
        ------
        ValueError
            For bytes that `to_bytes` has not made. What merging needs of the arrays is checked
            when they are merged.
        """
        arrays = unpack_arrays(content, name)
        try:
            return cls(arrays, **_check_about(arrays.pop("about", None)))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{name} cannot be read: {error}; make it again") from error

    def nodes(self) -> NodeTable:
        """Return the table of nodes."""
        return NodeTable.from_state(self.arrays)

    def sparsifier(self, parameters: dict[str, Any], seed: int) -> StreamingSparsifier:
        """Return the sparsifier. Its later random choices use `seed`."""
        return _restore(self.arrays, ids_in(self.arrays).size, parameters, seed)


def derive_seed(seed: int, level: int, index: int) -> int:
    """Return the seed of a task: of partition `index`, or of a merge on a level above."""
    sequence = np.random.SeedSequence(seed, spawn_key=(level, index))
    return int(sequence.generate_state(1, np.uint64)[0])


def sparsify_partition(
    content: object,
    number: int,
    name: str,
    options: ReadOptions,
    parameters: dict[str, Any],
    seed: int,
) -> Partial:
    """Read a partition, batch after batch, and return a sparsifier of it.

    Parameters
    ----------
    content : anything that `read_edges` accepts
    number, name : int, str
        Of the partition; errors show the name.
    options : ReadOptions
    parameters : dict
        Those of `StreamingSparsifier`.
    seed : int
        Partitions need different seeds.

    Examples
    --------
    >>> from ohmlearn.cluster import sparsify_partition
    >>> from ohmlearn.reading import ReadOptions
    >>> part = sparsify_partition((["a"], ["b"]), 0, "partition 0", ReadOptions(), {}, seed=1)
    >>> part.nodes().ids()
    array(['a', 'b'], dtype=object)
    """
    with in_partition(name):
        stream = open_partition(content, options)
        sparsifier = StreamingSparsifier(**parameters, random_state=seed)
        sparsifier.update(stream)
        arrays = _take_state(sparsifier) | stream.nodes.get_state()
        times = stream.times
        return Partial(
            arrays,
            (number, number),
            stream.n_bad,
            stream.first_bad,
            time_unit=times.unit if times is not None and times.is_known else "unknown",
        )


def merge_partials(parts: list[Partial], parameters: dict[str, Any], seed: int) -> Partial:
    """Merge sparsifiers of neighbouring partitions with one resample, and their tables of nodes.

    Parameters
    ----------
    parts : list of Partial
        In order of their partitions.
    parameters : dict
        Those of `StreamingSparsifier`, the same as for the partitions.
    seed : int

    Examples
    --------
    >>> from ohmlearn.cluster import merge_partials, sparsify_partition
    >>> from ohmlearn.reading import ReadOptions
    >>> parts = [
    ...     sparsify_partition(([0], [at]), at, f"partition {at}", ReadOptions(), {}, seed=at)
    ...     for at in (1, 2, 3)
    ... ]
    >>> merge_partials(parts, {}, seed=4).partitions
    (1, 3)
    """
    first, last = parts[0], parts[-1]
    with in_partition(first.name):
        _check_part(first.arrays)
        nodes = first.nodes()
    unit = first.time_unit
    numbers = []
    for part in parts[1:]:
        with in_partition(part.name):
            ids = _check_part(part.arrays)
        try:
            if kinds := kinds_in(part.arrays):
                nodes.add_kinds(kinds)
            numbers.append(nodes.add(ids))
        except (TypeError, ValueError) as error:
            hint = f", or use {Setting('id_type', 'string')}" * isinstance(error, TypeError)
            raise PartitionError(f"{text_of(error)}{hint}", place=Place(part.name)) from None
        unit = _join_units(unit, part)
    restored = []
    for part, new in zip(parts, [None, *numbers], strict=True):
        arrays = part.arrays
        if new is not None:  # then the rows are not in order of the numbers
            ends = {end: new[arrays[end]] for end in ("u", "v")}
            arrays = {**arrays, **ends, "n_sorted": np.zeros((), np.int64)}
        with in_partition(part.name):
            restored.append(_restore(arrays, len(nodes), parameters, seed))
    merged, *others = restored
    merged.merge(*others)
    levels = [sum(level) for level in zip_longest(*(p.traffic for p in parts), fillvalue=0)]
    return Partial(
        _take_state(merged) | nodes.get_state(),
        (first.partitions[0], last.partitions[1]),
        sum(part.n_bad for part in parts),
        next((part.first_bad for part in parts if part.first_bad), None),
        (*levels, sum(part.nbytes for part in parts)),
        unit,
    )


@dataclass(frozen=True)
class Sparsifying:
    """Sparsify partitions, and merge the sparsifiers."""

    options: ReadOptions
    parameters: dict[str, Any]
    seed: int
    stage: ClassVar[str] = "sparsify"
    result: ClassVar[type] = Partial

    def read(self, content: object, number: int, name: str) -> Partial:
        """Return the sparsifier of a partition."""
        seed = derive_seed(self.seed, 0, number)
        return sparsify_partition(content, number, name, self.options, self.parameters, seed)

    def merge(self, parts: list[Partial], level: int, index: int) -> Partial:
        """Return the sparsifier of several."""
        return merge_partials(parts, self.parameters, derive_seed(self.seed, level, index))


def _check_about(text: object) -> dict[str, Any]:
    """Return what a partial says of itself, from bytes that may hold anything."""
    text = np.asarray(text)
    if text.dtype.kind != "U" or text.ndim != 0:
        raise ValueError("it does not say of which partitions it is")
    found = json.loads(str(text))
    if not isinstance(found, dict) or set(found) != set(ABOUT):
        raise ValueError(f"it must say {', '.join(ABOUT)}")
    for name in ("partitions", "traffic"):
        numbers = found[name]
        if not isinstance(numbers, list) or not all(type(value) is int for value in numbers):
            raise ValueError(f"{name} must be integers")
        found[name] = tuple(numbers)
    if len(found["partitions"]) != 2:
        raise ValueError("partitions must be 2 integers")
    if type(found["n_bad"]) is not int:
        raise ValueError("n_bad must be an integer")
    if not all(isinstance(found[name], str | None) for name in ("first_bad", "time_unit")):
        raise ValueError("first_bad and time_unit must be text or null")
    return found


def _join_units(unit: str | None, part: Partial) -> str | None:
    """Return the unit of the times of partitions, which must be the same in all of them."""
    if part.time_unit == "unknown" or unit == "unknown":
        return part.time_unit if unit == "unknown" else unit
    if problem := find_conflict(part.time_unit, unit):
        raise PartitionError(problem, place=Place(part.name))
    return unit


def _check_part(arrays: dict[str, NDArray[Any]]) -> Ids:
    """Return the ids of the nodes of a part whose rows can be renumbered."""
    ids = ids_in(arrays)
    check_arrays(arrays, {"u": np.int32, "v": np.int32})
    ends = arrays["u"], arrays["v"]
    if not all(end.min(initial=0) >= 0 and end.max(initial=-1) < ids.size for end in ends):
        raise ValueError("its rows and its nodes do not fit; read the partition again")
    return ids


def _take_state(sparsifier: StreamingSparsifier) -> dict[str, NDArray[Any]]:
    """Return the state without the estimates."""
    sparsifier.nodes = None  # the table travels beside it
    state = sparsifier.get_state()
    return {name: array for name, array in state.items() if name not in LEFT_BEHIND}


def _restore(
    arrays: dict[str, NDArray[Any]], n_nodes: int, parameters: dict[str, Any], seed: int
) -> StreamingSparsifier:
    """Make a sparsifier whose nodes have no estimates yet: edges are kept until it resamples."""
    blank = StreamingSparsifier(n_nodes=n_nodes).get_state()
    own = StreamingSparsifier(**parameters, random_state=seed).get_state()
    rows = {name: array for name, array in arrays.items() if not name.startswith("node_")}
    if "n_nodes" in rows:  # with a horizon there are no records of nodes, but their number
        rows["n_nodes"] = np.array(n_nodes, np.int32)
    estimates = {name: blank[name] for name in ESTIMATES}
    return StreamingSparsifier.from_state({**rows, **estimates, "parameters": own["parameters"]})
