"""The option ``--class-prior``: shares of classes as text."""

import math
import re
from typing import Any

import click

__all__ = ["check_shares", "read_shares"]

SHARE = re.compile(r"\s*(.+?)=([^=,]*)(?:,|$)")  # a name may have commas and equals signs


def read_shares(given: tuple[str, ...], labels: dict[str, Any]) -> Any:
    """Return the class prior of `HFSClassifier`; its keys are classes of the labels.

    Examples
    --------
    >>> read_shares(("1=0.7,2=0.3",), {"ann": 1, "bob": [1, 2]})
    {1: 0.7, 2: 0.3}
    >>> read_shares(("Smith, J.=3", "a=b=1"), {"ann": "Smith, J."})
    {'Smith, J.': 3.0, 'a=b': 1.0}
    """
    if not given or given == ("labels",):
        return given[0] if given else None
    classes = {}
    for label in labels.values():
        for one in label if isinstance(label, list | dict) else [label]:
            classes[str(one)] = one  # labels may be integers
    shares: dict[Any, float] = {}
    for text in given:
        end = 0
        while end < len(text):
            found = SHARE.match(text, end)
            if found is None:
                raise click.UsageError(
                    f"--class-prior needs NAME=SHARE, such as ham=0.7,spam=0.3, or labels alone, "
                    f"got {text!r}"
                )
            name, end = classes.get(found[1], found[1]), found.end()
            if name in shares:
                raise click.UsageError(f"--class-prior has two shares of {name!r}")
            shares[name] = _read_share(found[2], str(name))
    return shares


def _read_share(text: str, name: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0.0 < share < math.inf:
        raise click.UsageError(
            f"--class-prior: the share of {name!r} must be a positive number, got {text!r}"
        )
    return share


def check_shares(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what is not a share, before anything is read."""
    read_shares(given, {})
    return given
