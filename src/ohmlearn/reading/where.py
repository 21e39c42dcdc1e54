"""The small language of ``where``: which rows of a table count.

    condition  = any {"or" any};  any = all {"and" all};  all = ["not"] (test | "(" condition ")")
    test       = column operator value | value operator column
               | column ["not"] "in" "(" value {"," value} ")" | column "is" ["not"] "null"
    operator   = "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">="

A value is a number, a text in single quotes, true or false. A column is a name; one with unusual
characters is in double quotes or backticks. The text is only ever read, never executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from ohmlearn.errors import InputError, Param

__all__ = [
    "Both",
    "Compared",
    "Condition",
    "Either",
    "Missing",
    "Negation",
    "columns_of",
    "conjuncts",
    "parse_where",
]

Value = int | float | str | bool
TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
  | '(?P<text>(?:[^']|'')*)'
  | "(?P<name>(?:[^"]|"")+)"
  | `(?P<ticked>(?:[^`]|``)+)`
  | (?P<word>[^\W\d]\w*(?:\.\w+)*)
  | (?P<mark>==|!=|<>|<=|>=|[=<>(),])
)""",
    re.VERBOSE,
)
OPERATORS = {"==": "=", "<>": "!="}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
EXAMPLE = "write for example amount > 10 and kind in ('buy', 'sell')"
MOST = 200  # conditions that "and", "or", "not" and parentheses may join


class Compared(NamedTuple):
    """A column that is compared with a value, or with several of them for the operator "in"."""

    column: str
    operator: str
    values: tuple[Value, ...]


class Missing(NamedTuple):
    """A column that has no value."""

    column: str


class Negation(NamedTuple):
    """A condition that must not hold."""

    part: Condition


class Both(NamedTuple):
    """Two conditions that must both hold."""

    left: Condition
    right: Condition


class Either(NamedTuple):
    """Two conditions of which one must hold."""

    left: Condition
    right: Condition


Condition = Compared | Missing | Negation | Both | Either


@lru_cache(maxsize=64)
def parse_where(text: str) -> Condition:
    """Return the condition that a text means.

    Examples
    --------
    >>> parse_where("amount > 10")
    Compared(column='amount', operator='>', values=(10,))
    >>> parse_where("not (kind = 'spam') and 5 <= n")
    Both(left=Negation(part=Compared(column='kind', ...)), right=Compared(column='n', ...))
    >>> parse_where("amount >")
    Traceback (most recent call last):
    ...
    ohmlearn.errors.InputError: where = 'amount >': a number or a text in single quotes is missing
    at the end; ...
    """
    return _Parser(text).parse()


def columns_of(condition: Condition) -> list[str]:
    """Return the columns that a condition needs, each once, in the order of the text.

    Examples
    --------
    >>> columns_of(parse_where("b = 1 or a is null or b = 2"))
    ['b', 'a']
    """
    return list(dict.fromkeys(_all_columns(condition)))


def _all_columns(condition: Condition) -> Iterator[str]:
    if isinstance(condition, Compared | Missing):
        yield condition.column
    else:
        for part in condition:
            yield from _all_columns(part)


def conjuncts(condition: Condition) -> list[Condition]:
    """Return conditions that must all hold.

    Examples
    --------
    >>> len(conjuncts(parse_where("a = 1 and (b = 2 or c = 3) and d = 4")))
    3
    """
    if isinstance(condition, Both):
        return conjuncts(condition.left) + conjuncts(condition.right)
    return [condition]


