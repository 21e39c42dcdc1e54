"""The options of reading: one object that every reader is given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Literal, NamedTuple

from ohmlearn.checks.parameters import check_option
from ohmlearn.checks.times import check_moment
from ohmlearn.errors import InputError, InputTypeError, Param, Setting, bad_value
from ohmlearn.reading.file_names import FORMATS
from ohmlearn.reading.source_errors import SKIP
from ohmlearn.reading.where import parse_where

Column = str | int
SCALED = re.compile(r"(.+):(log|sqrt|cap(?:=.*)?)", re.DOTALL)
WORDS = {"log": "log(1 + {})", "sqrt": "sqrt({})"}


# Names that columns of edges usually have, in lower case. The first pair found is used.
EDGE_ENDS = (
    ("u", "v"), ("src", "dst"), ("source", "target"), ("from", "to"), ("fromnodeid", "tonodeid"),
    ("from_node", "to_node"), ("from_id", "to_id"), ("source_id", "target_id"),
    ("src_id", "dst_id"), ("sender", "receiver"), ("sender", "recipient"), ("payer", "payee"),
    ("follower", "followee"), ("citing", "cited"), ("node1", "node2"), ("node_1", "node_2"),
    ("id1", "id2"), ("id_1", "id_2"), ("head", "tail"), ("unique_id_l", "unique_id_r"), ("i", "j"),
)  # fmt: skip
# Names that columns of times usually have, in lower case. The first one found is used.
TIMES = (
    "timestamp", "datetime", "date_time", "time", "date", "ts", "event_time", "event_timestamp",
    "event_date", "created_at", "created", "seen_at", "updated_at", "occurred_at", "unix_time",
    "unixtime", "epoch", "t",
)  # fmt: skip
NODES = ("node", "id", "node_id", "u")
LABELS = ("label", "class", "y", "target", "value")
LABEL_WEIGHTS = ("weight", "weights", "confidence", "trust")


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


class Rows(NamedTuple):
    """How a row is described in messages, and the default column names."""

    one: str  # a row, in words
    ends: tuple[tuple[str, str], ...] = EDGE_ENDS  # pairs of names, in lower case
    weights: tuple[str, ...] = ()
    options: tuple[str, str] = (f"{Param('source_col')}", f"{Param('target_col')}")
    weight_option: str = f"{Param('weight_col')}"
    csv_has_header: bool = True  # by convention, if its first line has no number
    second_may_be_empty: bool = False  # then an empty weight is 1
    remedy: str = "correct it"  # for a bad row
    names_remedy: str = f"if they are names, use {Setting('id_type', 'string')}"  # not integers
    times: tuple[str, ...] = ()  # columns of times that a row must not have if the first has none
    has_unnamed_weights: bool = False  # numbers after the ends are weights, if there are no names


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How edges are read. The fields are the keyword arguments of `read_edges`.

    Raises
    ------
    TypeError, ValueError
        If an option has a value with which nothing can be read.

    Examples
    --------
    >>> from ohmlearn.reading import ReadOptions
    >>> ReadOptions(source_col="payer", target_col="payee", on_bad="skip").skip_bad
    True
    >>> ReadOptions(delimiter=",,")
    Traceback (most recent call last):
    ...
    ohmlearn.errors.InputError: delimiter must be one ASCII character that is not a letter, ... got
    ',,'
    """

    rows: ClassVar[Rows] = Rows(
        "an edge",
        weights=("w", "weight", "weights", "match_probability"),
        remedy=SKIP,
        has_unnamed_weights=True,
    )

    source_col: Column | None = None
    target_col: Column | None = None
    weight_col: Column | bool | None = None  # False: no weights; "amount:log": a function
    format: str | None = None
    id_type: Literal["int64", "string"] | None = None
    on_bad: Literal["raise", "skip"] = "raise"
    header: bool | None = None  # this and the next two are for text
    delimiter: str | None = None
    comment: str | None = None
    time: Column | bool | None = None  # True: guess the column
    latest: object = None  # later times are bad
    event_id_col: Column | None = None  # rows that repeat an event do not count
    bipartite: bool | tuple[str, str] | None = None  # two kinds of nodes; None: one
    where: str | None = None  # other rows are left out
    filesystem: object = None  # where paths are; None: this machine, or what an address says

    def __post_init__(self) -> None:
        for name in ("source_col", "target_col", "weight_col", "event_id_col"):
            column = getattr(self, name)
            if name == "weight_col" and column is False:
                continue
            if isinstance(column, bool) or not isinstance(column, str | int | None):
                must = "must be a name or a position of a column"
                raise InputTypeError(f"{Param(name)} {must}, got {column!r}", value=column)
        if self.time is False or not isinstance(self.time, str | int | None):
            raise InputTypeError(
                f"{Param('time')} must be a name or a position of a column, True to guess it, or "
                f"None, got {self.time!r}"
            )
        _ = self.weight  # which is checked
        if self.latest is not None:
            check_moment("latest", self.latest)
            if self.time is None:
                raise InputError(
                    f"{Param('latest', self.latest)} needs times; name their column, for example "
                    f"{Setting('time', 'timestamp')}"
                )
        if self.bipartite not in (None, True, False):
            object.__setattr__(self, "bipartite", _check_kinds(self.bipartite))
        if self.where is not None:
            if not isinstance(self.where, str):
                must = "must be a text such as 'amount > 10'"
                raise InputTypeError(f"{Param('where')} {must}, got {self.where!r}")
            parse_where(self.where)
        if self.format is not None:
            check_option("format", self.format, FORMATS)
        if self.id_type is not None:
            check_option("id_type", self.id_type, ("int64", "string"))
        check_option("on_bad", self.on_bad, ("raise", "skip"))
        if self.header not in (None, True, False):
            raise bad_value("header", "be True, False or None", self.header)
        mark = self.delimiter
        if mark is not None and not (
            isinstance(mark, str)
            and len(mark) == 1
            and mark.isascii()
            and mark not in '"\r\n'
            and not mark.isalnum()
        ):
            must = "be one ASCII character that is not a letter, a digit, a double quote or a line"
            raise bad_value("delimiter", f"{must} break, such as ','", mark)
        marks = self.comment
        if marks is not None and not (
            isinstance(marks, str)
            and marks.isascii()
            and not any(mark.isalnum() or mark in '"-\r\n' for mark in marks)
        ):
            raise bad_value("comment", "be ASCII marks, such as '#'", marks)

    @property
    def weight(self) -> ScaledColumn | None:
        """The column of weights and the function of it, if it is named."""
        if self.weight_col is None or isinstance(self.weight_col, bool):
            return None
        is_edge = self.rows.has_unnamed_weights
        return split_weight(self.weight_col) if is_edge else ScaledColumn(self.weight_col)

    @property
    def skip_bad(self) -> bool:
        """Whether bad rows are left out."""
        return self.on_bad == "skip"


