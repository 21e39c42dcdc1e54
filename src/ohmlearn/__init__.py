"""Labels for graphs too dense or too fast to store.

read_edges                     edges from files, tables, objects and addresses
HFSClassifier, HFSRegressor    labels or values of all nodes from a few; with columns about nodes,
                               GraphFeatureClassifier, GraphFeatureRegressor
StreamingSparsifier, sparsify  a small graph with nearly the same energies as all edges
certify, refine                how near it is, and scores of all edges in a few passes
LaplacianSolver, effective_resistance, Graph, EdgeLog, StateFile: what these are made of and kept in

Start with help(ohmlearn.HFSClassifier), the command ``ohmlearn --help``, or the guides in docs/.
"""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.2.0"


def _attach_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose stub lists its names.

    The stub ``__init__.pyi`` is the only list, of names and of modules. They are imported when they
    are first used, so that ``import ohmlearn``, and with it the start of the command line, takes
    milliseconds.
    """
    module = sys.modules[package]
    stub = Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {name: home for home, name in re.findall(r"^from (\S+) import (\w+) as", stub, re.M)}
    modules = {name for name, home in homes.items() if home == package}

    def get(name: str) -> Any:
        if name in modules:
            try:
                return import_module(f"{package}.{name}")  # which also sets the attribute
            except ImportError as error:  # an extra that is not installed
                raise AttributeError(str(error)) from error
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(module, name, value)  # so that the next access does not come here
        return value

    def list_names() -> list[str]:
        own = (name for name in vars(module) if name.startswith("__"))
        return sorted({*own, *homes})

    return get, list_names, sorted(homes.keys() - modules)


__getattr__, __dir__, __all__ = _attach_names(__name__)