class _Token(NamedTuple):
    kind: str
    value: Any
    at: int  # in the text


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0

    def parse(self) -> Condition:
        if not self._tokens:
            raise InputError(f"{Param('where')} is empty; {EXAMPLE}")
        words = ("and", "or", "not", "(")
        joints = [token for token in self._tokens if token.kind != "value" and token.value in words]
        if len(joints) > MOST:
            problem = f"{Param('where')} has more than {MOST} conditions"
            raise InputError(problem, remedy="use in (...) for many values")
        condition = self._either()
        if (token := self._peek()) is not None:
            self._fail("'and', 'or' or the end is expected", token)
        return condition

    def _split(self) -> Iterator[_Token]:
        at = 0
        while self._text[at:].strip():
            found = TOKEN.match(self._text, at)
            if found is None:
                rest = self._text[at:].lstrip()
                at = len(self._text) - len(rest)
                problem = "a quote is not closed" if rest[0] in "'\"`" else "cannot be understood"
                self._fail(problem, _Token("", None, at))
            kind, value = str(found.lastgroup), found[str(found.lastgroup)]
            start = found.start(kind)
            at = found.end()
            if kind == "number":
                yield _Token("value", _as_number(value), start)
            elif kind == "text":
                yield _Token("value", value.replace("''", "'"), start - 1)
            elif kind in ("name", "ticked"):
                quote = '"' if kind == "name" else "`"
                yield _Token("column", value.replace(quote * 2, quote), start - 1)
            elif kind == "mark":
                yield _Token("mark", OPERATORS.get(value, value), start)
            elif (lower := value.lower()) in ("and", "or", "not", "in", "is", "null"):
                yield _Token("word", lower, start)
            elif lower in ("true", "false"):
                yield _Token("value", lower == "true", start)
            else:
                yield _Token("column", value, start)

    def _either(self) -> Condition:
        left = self._both()
        while self._take("word", "or"):
            left = Either(left, self._both())
        return left

    def _both(self) -> Condition:
        left = self._one()
        while self._take("word", "and"):
            left = Both(left, self._one())
        return left

    def _one(self) -> Condition:
        if self._take("word", "not"):
            return Negation(self._one())
        if self._take("mark", "("):
            condition = self._either()
            self._need("mark", ")", "a closing parenthesis")
            return condition
        return self._test()

    def _test(self) -> Condition:
        if (token := self._take("value")) is not None:
            operator = self._operator()
            return Compared(self._column(), MIRRORED.get(operator, operator), (token.value,))
        column = self._column()
        if self._take("word", "is"):
            negated = self._take("word", "not")
            self._need("word", "null", "null")
            return Negation(Missing(column)) if negated else Missing(column)
        negated = self._take("word", "not")
        if not self._take("word", "in"):
            if negated:
                self._fail("in is missing", self._peek())
            return Compared(column, self._operator(), (self._value(),))
        self._need("mark", "(", "an opening parenthesis")
        values = [self._value()]
        while self._take("mark", ","):
            values.append(self._value())
        closing = self._need("mark", ")", "a closing parenthesis")
        if len({float if type(value) is int else type(value) for value in values}) > 1:
            self._fail("has values of different kinds before", closing)
        found = Compared(column, "in", tuple(values))
        return Negation(found) if negated else found

    def _column(self) -> str:
        return str(self._need("column", None, "the name of a column").value)

    def _operator(self) -> str:
        token = self._peek()
        if token is None or token.kind != "mark" or token.value not in COMPARISONS:
            self._fail("one of = != < <= > >= is missing", token)
        self._next += 1
        return str(token.value)

    def _value(self) -> Value:
        token = self._peek()
        if token is not None and token.kind == "column":
            self._fail(
                f"a column can only be compared with a value; write '{token.value}' in single "
                f"quotes for a text",
                token,
            )
        value: Value = self._need("value", None, "a number or a text in single quotes").value
        return value

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, kind: str, value: str | None = None) -> _Token | None:
        token = self._peek()
        if token is None or token.kind != kind or value not in (None, token.value):
            return None
        self._next += 1
        return token

    def _need(self, kind: str, value: str | None, what: str) -> _Token:
        token = self._take(kind, value)
        if token is None:
            self._fail(f"{what} is missing", self._peek())
        return token

    def _fail(self, problem: str, token: _Token | None) -> NoReturn:
        where = "at the end" if token is None else f"at {self._text[token.at : token.at + 20]!r}"
        raise InputError(f"{Param('where', self._text)}: {problem} {where}; {EXAMPLE}")


def _as_number(text: str) -> int | float:
    return float(text) if set(text) & set(".eE") else int(text)