def _check_kinds(kinds: object) -> tuple[str, str]:
    """Return the names of two kinds of nodes."""
    pair = tuple(kinds) if isinstance(kinds, tuple | list) else ()
    if len(pair) != 2 or not all(isinstance(kind, str) for kind in pair):
        raise InputTypeError(
            f"{Param('bipartite')} must be True, False, None or the names of two kinds of nodes, "
            f'such as ("user", "item"), got {kinds!r}'
        )
    if not all(kind.isprintable() and kind.strip() == kind != "" for kind in pair):
        raise ValueError(f"names of kinds must be words, got {kinds!r}")
    if any(":" in kind for kind in pair) or pair[0].casefold() == pair[1].casefold():
        raise ValueError(f"two kinds need different names without a colon, got {kinds!r}")
    return pair[0], pair[1]


class PairOptions(ReadOptions):
    """How a table of node pairs is read: as edges, but without weights."""

    rows = Rows("a pair")


class LabelOptions(ReadOptions):
    """How a table of labels is read: as edges between a node and its label, which may be empty.

    The weight of such an edge is how much the label counts.
    """

    rows = Rows(
        "a label",
        ends=tuple(product(NODES, LABELS)),
        weights=LABEL_WEIGHTS,
        options=(f"{Param('node_col')}", f"{Param('label_col')}"),
        weight_option=f"{Param('label_weight_col')}",
        csv_has_header=False,
        second_may_be_empty=True,
    )
