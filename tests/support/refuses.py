"""Expect an error by its parts, not by its wording; that is for tests/unit/test_messages.py."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ohmlearn.errors import CLOSE, OPEN, InputError, OhmError

ANY = object()


@contextmanager
def refuses(
    error: type[OhmError] = InputError, *, parameter: str, value: Any = ANY, row: int | None = None
) -> Iterator[pytest.ExceptionInfo[OhmError]]:
    """Expect an error about a parameter with a value, at a row of a source."""
    with pytest.raises(error) as caught:
        yield caught
    found = caught.value
    assert found.parameter == parameter, str(found)
    if value is not ANY:
        assert found.value == str(value), str(found)
    if row is not None:
        assert found.place is not None, str(found)
        assert found.place.row == row, str(found)
    assert OPEN not in str(found), "a token was put into an error that does not render it"
    assert CLOSE not in str(found)
