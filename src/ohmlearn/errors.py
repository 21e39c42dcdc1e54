"""Errors as data: the parameter, its value, what is wrong, what to do about it, and where.

A message names parameters with `Param`, and each interface writes them in its own way::

    raise InputError(
        f"{Param('max_edges', 30)} is fewer than two edges for each of 40 nodes",
        remedy=f"give {Param('max_edges')} at least 80",
    )

    Python         max_edges = 30 is fewer than two edges for each of 40 nodes; give max_edges ...
    command line   --max-edges 30 is fewer than two edges for each of 40 nodes; give --max-edges
    HTTP           {"message": ..., "parameter": "max_edges", "value": "30"}

Inside a text, a `Param` is a token between three characters of Unicode's private use area. So texts
with parameters are put together with f-strings like any other, and no interface has to search prose
for names. `render` replaces the tokens; everything that shows a message to a person calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

__all__ = [
    "InputError",
    "InputTypeError",
    "OhmError",
    "OhmWarning",
    "Param",
    "Place",
    "Setting",
    "SourceError",
    "Style",
    "python_style",
    "render",
]

OPEN, NEXT, CLOSE = "\ue000", "\ue001", "\ue002"
UNSET = object()


class Mention(NamedTuple):
    """A parameter in a message, as a style gets it."""

    name: str
    value: str | None  # as repr() writes it
    plain: str | None  # as str() writes it
    is_setting: bool  # something to do, not something that was given


Style = Callable[[Mention], str]


class Param:
    """A parameter in a message, perhaps with the value that was given for it.

    Examples
    --------
    >>> from ohmlearn.errors import Param, render
    >>> render(f"{Param('memory', '5MB')} needs {Param('n_nodes')}")
    "memory = '5MB' needs n_nodes"
    """

    is_setting = False

    def __init__(self, name: str, value: Any = UNSET) -> None:
        self.name, self.value = name, value

    def __format__(self, _: str) -> str:
        values = () if self.value is UNSET else (repr(self.value), str(self.value))
        parts = (self.name, "=" if self.is_setting else "", *values)
        return OPEN + NEXT.join(_without_marks(part) for part in parts) + CLOSE

    def __str__(self) -> str:
        return format(self)


class Setting(Param):
    """A parameter and the value to give it: what to do, in a remedy.

    Examples
    --------
    >>> from ohmlearn.errors import Setting, render
    >>> render(f"correct it, or use {Setting('on_bad', 'skip')}")
    'correct it, or use on_bad="skip"'
    """

    is_setting = True


def _without_marks(text: str) -> str:
    return text.replace(OPEN, "").replace(NEXT, "").replace(CLOSE, "")


def python_style(mention: Mention) -> str:
    """Write a parameter as Python does."""
    if mention.value is None:
        return mention.name
    if not mention.is_setting:
        return f"{mention.name} = {mention.value}"
    is_text = mention.value == f"'{mention.plain}'" and '"' not in mention.value
    return f'{mention.name}="{mention.plain}"' if is_text else f"{mention.name}={mention.value}"


def render(text: str, style: Style = python_style) -> str:
    """Return a text in which each parameter is written in a style."""
    return "".join(part if isinstance(part, str) else style(part) for part in _parts(text))


def _parts(text: str) -> Iterator[str | Mention]:
    while (start := text.find(OPEN)) >= 0 and (end := text.find(CLOSE, start)) >= 0:
        name, sign, value, plain = (*text[start + 1 : end].split(NEXT), None, None)[:4]
        yield text[:start]
        yield Mention(str(name), value, plain, bool(sign))
        text = text[end + 1 :]
    yield text


class Place(NamedTuple):
    """Where something is wrong: a source, and a row of it or another part."""

    source: str
    row: int | None = None
    part: str | None = None  # instead of a row, such as "byte 17" or "entry 3"

    def __str__(self) -> str:
        where = self.part if self.row is None else f"row {self.row}"
        return self.source if where is None else f"{self.source}, {where}"


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

    Attributes
    ----------
    parameter, value : str or None
        The first parameter that the message names, and its value as text.
    """

    def __init__(
        self, message: str, *, remedy: str | None = None, place: Place | None = None
    ) -> None:
        self.message, self.remedy, self.place = message, remedy, place
        super().__init__(self.render())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._from_parts, (self.message, self.remedy, self.place), self.__dict__

    @classmethod
    def _from_parts(cls, message: str, remedy: str | None, place: Place | None) -> OhmError:
        error = cls.__new__(cls)
        OhmError.__init__(error, message, remedy=remedy, place=place)
        return error

    @property
    def parameter(self) -> str | None:
        mention = self._first_mention()
        return None if mention is None else mention.name

    @property
    def value(self) -> str | None:
        mention = self._first_mention()
        return None if mention is None else mention.plain

    def _first_mention(self) -> Mention | None:
        parts = (part for part in _parts(self.message) if isinstance(part, Mention))
        return next((part for part in parts if not part.is_setting), None)

    def render(self, style: Style = python_style, *, with_place: bool = True) -> str:
        """Return the whole message in one line, with parameters written in a style."""
        text = self.message if self.remedy is None else f"{self.message}; {self.remedy}"
        if self.place is not None and with_place:
            text = f"{self.place}: {text}"
        return render(text, style)


class InputError(OhmError, ValueError):
    """A value that was given is wrong."""


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

    def render(self, style: Style = python_style) -> str:
        """Return the message with parameters written in a style."""
        return render(self.message, style)
