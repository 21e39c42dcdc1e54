"""Warnings that name the line of the caller."""

import contextlib
import sys
import warnings
from pathlib import Path

PACKAGE = str(Path(__file__).parent)
DECORATORS = contextlib.contextmanager.__code__.co_filename  # contexts that decorate functions


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package from which it was called."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((PACKAGE, DECORATORS)):
        level, frame = level + 1, frame.f_back
    # As an object: filters by message then see its text, not the tokens of an OhmWarning.
    warnings.warn(category(message), stacklevel=level)
