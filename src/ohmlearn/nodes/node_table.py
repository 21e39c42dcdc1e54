"""Node ids of the user, numbered 0, 1, 2, ... in the order of their first appearance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn import _core
from ohmlearn._display import Shown
from ohmlearn._sharing import Shared, refuse_cut_off
from ohmlearn.checks.parameters import check_option, require_extra
from ohmlearn.errors import InputError, Setting
from ohmlearn.nodes.node_ids import (
    CodedIds,
    Ids,
    Strings,
    arguments,
    as_ids,
    check_equal_sizes,
    check_id_type,
    decode_codes,
    decode_ids,
    find_plain,
    id_type_of,
    ids_in,
    kinds_in,
    kinds_of,
    take,
    with_kind,
)

Numbers = NDArray[np.int32]
MaskedNumbers = np.ma.MaskedArray[Any, np.dtype[np.int32]]
Column = Ids | CodedIds
# The number under a mask: numpy ignores masks in indices, and raises an error for this one.
NOWHERE = np.iinfo(np.int32).max


class NodeTable(Shown, Shared):
    """Numbers node ids, integers or strings, in the order in which they first appear.

    All ids of a table are of one type, which is that of the first one added. Memory grows with the
    number of different ids and, for strings, with their length; large integers cost no more than
    small ones. Tables can be pickled and merged. Threads can share a table.

    Nodes may be of two or more kinds, such as users and items, whose ids overlap: see `add_edges`.
    Then all ids are strings that start with the kind, as in "user:17".

    Examples
    --------
    >>> from ohmlearn import NodeTable
    >>> nodes = NodeTable()
    >>> u, v = nodes.add_edges(["ann", "bob"], ["bob", "cy"])
    >>> u, v
    (array([0, 1], dtype=int32), array([1, 2], dtype=int32))
    >>> nodes.ids([2, 0])
    array(['cy', 'ann'], dtype=object)
    >>> nodes.find(["bob", "ann"])
    array([1, 0], dtype=int32)
    """

    _kinds: tuple[str, ...] = ()
    _kernel: _core.IntegerNodes | _core.StringNodes | None = None
    _is_cut_off = False

    def __init__(self) -> None:
        self._make_lock()

    @property
    def kernel(self) -> _core.IntegerNodes | _core.StringNodes | None:
        if self._is_cut_off:
            refuse_cut_off("table of nodes")
        return self._kernel

    def _cut_off(self) -> None:
        _core.never_free(self._kernel)  # its destructor could fail
        self._is_cut_off = True

    def __len__(self) -> int:
        return 0 if self.kernel is None else len(self.kernel)

    def _facts(self) -> dict[str, Any]:
        first = ", ".join(str(node) for node in self.ids(range(min(3, len(self)))))
        kinds = ", ".join(self.kinds) or None
        facts = {"nodes": len(self), "of the kinds": kinds, "ids of kind": self.kind}
        return facts | {"such as": first or None}

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of nodes, such as ("user", "item"), if their ids start with them."""
        return self._kinds

    @property
    def kind(self) -> str | None:
        """'int64' or 'string', the type of the ids, or None if the table is empty."""
        if self.kernel is None:
            return None
        return "string" if isinstance(self.kernel, _core.StringNodes) else "int64"

    def add(self, ids: ArrayLike | Any) -> Numbers:
        """Return the numbers of ids; new ids get the next numbers.

        Parameters
        ----------
        ids : array-like of int or str, or pyarrow array

        Examples
        --------
        >>> from ohmlearn import NodeTable
        >>> NodeTable().add([10**15, 7, 10**15])
        array([0, 1, 0], dtype=int32)
        """
        column = as_ids(ids, "ids")
        if column.size == 0:  # has no type
            return np.empty(0, dtype=np.int32)
        with self._lock:
            self._check_kinds(column, "ids")
            numbers: Numbers = self._add(column)
        return numbers

    def add_edges(
        self, u: ArrayLike | Any, v: ArrayLike | Any, *, kinds: Sequence[str] | None = None
    ) -> tuple[Numbers, Numbers]:
        """Return the numbers of both ends of edges; new ids get the next numbers.

        Ids are added in the order u[0], v[0], u[1], ..., so that the numbers do not depend on how a
        stream is cut into batches.

        Parameters
        ----------
        u, v : array-like of int or str, or pyarrow array, of equal length
        kinds : (str, str), optional
            What the nodes in u and those in v are, if they are different things. Ids then become
            strings that start with the kind; those that do already stay as they are.

        Examples
        --------
        >>> from ohmlearn import NodeTable
        >>> NodeTable().add_edges(["ann", "bob"], ["bob", "cy"])
        (array([0, 1], dtype=int32), array([1, 2], dtype=int32))

        User 1 and item 1 are two nodes:

        >>> nodes = NodeTable()
        >>> nodes.add_edges([1, 2], [1, 1], kinds=("user", "item"))
        (array([0, 2], dtype=int32), array([1, 1], dtype=int32))
        >>> nodes.ids().tolist()
        ['user:1', 'item:1', 'user:2']
        """
        with self._lock:
            a, b = self._columns(u, v, kinds)
            if a.size == 0:
                return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32)
            pair: tuple[Numbers, Numbers] = self._add(a, b)
            return pair

    def _columns(self, u: object, v: object, kinds: Sequence[str] | None) -> tuple[Ids, Ids]:
        """Return the ends of edges as columns of the same type, with their kinds in front."""
        a, b = as_ids(u, "u"), as_ids(v, "v")
        check_equal_sizes(u=a.size, v=b.size)
        if kinds is not None and a.size > 0:
            self.add_kinds(kinds)
            return with_kind(a, kinds[0]), with_kind(b, kinds[1])
        self._check_kinds(a, "u")
        self._check_kinds(b, "v")
        check_id_type(id_type_of(b), id_type_of(a))
        return a, b

    def add_kinds(self, kinds: Sequence[str]) -> None:
        """Say that nodes are of these kinds; all ids so far must start with one of them.

        Raises
        ------
        ValueError
            If some id does not.

        Examples
        --------
        >>> from ohmlearn import NodeTable
        >>> nodes = NodeTable()
        >>> _ = nodes.add(["user:17", "item:17"])
        >>> nodes.add_kinds(["user", "item"])
        >>> nodes.kinds
        ('user', 'item')
        """
        with self._lock:
            more = (*self._kinds, *(kind for kind in kinds if kind not in self._kinds))
            if len(self) > 0 and not self._kinds:
                at = find_plain(self._keys(), more)
                if at >= 0:
                    plain = self.ids([at]).tolist()[0]
                    raise ValueError(
                        f"the nodes so far have no kinds, such as {plain!r}, but now nodes of the "
                        f"kinds {' and '.join(kinds)} came"
                    )
            self._kinds = more

    def _check_kinds(self, column: Ids, name: str) -> None:
        """Refuse ids without a kind, if the nodes have kinds."""
        at = find_plain(column, self._kinds) if self._kinds else -1
        if at < 0:
            return
        plain = decode_ids(take(column, np.array([at]))).tolist()[0]
        ways = " or ".join(repr(f"{kind}:{plain}") for kind in self._kinds)
        raise ValueError(
            f"nodes are of the kinds {' and '.join(self._kinds)}, so ids start with one, as in "
            f"{ways}, but {name}[{at}] = {plain!r}"
        )

    @overload
    def find(self, ids: ArrayLike | Any, *, missing: Literal["raise"] = ...) -> Numbers: ...

    @overload
    def find(self, ids: ArrayLike | Any, *, missing: Literal["mask"]) -> MaskedNumbers: ...

    def find(
        self, ids: ArrayLike | Any, *, missing: Literal["raise", "mask"] = "raise"
    ) -> Numbers | MaskedNumbers:
        """Return the numbers of ids.

        Parameters
        ----------
        ids : array-like of int or str, or pyarrow array
        missing : {"raise", "mask"}
            What to do with ids that are not in the table: raise a ValueError that names the first
            ones, or return a masked array.

        Examples
        --------
        >>> from ohmlearn import NodeTable
        >>> nodes = NodeTable()
        >>> _ = nodes.add(["ann", "bob"])
        >>> nodes.find(["bob", "ann"])
        array([1, 0], dtype=int32)
        >>> nodes.find(["bob", "eve"])
        Traceback (most recent call last):
        ...
        ohmlearn.errors.InputError: 1 of 2 ids is not in the table: 'eve'; missing="mask" masks
        such ids
        >>> nodes.find(["bob", "eve"], missing="mask").mask
        array([False,  True])
        """
        check_option("missing", missing, ("raise", "mask"))
        column = as_ids(ids, "ids")
        if len(self) > 0:
            self._check_kinds(column, "ids")
        numbers = self.peek(column)
        if numbers is None:  # the table is empty, or the ids are of another type
            check_id_type(id_type_of(column), self.kind if column.size > 0 else None)
            numbers = np.full(column.size, -1, dtype=np.int32)
        absent = numbers < 0
        if missing == "mask":
            return np.ma.masked_array(np.where(absent, np.int32(NOWHERE), numbers), absent)
        if absent.any():
            n_absent, n = int(np.count_nonzero(absent)), column.size
            first = take(column, np.flatnonzero(absent)[:3])
            names = ", ".join(repr(name) for name in decode_ids(first).tolist())
            raise InputError(
                f"{n_absent} of {n} ids {'is' if n_absent == 1 else 'are'} not in the table: "
                f"{names}{', ...' if n_absent > 3 else ''}; {Setting('missing', 'mask')} masks "
                f"such ids"
            )
        return numbers

    def peek(self, column: Ids, to: Numbers | None = None) -> Numbers | None:
        """Return the numbers of ids, with -1 for others; None if they are of another type.

        They are written to the array `to`, if it is given. Unlike `find`, several threads can do
        this at a time.
        """
        with self._reading():
            table: Any = self.kernel
            if table is None or self.kind != id_type_of(column):
                return None
            if to is None:
                to = np.empty(column.size, np.int32)
            table.find_into(*arguments(column), to)
            return to

    def ids(self, numbers: ArrayLike | None = None) -> NDArray[np.int64] | NDArray[np.object_]:
        """Return the ids of some nodes, by default of all: int64, or an object array of strings.

        Parameters
        ----------
        numbers : array-like of int, optional

        Examples
        --------
        >>> from ohmlearn import NodeTable
        >>> nodes = NodeTable()
        >>> _ = nodes.add(["ann", "bob"])
        >>> nodes.ids([1]), nodes.ids().tolist()
        (array(['bob'], dtype=object), ['ann', 'bob'])
        """
        with self._lock:
            at = None if numbers is None else _check_numbers(numbers, len(self))
            if at is not None and at.size < len(self):  # few of many
                ids, at = decode_ids(self._keys(at.ravel())), np.arange(at.size).reshape(at.shape)
            else:
                ids = decode_ids(self._keys())
        chosen: NDArray[Any] = ids if at is None else ids[at]
        return chosen

    def to_arrow(self) -> Any:
        """Return all ids as a pyarrow array, int64 or large_string."""
        pa = require_extra("pyarrow", "files")
        keys = self._keys()
        return keys.to_arrow() if isinstance(keys, Strings) else pa.array(keys, type=pa.int64())

    def merge(self, other: NodeTable, first: int = 0) -> Numbers:
        """Add the ids of another table, from a number on; return their numbers in this table.

        Examples
        --------
        >>> from ohmlearn import NodeTable
        >>> a, b = NodeTable(), NodeTable()
        >>> _ = a.add([10, 20]), b.add([30, 20])
        >>> a.merge(b)
        array([2, 1], dtype=int32)
        """
        if other.kernel is None:
            return np.empty(0, dtype=np.int32)
        if other.kinds:
            self.add_kinds(other.kinds)
        return self.add(other.keys_from(first))

    def agrees_with(self, other: NodeTable) -> bool:
        """Return whether one table is the beginning of the other.

        Then a number that both tables have means the same id in both, so that edges numbered by
        one can be used with edges numbered by the other.

        Examples
        --------
        >>> from ohmlearn import NodeTable
        >>> a, b = NodeTable(), NodeTable()
        >>> _ = a.add(["ann", "bob"]), b.add(["ann"])
        >>> a.agrees_with(b)
        True
        >>> _ = b.add(["cy"])
        >>> a.agrees_with(b)
        False
        """
        if other is self:
            return True
        mine, theirs = self._keys(), other._keys()
        n = min(mine.size, theirs.size)
        if n == 0:
            return True
        if id_type_of(mine) != id_type_of(theirs):
            return False
        return all(map(np.array_equal, arguments(_first(mine, n)), arguments(_first(theirs, n))))

    def keys_from(self, first: int) -> Ids:
        """Return the ids from a number on, as integers or encoded strings."""
        keys = self._keys()
        if isinstance(keys, Strings):
            return Strings(keys.offsets[first:], keys.data)
        return keys[first:]

    def truncate(self, size: int) -> None:
        """Forget all ids but the first `size`.

        Examples
        --------
        >>> from ohmlearn import NodeTable
        >>> nodes = NodeTable()
        >>> _ = nodes.add(["ann", "bob", "cy"])
        >>> nodes.truncate(1)
        >>> nodes.ids().tolist()
        ['ann']
        """
        with self._lock:
            keys = _first(self._keys(), size)
            table = NodeTable()
            table.add(keys)
            self._kernel = table._kernel
            if self._kinds and isinstance(keys, Strings):
                self._kinds = kinds_of(keys)

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return the table as named arrays, for a file."""
        keys = self._keys()
        if isinstance(keys, Strings):
            state: dict[str, NDArray[Any]] = {"node_offsets": keys.offsets, "node_bytes": keys.data}
            if self._kinds:
                state["node_kinds"] = np.array(self._kinds)
            return state
        return {} if self.kernel is None else {"node_ids": keys}

    @classmethod
    def from_state(cls, state: dict[str, NDArray[Any]]) -> Self:
        """Return a table from the arrays of `get_state`; other arrays raise a ValueError.

        Examples
        --------
        >>> from ohmlearn import NodeTable
        >>> nodes = NodeTable()
        >>> _ = nodes.add(["a", "b"])
        >>> NodeTable.from_state(nodes.get_state()).ids()
        array(['a', 'b'], dtype=object)
        """
        table = cls()
        keys = ids_in(state)
        if len(np.unique(table.add(keys))) < keys.size:
            raise ValueError("node ids are not unique")
        if "node_kinds" in state:
            table.add_kinds(kinds_in(state))
        return table

    def __getstate__(self) -> dict[str, NDArray[Any]]:
        return self.get_state()

    def __setstate__(self, state: dict[str, NDArray[Any]]) -> None:
        self._make_lock()
        restored = self.from_state(state)
        self._kernel, self._kinds = restored._kernel, restored._kinds

    def _keys(self, chosen: NDArray[np.int64] | None = None) -> Ids:
        """Return all ids, or those with some numbers, which the table must have."""
        with self._lock:
            kernel: Any = self.kernel
            if kernel is None:
                return np.empty(0, np.int64)
            keys = kernel.keys() if chosen is None else kernel.take(chosen)
            return Strings(*keys) if isinstance(kernel, _core.StringNodes) else np.asarray(keys)

    def _add(self, *columns: Ids) -> Any:
        """Return the numbers of some ids, or of both ends of edges; the caller has the lock."""
        id_type = id_type_of(columns[0])  # that of the table is the type of the first ids
        if self.kernel is None:
            self._kernel = _core.StringNodes() if id_type == "string" else _core.IntegerNodes()
        check_id_type(id_type, self.kind)
        kernel: Any = self._kernel
        arrays = (array for column in columns for array in arguments(column))
        with self._changing():
            return kernel.add(*arrays) if len(columns) == 1 else kernel.add_edges(*arrays)


def _first(keys: Ids, n: int) -> Ids:
    """Return the first ids of a table, whose offsets start at 0."""
    if isinstance(keys, Strings):
        offsets = keys.offsets[: n + 1]
        return Strings(offsets, keys.data[: offsets[-1]])
    return keys[:n]


def _check_numbers(values: object, n_nodes: int) -> NDArray[Any]:
    """Return numbers of nodes after a check that the table has them."""
    array = np.asarray(values)
    if array.size > 0 and array.dtype.kind not in "iu":
        raise ValueError(f"numbers of nodes must be integers, got dtype {array.dtype}")
    bad = (array < 0) | (array >= n_nodes)
    if bad.any():
        raise ValueError(
            f"node number {array[bad].flat[0]} is out of range; the table has {n_nodes} nodes"
        )
    return array.astype(np.int64)


def ids_or_numbers(nodes: NodeTable | None, n_nodes: int) -> NodeTable:
    """Return a table of ids; without one, the numbers of the nodes are their ids."""
    if nodes is None:
        nodes = NodeTable()
        nodes.add(np.arange(n_nodes))
    return nodes


def join_tables(a: NodeTable | None, b: NodeTable | None) -> NodeTable | None:
    """Return the longer of two tables that number the same ids alike; refuse any others."""
    if a is None or b is None or a is b:
        return b if a is None else a
    if a.agrees_with(b):
        return max(a, b, key=len)
    pairs = enumerate(zip(a.ids().tolist(), b.ids().tolist(), strict=False))
    number, (one, other) = next(item for item in pairs if item[1][0] != item[1][1])
    raise ValueError(
        f"the nodes are numbered in two ways: node {number} is {one!r} in one numbering and "
        f"{other!r} in the other; read both with the same table, as in "
        f"read_edges(..., nodes=first.nodes)"
    )


def are_reordered(nodes: NodeTable | None) -> bool:
    """Whether the ids are 0, 1, ... in another order, so that rows are easily taken for nodes."""
    if nodes is None or nodes.kind != "int64":
        return False
    order = np.asarray(nodes.ids())
    usual = np.arange(len(order))
    return bool(np.array_equal(np.sort(order), usual) and not np.array_equal(order, usual))


class KnownEnds(NamedTuple):
    """Numbers of the ends of edges, and what is needed to number the new ids among them.

    Looking ids up does not change the table, so several threads can do it for different batches.
    What is left, the edges with a new id, is numbered later, batch by batch. As known ids keep
    their numbers, the result is that of `NodeTable.add_edges`.
    """

    u: Numbers
    v: Numbers
    rows: NDArray[np.intp] | None = None  # edges with a new id
    new: tuple[Ids, Ids] | None = None  # both ends of those edges


def look_up(
    nodes: NodeTable,
    u: Column,
    v: Column,
    kinds: Sequence[str] | None = None,
    to: tuple[Numbers, Numbers] | None = None,
) -> KnownEnds | None:
    """Return what a table knows about the ends of edges; None if that does not help.

    Threads can call it at the same time. Numbers are written to the arrays `to`, if given.
    """
    if kinds is None and nodes.kinds:
        return None  # `add_edges` checks that the ids have kinds
    first, second = kinds or (None, None)
    to_u, to_v = to or (None, None)
    a, b = _find(nodes, u, first, to_u), _find(nodes, v, second, to_v)
    if a is None or b is None:
        return None
    if a.size == 0 or min(a.min(), b.min()) >= 0:
        return KnownEnds(a, b)
    rows = np.flatnonzero((a < 0) | (b < 0))
    if 2 * len(rows) > len(a):
        return None
    return KnownEnds(a, b, rows, (decode_codes(take(u, rows)), decode_codes(take(v, rows))))


def _find(
    nodes: NodeTable, column: Column, kind: str | None, to: Numbers | None = None
) -> Numbers | None:
    """Return the numbers of ids, -1 for new ones."""
    if not isinstance(column, CodedIds):
        return nodes.peek(column if kind is None else with_kind(column, kind), to)
    ids = column.values
    numbers = nodes.peek(ids if kind is None else with_kind(ids, kind))
    if numbers is None:
        return None
    # All codes are valid, and clipping is the fastest mode.
    return np.take(numbers, column.codes, out=to, mode="clip")


def number_ends(
    nodes: NodeTable, known: KnownEnds, kinds: Sequence[str] | None = None
) -> tuple[Numbers, Numbers]:
    """Return the numbers of both ends of edges after `look_up`; new ids get the next numbers."""
    u, v, rows, new = known
    if kinds is not None and len(u) > 0:
        nodes.add_kinds(kinds)
    if new is None:
        return u, v
    u, v = u.copy(), v.copy()
    u[rows], v[rows] = nodes.add_edges(*new, kinds=kinds)
    return u, v


def add_ends(
    nodes: NodeTable, u: Column, v: Column, kinds: Sequence[str] | None = None
) -> tuple[Numbers, Numbers]:
    """Return the numbers of both ends of edges, as `add_edges`; they may be coded."""
    if isinstance(u, CodedIds) or isinstance(v, CodedIds):
        known = look_up(nodes, u, v, kinds)
        if known is not None:
            return number_ends(nodes, known, kinds)
    return nodes.add_edges(decode_codes(u), decode_codes(v), kinds=kinds)
