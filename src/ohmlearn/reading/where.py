"""The small language of ``where``: which rows of a table count.

    condition  = any {"or" any};  any = all {"and" all};  all = ["not"] (test | "(" condition ")")
    test       = column operator value | value operator column
               | column ["not"] "in" "(" value {"," value} ")" | column "is" ["not"] "null"
    operator   = "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">="

A value is a number, a text in single quotes, true or false. A column is a name; one with unusual
characters is in double quotes or backticks. Python's grammar is the same but for some marks, so its
parser reads the text, with names in place of columns and values. Nothing is ever executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from ohmlearn.errors import InputError, Param

TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
  | (?P<text>'(?:[^']|'')*')
  | (?P<name>"(?:[^"]|"")+"|`(?:[^`]|``)+`)
  | (?P<word>[^\W\d]\w*(?:\.\w+)*)
  | (?P<mark>==|!=|<>|<=|>=|[=<>(),])
)""",
    re.VERBOSE,
)
PYTHON = {"=": "==", "<>": "!=", "null": "None"}  # what is written in another way
WORDS = ("and", "or", "not", "in", "is", "null")
OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "=", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
EXAMPLE = "write for example amount > 10 and kind in ('buy', 'sell')"
MOST = 200  # conditions that "and", "or", "not" and parentheses may join


class Condition(NamedTuple):
    """Conditions that "and", "or" or "not" joins; else a column that is tested, and values."""

    operator: str
    parts: tuple[Any, ...]


class Token(NamedTuple):
    """A column, a value, or a mark in Python; and where it starts in the text."""

    type: str
    value: object
    at: int


@lru_cache(maxsize=64)
def parse_where(text: str) -> Condition:
    """Return the condition that a text means."""
    return _Parser(text).parse()


def tests_of(condition: Condition) -> Iterator[Condition]:
    """Yield the tests that a condition joins."""
    if condition.operator in ("and", "or", "not"):
        for part in condition.parts:
            yield from tests_of(part)
    else:
        yield condition


def columns_of(condition: Condition) -> list[str]:
    """Return the columns that a condition needs, each once, in the order of the text."""
    return list(dict.fromkeys(test.parts[0] for test in tests_of(condition)))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: dict[int, Token] = {}  # by position in the Python expression
        self._code = ""
        for token in self._split():
            self._tokens[len(self._code)] = token
            self._code += f"{token.value if token.type == 'mark' else 'x'} "

    def parse(self) -> Condition:
        if not self._code:
            raise InputError(f"{Param('where')} is empty", remedy=EXAMPLE)
        marks = [token.value for token in self._tokens.values() if token.type == "mark"]
        if sum(mark in ("and", "or", "not", "(") for mark in marks) > MOST:
            raise InputError(
                f"{Param('where')} has more than {MOST} conditions",
                remedy="use in (...) for many values",
            )
        try:
            tree = ast.parse(self._code, mode="eval").body
        except SyntaxError as error:
            is_open = marks.count("(") > marks.count(")")
            problem = "a parenthesis is not closed" if is_open else "cannot be understood"
            self._fail(problem, (error.offset or len(self._code) + 1) - 1)
        return self._translate(tree)

    def _split(self) -> Iterator[Token]:
        at = 0
        while rest := self._text[at:].lstrip():
            found = TOKEN.match(self._text, at)
            if found is None:
                at = len(self._text) - len(rest)
                problem = "a quote is not closed" if rest[0] in "'\"`" else "cannot be understood"
                self._refuse(f"{problem} at {rest[:20]!r}")
            group = str(found.lastgroup)
            text, start, at = found[group], found.start(group), found.end()
            lower, inner = text.lower(), text[1:-1].replace(text[0] * 2, text[0])
            if group == "number":
                is_float = set(text) & set(".eE") or len(text) > 300
                yield Token("value", float(text) if is_float else int(text), start)
            elif group in ("text", "name"):
                yield Token("value" if group == "text" else "column", inner, start)
            elif lower in ("true", "false"):
                yield Token("value", lower == "true", start)
            elif group == "mark" or lower in WORDS:
                yield Token("mark", PYTHON.get(lower, lower), start)
            else:
                yield Token("column", text, start)

    def _translate(self, node: ast.expr) -> Condition:
        match node:
            case ast.BoolOp(op, parts):
                joint = "and" if isinstance(op, ast.And) else "or"
                return Condition(joint, tuple(map(self._translate, parts)))
            case ast.UnaryOp(ast.Not(), part):
                return Condition("not", (self._translate(part),))
            case ast.Compare(left, [ast.Is() | ast.IsNot() as op], [ast.Constant(None)]):
                found = Condition("null", (self._take("column", left),))
                return Condition("not", (found,)) if isinstance(op, ast.IsNot) else found
            case ast.Compare(left, [ast.In() | ast.NotIn() as op], [right]):
                every = right.elts if isinstance(right, ast.Tuple) else [right]
                values = [self._take("value", each) for each in every]
                if len({float if type(value) is int else type(value) for value in values}) != 1:
                    self._fail("must have values of one type", right.col_offset)
                found = Condition("in", (self._take("column", left), *values))
                return Condition("not", (found,)) if isinstance(op, ast.NotIn) else found
            case ast.Compare(left, [op], [right]) if type(op) in OPERATORS:
                operator = OPERATORS[type(op)]
                if self._type_of(left) == "value":
                    left, right, operator = right, left, MIRRORED.get(operator, operator)
                return Condition(operator, (self._take("column", left), self._take("value", right)))
            case ast.Name():
                self._fail("one of = != < <= > >= or in is missing after the name", node.col_offset)
        self._fail("cannot be understood", node.col_offset)

    def _type_of(self, node: ast.expr) -> str | None:
        return self._tokens[node.col_offset].type if isinstance(node, ast.Name) else None

    def _take(self, wanted: str, node: ast.expr) -> Any:
        """Return a column or a value, or say that it is missing."""
        found = self._type_of(node)
        token = self._tokens[node.col_offset]
        if found == wanted:
            return token.value
        problem = "the name of a column is missing"
        if wanted == "value":
            problem = "a number or a text in single quotes is missing"
            if found == "column":
                problem = "a column can only be compared with a value, so write "
                problem += f"'{token.value}' in single quotes for a text,"
        self._fail(problem, node.col_offset)

    def _fail(self, problem: str, position: int) -> NoReturn:
        """Refuse the text because of what is at a position of the Python expression."""
        after = [token for at, token in self._tokens.items() if at >= position]
        if not after:
            self._refuse("a column, a value or a parenthesis is missing at the end")
        self._refuse(f"{problem} at {self._text[after[0].at :][:20]!r}")

    def _refuse(self, problem: str) -> NoReturn:
        raise InputError(f"{Param('where', self._text)}: {problem}", remedy=EXAMPLE)
