"""Which columns of a source hold the two ends of a row, its weight and its time.

Columns that options name come first; then what headings mean; then what the first values are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ohmlearn.checks.times import find_unix_unit
from ohmlearn.errors import Param, Setting
from ohmlearn.reading.read_options import EDGE_ENDS, TIMES, Column, ReadOptions, ScaledColumn
from ohmlearn.reading.source_errors import refuse_source, shorten

FEWEST_STEPS = 20  # upwards, of integers that look like times from 0 on
# Words that distinguish the two ends, before or after a common stem: src_ip and dst_ip.
ROLES = (
    ("src", "dst"), ("src", "dest"), ("src", "tgt"), ("source", "target"),
    ("source", "destination"), ("source", "dest"), ("from", "to"), ("origin", "destination"),
    ("start", "end"), ("sender", "receiver"), ("sender", "recipient"), ("left", "right"),
    ("first", "second"), ("u", "v"), ("i", "j"), ("a", "b"), ("1", "2"), ("0", "1"),
)  # fmt: skip
# If several pairs have common stems, those of these are the ends.
ID_STEMS = ("", "id", "node", "node_id", "name")
TIME_ENDINGS = ("_at", "_time", "_date", "_ts", "timestamp", "datetime")
MEASURES = ("amount", "price", "count", "rating", "score", "stars", "value", "quantity", "qty")
AMOUNTS = (*MEASURES, "total", "volume", "frequency", "strength", "similarity", "payment", "fee")
# Pairs of roles that things of one kind have.
ONE_KIND = (
    ("seller", "buyer"), ("lender", "borrower"), ("giver", "taker"), ("who", "whom"),
    ("debtor", "creditor"), ("caller", "callee"), ("employee", "manager"), ("parent", "child"),
    ("follower", "following"), ("user", "friend"), ("user", "follower"), ("author", "coauthor"),
    ("winner", "loser"), ("home", "away"), ("subject", "object"), ("head", "tail"),
    ("importer", "exporter"), ("origin", "destination"), ("predecessor", "successor"), ("s", "t"),
    ("left", "right"),
)  # fmt: skip
ROLES_OF_ONE_KIND = frozenset((*ONE_KIND, *EDGE_ENDS))
ID_ENDINGS = (
    "id", "ids", "key", "uid", "uuid", "no", "nr", "number", "num", "code", "name", "hash"
)  # fmt: skip


class ColumnChoice(NamedTuple):
    """The columns that a source uses, by position, and their names."""

    u: int
    v: int
    w: int | None
    names: Sequence[str] | None  # of all columns, if they have any
    guessed: str  # what was guessed, in words; empty if nothing was
    t: int | None = None
    kinds: tuple[str, str] | None = None  # of the nodes in u and in v, if they are two
    ask_kinds: bool = False  # whether there may be two kinds, but the names do not say so
    event: int | None = None  # ids of events
    scale: ScaledColumn | None = None  # a function of the weights
    unread: tuple[str, ...] = ()  # columns of amounts, which may be weights, if no column has these

    def name(self, at: int | None) -> str | None:
        """Return the name of a column, or its position."""
        return None if at is None else _name(self.names, at)

    def __str__(self) -> str:
        how = f" ({self.guessed})" if self.guessed else ""
        weights = "no weights"
        if self.w is not None:
            name = self.name(self.w)
            weights = f"weights = {name if self.scale is None else self.scale.describe(name)}"
        times = f", times = {self.name(self.t)}" if self.t is not None else ""
        kinds = ""
        if self.kinds is not None:
            kinds = f", two kinds of nodes ({self.kinds[0]}:..., {self.kinds[1]}:...)"
        events = f", event ids = {self.name(self.event)}" if self.event is not None else ""
        ends = f"u = {self.name(self.u)}, v = {self.name(self.v)}"
        return f"{ends}, {weights}{times}{events}{kinds}{how}"

    @property
    def used(self) -> list[int]:
        """Positions of the columns that are read: ends, weight, event id, time."""
        return [at for at in (self.u, self.v, self.w, self.event, self.t) if at is not None]

    def alone(self) -> ColumnChoice:
        """Return the columns of a table that has only those that are read, in this order."""
        used = self.used
        w, t, event = (
            None if at is None else used.index(at) for at in (self.w, self.t, self.event)
        )
        names = self.names and [self.names[at] for at in used]
        return self._replace(u=0, v=1, w=w, t=t, event=event, names=names)


def _name(names: Sequence[str] | None, at: int) -> str:
    return repr(names[at]) if names else f"column {at}"


class ColumnSample(NamedTuple):
    """What the values of columns say: which columns are not ends, unless they are named."""

    times: Collection[int] = ()
    fractions: Collection[int] = ()
    floats: Collection[int] = ()  # which may be whole numbers
    numbers: Collection[int] = ()  # all of whose values are numbers
    doubts: Mapping[int, str] = {}  # why such numbers may not be weights


def doubt_weights(numbers: NDArray[Any]) -> str:
    """Say why a column of numbers without a name may not be the weights; empty if it may."""
    if (numbers < 0).any():
        return f"has negative numbers, such as {numbers.min():g}"
    if find_unix_unit(numbers.astype(np.float64)) is not None:
        return f"has numbers that may be Unix times, such as {numbers[0]:.0f}"
    steps = np.diff(numbers)
    if np.sum(steps > 0) >= FEWEST_STEPS and (steps >= 0).all() and not (numbers % 1).any():
        return "grows from row to row, as times do"
    return ""


def choose_columns(
    source: str,
    options: ReadOptions,
    names: Sequence[str] | None,
    n_columns: int,
    values: ColumnSample | None = None,
) -> ColumnChoice:
    """Return the columns that the options name, else those that names or values suggest.

    A guess that is not clear is refused.
    """
    return _Choice(source, options, names, n_columns, values or ColumnSample()).make()


class _Choice:
    """The columns of a source, as far as they are chosen."""

    def __init__(
        self,
        source: str,
        options: ReadOptions,
        names: Sequence[str] | None,
        n_columns: int,
        values: ColumnSample,
    ) -> None:
        self.source, self.options, self.rows = source, options, options.rows
        self.names, self.n_columns, self.values = names, n_columns, values
        self.lower = [name.strip().lower() for name in names or ()]
        if n_columns < 2:
            refuse_source(source, f"{self.rows.one} needs two columns, got {n_columns}")
        weight = options.weight and options.weight.column
        self.u, self.v = self.find(options.source_col), self.find(options.target_col)
        self.w, self.event = self.find(weight), self.find(options.event_id_col)
        self.t: int | None = None

    @property
    def more(self) -> dict[str, int]:
        """The columns beside the ends, by what they have."""
        every = {"weights": self.w, "times": self.t, "event ids": self.event}
        return {what: at for what, at in every.items() if at is not None}

    def make(self) -> ColumnChoice:
        """Choose times first, then weights, then ends, which are neither."""
        options = self.options
        self.t = self.find_times() if options.time is True else self.find(options.time)
        if self.w is None and options.weight_col is not False:  # named ends are not weights
            self.w = self.find_usual(self.rows.weights)
        guessed = self.say_guessed()
        if self.u is None or self.v is None:
            self.u, self.v = self.find_ends()
        used = [self.u, self.v, *self.more.values()]
        if len(set(used)) < len(used):
            also = [f", and {at} for the {what}" for what, at in self.more.items()]
            self.refuse_needs(f"different columns, got {self.u} and {self.v}{''.join(also)}")
        guesses_weights = options.weight_col is None and self.rows.has_unnamed_weights
        if self.names is None and guesses_weights:
            self.w = self.find_unnamed_weight()
            if self.w is None and options.time is None and self.values.times:
                at = next(iter(self.values.times))
                guessed += f"; column {at} seems to have times, which are not read"
        kinds, ask = self.find_kinds(self.u, self.v)
        unread = self.find_unread() if self.w is None and guesses_weights else ()
        return ColumnChoice(
            self.u, self.v, self.w, self.names, guessed, self.t, kinds, ask, self.event,
            scale=options.weight, unread=unread,
        )  # fmt: skip

    def find(self, column: Column | None) -> int | None:
        """Return the position of a column that the options name, if they do."""
        if isinstance(column, str):
            why = f"has no column {column!r}, only {self.show_names()}"
            if self.names is None:
                why = f"has no names of columns, so there is no column {column!r}"
            if self.names is None or column not in self.names:
                refuse_source(self.source, why + self.about_functions(column))
            return self.names.index(column)
        if column is not None and not 0 <= column < self.n_columns:
            refuse_source(self.source, f"has no column {column}, only {self.n_columns} of them")
        return column

    def about_functions(self, column: str) -> str:
        """Return the functions of a column, if the weights seem to be an unknown one of it."""
        one, colon, _ = column.partition(":")
        is_column = one in (self.names or ()) or (one.isdecimal() and int(one) < self.n_columns)
        if not (colon and is_column and column == self.options.weight_col):
            return ""
        return f"; functions of it are {one}:log, {one}:sqrt and {one}:cap=0.99"

    def show_names(self) -> str:
        """Return the names of the columns, or how many there are, for messages."""
        if self.names is None:
            return f"columns 0 to {self.n_columns - 1}"
        return ", ".join(shorten(name) for name in self.names[:20])

    def is_taken(self, at: int) -> bool:
        """Whether a column is chosen already."""
        return at in (self.u, self.v, self.w, self.t, self.event)

    def find_usual(self, names: Sequence[str]) -> int | None:
        """Return the first column with one of some usual names that is not taken."""
        found = (self.lower.index(name) for name in names if name in self.lower)
        return next((at for at in found if not self.is_taken(at)), None)

    def find_times(self) -> int:
        """Return the column of times by its name, or name one that may have them."""
        if (found := self.find_usual(TIMES)) is not None:
            return found
        ends: tuple[int, ...] = 0, 1
        if self.n_columns > 2 and self.names is not None:
            ends = find_ends(self.names, self.rows.ends) or ()
        others = [at for at in range(self.n_columns) if at not in ends and not self.is_taken(at)]
        if self.names is None:
            problem = "has no names of columns, so the column of times cannot be guessed"
            remedy = "give its position"
        else:
            problem = f"no column has a usual name of times, such as {TIMES[0]!r}; the columns are "
            problem += self.show_names()
            remedy = "if one has the times, name it"
        if not others:
            refuse_source(self.source, f"{problem}; the edges seem to have no times")
        example = others[-1] if self.names is None else self.names[others[-1]]
        refuse_source(self.source, f"{problem}; {remedy}, for example {Setting('time', example)}")

    def find_unread(self) -> tuple[str, ...]:
        """Return the names of columns of amounts, which may be weights, but are not read.

        Other columns of numbers are as often codes, positions or attributes of the ends.
        """
        numbers = {*self.values.numbers, *self.values.floats} - {*self.values.doubts}
        return tuple(
            name
            for at, name in enumerate(self.names or ())
            if at in numbers
            and not self.is_taken(at)
            and not {*AMOUNTS}.isdisjoint(simplify(name).split("_"))
            and name not in (self.options.where or "")  # which reads it
        )

    def find_unnamed_weight(self) -> int | None:
        """Return the first column of numbers besides the ends, if it is clear that it is a weight.

        So it is if no other column may be the weight. Otherwise refuse to guess.
        """
        left = [at for at in sorted(self.values.numbers) if not self.is_taken(at)]
        left = [at for at in left if at not in self.values.times]
        clear = [at for at in left if at not in self.values.doubts]
        if clear == left[:1]:
            return left[0] if left else None
        doubt = (
            self.values.doubts.get(left[0])
            or f"is not the only column of numbers (column {left[1]} is one, too)"
        )
        refuse_source(
            self.source,
            f"column {left[0]} may be the weight, but it {doubt}; use "
            f"{Setting('weight_col', left[0])} if it is, {Setting('time', left[0])} if it is the "
            f"time, {Setting('weight_col', False)} if there are no weights",
        )

    def say_guessed(self) -> str:
        """Return what is guessed, in words; which columns, if others are named."""
        options = self.options
        columns = (options.source_col, options.target_col, options.weight_col, options.time)
        u, v, *more = (not (column is None or isinstance(column, bool)) for column in columns)
        found = [] if u and v else ["v" if u else "u" if v else "ends"]
        if options.time is True:
            found.append("times")
        if found and (u or v or any(more)):
            return f"{' and '.join(found)} guessed"
        return "guessed" if found else ""

    @property
    def name_them(self) -> str:
        """What to do if the ends are not clear."""
        return f"name them with {' and '.join(self.rows.options)}"

    def refuse_needs(self, needs: str) -> NoReturn:
        """Refuse a choice in which columns are equal or lacking."""
        weights = f" and {self.rows.weight_option}" if self.w is not None else ""
        refuse_source(self.source, f"{self.rows.one} needs {needs}; {self.name_them}{weights}")

    def find_ends(self) -> tuple[int, int]:
        """Return the ends, at least one of which is not named."""
        u, v, taken = self.u, self.v, {*self.more.values()}
        if self.n_columns - len(taken - {u, v}) < 2:
            also = " and ".join(
                f"one of {what} ({_name(self.names, at)})" for what, at in self.more.items()
            )
            self.refuse_needs(f"two columns and {also}, got {self.n_columns}")
        named = u if u is not None else v
        unfit = {*taken, *self.values.times} - {named}
        fractions = {*self.values.fractions} - {named}
        pair = None
        if self.rows.second_may_be_empty:
            pair = self.find_label(taken) or self.find_others(taken, named)
        elif self.names is not None:
            pair = find_ends(self.names, self.rows.ends, unfit, fractions)
        if pair is None:
            too_few = self.n_columns - len(unfit | fractions) < 2  # then the first row is refused
            pair = self.find_others(unfit if too_few else unfit | fractions, named)
        if named is None:
            return pair
        other = next(at for at in (pair if u is None else pair[::-1]) if at != named)
        return (named, other) if u is not None else (other, named)

    def find_label(self, taken: set[int]) -> tuple[int, int] | None:
        """Return the columns of nodes and labels, if one of them is named or has a usual name."""
        u, v = self.u, self.v
        lower = ["" if at in taken else name for at, name in enumerate(self.lower)]
        nodes = [lower.index(name) for name, _ in self.rows.ends if name in lower]
        labels = [lower.index(name) for _, name in self.rows.ends if name in lower]
        nodes = [at for at in nodes if at != v] if u is None else [u]
        labels = [at for at in labels if at != u] if v is None else [v]
        known = {*nodes[:1], *labels[:1]}
        others = [at for at, name in enumerate(lower) if name and at not in known]
        others = [at for at in others if not is_time(lower[at])]
        if nodes and labels:
            return nodes[0], labels[0]
        if known and len(others) == 1:
            return (nodes or others)[0], (labels or others)[0]
        return None

    def find_others(self, unfit: set[int], named: int | None) -> tuple[int, int]:
        """Return two columns whose names say nothing, or refuse to guess."""
        left = [at for at in range(self.n_columns) if at not in unfit]
        if self.names is None:
            # A list without names has the ends first.
            if len(left) >= 2 and (len(left) == 2 or named is not None or left[:2] == [0, 1]):
                return left[0], left[1]
        else:
            left = [at for at in left if at == named or not is_time(self.names[at])]
            left = [at for at in left if at == named or self.lower[at] not in self.rows.weights]
            if len(left) > 2 and not self.rows.second_may_be_empty:
                measures = {at for at in left if simplify(self.names[at]) in MEASURES}
                measures |= {*self.values.floats}
                left = [at for at in left if at == named or at not in measures]
            if len(left) == 2:
                return left[0], left[1]
        self.refuse_guess()

    def refuse_guess(self) -> NoReturn:
        """Refuse to guess the ends."""
        pair = next((pair for pair in EDGE_ENDS if set(self.lower).issuperset(pair)), None)
        if pair is not None and self.rows.second_may_be_empty and self.names is not None:
            refuse_swapped(self.source, *(self.names[self.lower.index(name)] for name in pair))
        times = [at for at in range(self.n_columns) if at in self.values.times]
        numbers = [at for at in range(self.n_columns) if at in self.values.fractions]
        if self.names is not None:
            times += [at for at, name in enumerate(self.names) if at not in times and is_time(name)]
        notes = []
        for found, what in ((times, "times"), (numbers, "numbers that are not ids")):
            if found:
                shown = ", ".join(_name(self.names, at) for at in sorted(found)[:5])
                notes.append(f" ({shown} seems to have {what})")
        refuse_source(
            self.source,
            f"it is not clear which two columns make {self.rows.one}: there are "
            f"{self.show_names()}{''.join(notes)}; {self.name_them}",
        )

    def find_kinds(self, u: int, v: int) -> tuple[tuple[str, str] | None, bool]:
        """Return the two kinds of nodes, if there are two; and whether to ask."""
        bipartite = self.options.bipartite
        if bipartite is False or self.rows.second_may_be_empty:
            return None, False
        if isinstance(bipartite, tuple):
            return bipartite, False
        if self.names is None:
            return ("left", "right") if bipartite else None, False
        headings = self.names[u], self.names[v]
        if bipartite:
            return kinds_of_headings(*headings), False
        return None, not is_one_kind(*headings)


def refuse_swapped(source: str, u: str, v: str) -> NoReturn:
    """Refuse a table of labels whose headings are those of edges."""
    refuse_source(
        source,
        f"the columns {u!r} and {v!r} seem to be the ends of edges, not nodes and labels; are the "
        f"two files swapped? If not, name the columns with {Param('node_col')} and "
        f"{Param('label_col')}",
    )


def simplify(heading: str) -> str:
    """Return a heading in lower case, with underscores between words."""
    parts = re.sub(r"(?<=[^\W_A-Z\d])(?=[A-Z])", "_", heading)
    return re.sub(r"[\W_]+", "_", parts).strip("_").lower()


def kind_of(heading: str) -> str:
    """Return what a column of ids is about: its heading without an ending such as _id."""
    word = simplify(heading)
    for ending in ID_ENDINGS:
        word = word.removesuffix(f"_{ending}")
    return word.removeprefix("id_")


def names_kind(heading: str, kind: str) -> bool:
    """Whether the heading of a column of ids names a kind of nodes."""
    found, kind = kind_of(heading), simplify(kind)
    return found in (kind, f"{kind}s", *(kind + ending for ending in ID_ENDINGS))


def is_id(heading: str) -> bool:
    """Whether a heading says that a column has ids, such as user_id."""
    return simplify(heading).endswith("_id")


def is_time(heading: str) -> bool:
    """Whether a column usually has times, by its heading."""
    name = simplify(heading)
    return name in TIMES or name.endswith(TIME_ENDINGS) or "timestamp" in name


def find_ends(
    headings: Sequence[str],
    usual: Sequence[tuple[str, str]],
    not_ends: Collection[int] = (),
    doubtful: Collection[int] = (),
) -> tuple[int, int] | None:
    """Return the positions of the two columns whose headings say that they are the ends.

    These are a pair of `usual` names, or a pair that differs in its roles only, or the only two
    columns whose headings end with id.
    Returns None if there is no such pair, or more than one. The columns `not_ends` are left out,
    those in `doubtful` unless they have usual names.
    """
    names = ["" if at in not_ends else name.strip().lower() for at, name in enumerate(headings)]
    if (found := _find_pair(names, usual)) is not None:
        return found
    left_out = {at for at, name in enumerate(headings) if is_time(name)} | {*not_ends, *doubtful}
    simple = ["" if at in left_out else simplify(name) for at, name in enumerate(headings)]
    pairs = dict(_pairs_of_roles(simple))
    preferred = [pairs[stem] for stem in ID_STEMS if stem in pairs]
    if preferred or len(pairs) == 1:
        return (preferred or list(pairs.values()))[0]
    if pairs:
        return None
    kinds = [name and kind_of(name) for name in simple]
    if (found := _find_pair(kinds, usual)) is not None:
        return found
    if (found := _find_pair(kinds, ONE_KIND)) is not None:
        return min(found), max(found)
    typed = [at for at, name in enumerate(simple) if name.endswith("_id")]
    return (typed[0], typed[1]) if len(typed) == 2 else None


def _find_pair(names: Sequence[str], usual: Sequence[tuple[str, str]]) -> tuple[int, int] | None:
    """Return the positions of the first pair of usual names."""
    found = (pair for pair in usual if pair[0] in names and pair[1] in names)
    pair = next(found, None)
    return None if pair is None else (names.index(pair[0]), names.index(pair[1]))


def _pairs_of_roles(names: list[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the stem and the positions of pairs such as src_ip and dst_ip, or player1 and player2.

    Roles of one letter, such as a and b, need a stem.
    """
    places = {name: at for at, name in reversed(list(enumerate(names))) if name}
    for one, other in reversed(ROLES):  # of one stem, the first pair is used
        role = rf"^{one}(_|$)|_{one}$" + (rf"|(?<!\d){one}$" if one.isdecimal() else "")
        for name, at in places.items():
            found = re.search(role, name)
            if found is None or (name == one and len(one) == 1):
                continue
            start, end = found.span()
            stem = name[:start] + name[end:]
            partner = name[:start] + found[0].replace(one, other) + name[end:]
            if partner in places and stem not in MEASURES:
                yield stem, (at, places[partner])


def kinds_of_headings(one: str, other: str) -> tuple[str, str]:
    """Return names of the two kinds of nodes in two columns."""
    kinds = kind_of(one), kind_of(other)
    if kinds[0] == kinds[1] or not all(map(_is_word, kinds)):
        return "left", "right"
    return kinds


def _is_word(name: str) -> bool:
    """Whether a name is more than one letter; in some languages one is a word."""
    return len(name) > 1 or not name.isascii()


def is_one_kind(one: str, other: str) -> bool:
    """Whether headings look like roles of nodes of one kind, or say nothing about kinds."""
    names = [simplify(one), simplify(other)]
    if not all(map(_is_word, names)) or kind_of(one) == kind_of(other):
        return True
    for pair in (names, names[::-1]):
        kinds = kind_of(pair[0]), kind_of(pair[1])
        if not {tuple(pair), kinds}.isdisjoint(ROLES_OF_ONE_KIND) or dict(_pairs_of_roles(pair)):
            return True
    return False
