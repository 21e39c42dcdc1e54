"""Errors as data: the parameter, its value, what is wrong, what to do about it, and where.

A message names parameters with `Param`, and each interface writes them in its own way::

    raise InputError(
        f"{Param('max_edges', 30)} is fewer than two edges for each of 40 nodes",
        remedy=f"leave it out, or use {Setting('max_edges', 80)}",
    )

    Python         max_edges = 30 is fewer than two edges for each of 40 nodes; leave it out, or
                   use max_edges=80
    command line   --max-edges 30 is fewer ... or use --max-edges 80
    HTTP           {"message": ..., "parameter": "max_edges", "value": "30"}

Inside a text, a `Param` is a token between three characters of Unicode's private use area. So texts
with parameters are put together with f-strings like any other, and no interface has to search prose
for names. `render` replaces the tokens; everything that shows a message to a person calls it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = [
    "InPython",
    "InputError",
    "InputTypeError",
    "OhmError",
    "OhmWarning",
    "Param",
    "Place",
    "Setting",
    "SourceError",
    "Style",
    "bad_value",
    "python_style",
    "query_style",
    "render",
    "text_of",
]

OPEN, NEXT, CLOSE = "\ue000", "\ue001", "\ue002"
# Name and sign, perhaps with two texts of the value; marks elsewhere are text, perhaps of a user.
FIELD = f"([^{OPEN}{NEXT}{CLOSE}]*)"
TOKEN = re.compile(f"{OPEN}{FIELD}{NEXT}{FIELD}(?:{NEXT}{FIELD}{NEXT}{FIELD})?{CLOSE}")
UNSET: Any = object()


class Mention(NamedTuple):
    """A parameter in a message, as a style gets it."""

    name: str
    sign: str  # "", "=" for something to do, "|" for words of Python
    value: str | None = None  # as repr() writes it
    plain: str | None = None  # as str() writes it


Style = Callable[[Mention], str]


class Param:
    """A parameter in a message, perhaps with the value that was given for it."""

    sign = ""

    def __init__(self, name: str, value: Any = UNSET) -> None:
        self.name, self.value = name, value

    def __str__(self) -> str:
        parts = [self.name, self.sign]
        if self.value is not UNSET:
            parts += [_in_python(self.value), _in_plain_text(self.value)]
        without_marks = (re.sub(f"[{OPEN}{NEXT}{CLOSE}]", "", part) for part in parts)
        return OPEN + NEXT.join(without_marks) + CLOSE


class Setting(Param):
    """A parameter and the value to give it: what to do, in a remedy. The value may be ``...``."""

    sign = "="


class InPython(Param):
    """Words that only Python has, such as an attribute, and what other interfaces say instead."""

    sign = "|"

    def __init__(self, words: str, elsewhere: str = "") -> None:
        super().__init__(words, elsewhere)


def _in_python(value: Any) -> str:
    if value is ...:
        return "..."
    text = repr(value.item() if getattr(value, "ndim", None) == 0 else value)  # without np.int64()
    return text.replace("'", '"') if isinstance(value, tuple) and '"' not in text else text


def _in_plain_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, float) and value.is_integer():
        return str(value).removesuffix(".0")  # people write 7, not 7.0
    return "..." if value is ... else str(value)


def python_style(mention: Mention) -> str:
    """Write a parameter as Python does."""
    if mention.value is None:
        return mention.name
    if not mention.sign:
        return f"{mention.name} = {mention.value}"
    if mention.value == f"'{mention.plain}'" and '"' not in mention.value:
        return f'{mention.name}="{mention.plain}"'
    return f"{mention.name}={'math.inf' if mention.value == 'inf' else mention.value}"


def query_style(mention: Mention) -> str:
    """Write a parameter as in the query of an address, for clients of the server."""
    sign = mention.sign or " = "
    return mention.name if mention.plain is None else f"{mention.name}{sign}{mention.plain}"


def render(text: str, style: Style = python_style) -> str:
    """Return a text in which each parameter is written in a style."""

    def write(token: re.Match[str]) -> str:
        mention = Mention(*token.groups())
        if mention.sign != InPython.sign:
            return style(mention)
        return mention.name if style is python_style else str(mention.plain)

    return TOKEN.sub(write, text)


class Place(NamedTuple):
    """Where something is wrong: a source, and a row of it or another part."""

    source: str  # "" if it is clear
    row: int | None = None
    part: str | None = None  # instead of a row, such as "byte 17" or "entry 3"

    def __str__(self) -> str:
        where = self.part if self.row is None else f"row {self.row}"
        return ", ".join(part for part in (self.source, where) if part)


class OhmError(Exception):
    """An error whose parts are data.

    Parameters
    ----------
    message : str
        What is wrong. It names parameters with `Param`.
    remedy : str, optional
        What to do about it.
    place : Place, optional
        Where it is.
    value : object, optional
        The value of the first parameter that the message names, unless its `Param` has it.

    Attributes
    ----------
    parameter, value : str or None
        The first parameter that the message names, and its value as text.
    """

    def __init__(
        self,
        message: str,
        *,
        remedy: str | None = None,
        place: Place | None = None,
        value: Any = UNSET,
    ) -> None:
        self.message, self.remedy, self.place = message, remedy, place
        mentions = (Mention(*token.groups()) for token in TOKEN.finditer(message))
        first = next((mention for mention in mentions if not mention.sign), Mention("", ""))
        self.parameter: str | None = first.name or None
        self.value: str | None = first.plain if value is UNSET else str(value)
        super().__init__(self.render())

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses may need other arguments, so __init__ is not called again.
        return _restore, (type(self), *self.args), self.__dict__

    def render(self, style: Style = python_style, *, with_place: bool = True) -> str:
        """Return the whole message, with parameters written in a style."""
        return render(self.text(with_place=with_place), style)

    def text(self, *, with_place: bool = True) -> str:
        """Return the whole message; parameters are still tokens."""
        text = self.message if self.remedy is None else f"{self.message}; {self.remedy}"
        return text if self.place is None or not with_place else f"{self.place}: {text}"


def _restore(cls: type[OhmError], *args: Any) -> OhmError:
    error = cls.__new__(cls, *args)
    error.args = args  # OSError leaves them to __init__
    return error


def text_of(error: BaseException) -> str:
    """Return what an error says in one line, for the message of another `OhmError`."""
    text = error.text() if isinstance(error, OhmError) else str(error)
    return " ".join(text.split()) or type(error).__name__


class InputError(OhmError, ValueError):
    """A value that was given is wrong.

    Examples
    --------
    >>> from ohmlearn import gallery, sparsify
    >>> from ohmlearn.errors import InputError
    >>> try:
    ...     sparsify(gallery.path(40), max_edges=30)
    ... except InputError as error:
    ...     print(error.parameter, error.value)
    max_edges 30
    """


def bad_value(
    name: str, must: str, value: Any, remedy: str | None = None, owner: str = ""
) -> InputError:
    """Return the error of a parameter whose value is not what it must be."""
    message = f"{Param(name)}{InPython(owner)} must {must}, got {_in_python(value)}"
    return InputError(message, value=value, remedy=remedy)


class InputTypeError(OhmError, TypeError):
    """Something of the wrong type was given."""


class SourceError(InputError):
    """A source of edges, labels or features cannot be read; the message names source and row.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn import read_edges
    >>> from ohmlearn.reading import SourceError
    >>> try:
    ...     for batch in read_edges((np.array([0]), np.array([1]), np.array([-2.0]))):
    ...         pass
    ... except SourceError as error:
    ...     print(error)
    the arrays, row 0: weights must not be negative nor above 1e+27, nor below 1.2e-38 unless 0, got
    -2.0; ...
    """

    __module__ = "ohmlearn.reading"  # where users import it from; tracebacks show it


class OhmWarning(UserWarning):
    """A warning that names parameters with `Param`, as errors do."""

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(render(message))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,)

    def render(self, style: Style = python_style) -> str:
        """Return the message with parameters written in a style."""
        return render(self.message, style)
