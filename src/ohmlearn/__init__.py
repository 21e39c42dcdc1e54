"""Labels for graphs too dense or too fast to store."""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.2.0.dev0"


def _attach_names(package: str) -> tuple[Callable[[str], Any], list[str]]:
    """Return `__getattr__` and `__all__` of a package whose public names its stub lists.

    The stub ``__init__.pyi`` is the only list. A name is imported when it is first used, so that
    ``import ohmlearn``, and with it the start of the command line, takes milliseconds.
    """
    module = sys.modules[package]
    stub = Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {name: home for home, name in re.findall(r"^from (\S+) import (\w+) as", stub, re.M)}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(module, name, value)  # so that the next access does not come here
        return value

    return get, sorted(homes)


__getattr__, __all__ = _attach_names(__name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
