"""What headings of columns mean: the ends of edges, times and measures, and kinds of nodes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from ohmlearn.reading.read_options import EDGE_ENDS, TIMES

__all__ = [
    "MEASURES", "find_ends", "is_id", "is_one_kind", "is_time", "kind_of", "kinds_of_headings",
    "names_kind", "simplify",
]  # fmt: skip

# Words that distinguish the two ends, before or after a common stem: src_ip and dst_ip.
ROLES = (
    ("src", "dst"), ("src", "dest"), ("src", "tgt"), ("source", "target"),
    ("source", "destination"), ("source", "dest"), ("from", "to"), ("origin", "destination"),
    ("start", "end"), ("sender", "receiver"), ("sender", "recipient"), ("left", "right"),
    ("first", "second"), ("u", "v"), ("i", "j"), ("a", "b"), ("1", "2"), ("0", "1"),
)  # fmt: skip
# If several pairs have common stems, those of these are the ends.
ID_STEMS = ("", "id", "node", "node_id", "name")
TIME_ENDINGS = ("_at", "_time", "_date", "_ts", "timestamp", "datetime")
MEASURES = ("amount", "price", "count", "rating", "score", "stars", "value", "quantity", "qty")
# Pairs of roles that things of one kind have.
ONE_KIND = (
    ("seller", "buyer"), ("lender", "borrower"), ("giver", "taker"), ("who", "whom"),
    ("debtor", "creditor"), ("caller", "callee"), ("employee", "manager"), ("parent", "child"),
    ("follower", "following"), ("user", "friend"), ("user", "follower"), ("author", "coauthor"),
    ("winner", "loser"), ("home", "away"), ("subject", "object"), ("head", "tail"),
    ("importer", "exporter"), ("origin", "destination"), ("predecessor", "successor"), ("s", "t"),
    ("left", "right"),
)  # fmt: skip
ROLES_OF_ONE_KIND = frozenset((*ONE_KIND, *EDGE_ENDS))
ID_ENDINGS = (
    "id", "ids", "key", "uid", "uuid", "no", "nr", "number", "num", "code", "name", "hash"
)  # fmt: skip


def simplify(heading: str) -> str:
    """Return a heading in lower case, with underscores between words."""
    parts = re.sub(r"(?<=[^\W_A-Z\d])(?=[A-Z])", "_", heading)
    return re.sub(r"[\W_]+", "_", parts).strip("_").lower()


def kind_of(heading: str) -> str:
    """Return what a column of ids is about: its heading without an ending such as _id."""
    word = simplify(heading)
    for ending in ID_ENDINGS:
        word = word.removesuffix(f"_{ending}")
    return word.removeprefix("id_")


def names_kind(heading: str, kind: str) -> bool:
    """Whether the heading of a column of ids names a kind of nodes."""
    found, kind = kind_of(heading), simplify(kind)
    return found in (kind, f"{kind}s", *(kind + ending for ending in ID_ENDINGS))


def is_id(heading: str) -> bool:
    """Whether a heading says that a column has ids, such as user_id."""
    return simplify(heading).endswith("_id")


def is_time(heading: str) -> bool:
    """Whether a column usually has times, by its heading."""
    name = simplify(heading)
    return name in TIMES or name.endswith(TIME_ENDINGS) or "timestamp" in name


def find_ends(
    headings: Sequence[str],
    usual: Sequence[tuple[str, str]],
    not_ends: Collection[int] = (),
    doubtful: Collection[int] = (),
) -> tuple[int, int] | None:
    """Return the positions of the two columns whose headings say that they are the ends.

    These are a pair of `usual` names, or a pair that differs in its roles only, or the only two
    columns whose headings end with id.
    Returns None if there is no such pair, or more than one. The columns `not_ends` are left out,
    those in `doubtful` unless they have usual names.
    """
    names = ["" if at in not_ends else name.strip().lower() for at, name in enumerate(headings)]
    if (found := _find_pair(names, usual)) is not None:
        return found
    left_out = {at for at, name in enumerate(headings) if is_time(name)} | {*not_ends, *doubtful}
    simple = ["" if at in left_out else simplify(name) for at, name in enumerate(headings)]
    pairs = dict(_pairs_of_roles(simple))
    preferred = [pairs[stem] for stem in ID_STEMS if stem in pairs]
    if preferred or len(pairs) == 1:
        return (preferred or list(pairs.values()))[0]
    if pairs:
        return None
    kinds = [name and kind_of(name) for name in simple]
    if (found := _find_pair(kinds, usual)) is not None:
        return found
    if (found := _find_pair(kinds, ONE_KIND)) is not None:
        return min(found), max(found)
    typed = [at for at, name in enumerate(simple) if name.endswith("_id")]
    return (typed[0], typed[1]) if len(typed) == 2 else None


def _find_pair(names: Sequence[str], usual: Sequence[tuple[str, str]]) -> tuple[int, int] | None:
    """Return the positions of the first pair of usual names."""
    found = (pair for pair in usual if pair[0] in names and pair[1] in names)
    pair = next(found, None)
    return None if pair is None else (names.index(pair[0]), names.index(pair[1]))


def _pairs_of_roles(names: list[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the stem and the positions of pairs such as src_ip and dst_ip."""
    places = {name: at for at, name in reversed(list(enumerate(names))) if name}
    for one, other in reversed(ROLES):  # of one stem, the first pair is used
        for name, at in places.items():
            for stem, partner in _partners(name, one, other):
                if partner in places and stem not in MEASURES:
                    yield stem, (at, places[partner])


def _partners(name: str, one: str, other: str) -> Iterator[tuple[str, str]]:
    """Yield the stem of a name with a role, and the same name with the other role."""
    if name == one:
        if len(one) > 1:  # the letters a and b alone say little
            yield "", other
    elif name.startswith(f"{one}_"):
        stem = name.removeprefix(f"{one}_")
        yield stem, f"{other}_{stem}"
    elif name.endswith(f"_{one}"):
        stem = name.removesuffix(f"_{one}")
        yield stem, f"{stem}_{other}"
    elif one.isdecimal() and name.endswith(one) and not name[: -len(one)][-1:].isdecimal():
        stem = name.removesuffix(one)
        yield stem, stem + other


def kinds_of_headings(one: str, other: str) -> tuple[str, str]:
    """Return names of the two kinds of nodes in two columns."""
    kinds = kind_of(one), kind_of(other)
    if kinds[0] == kinds[1] or not all(map(_is_word, kinds)):
        return "left", "right"
    return kinds


def _is_word(name: str) -> bool:
    """Whether a name is more than one letter; in some languages one is a word."""
    return len(name) > 1 or not name.isascii()


def is_one_kind(one: str, other: str) -> bool:
    """Whether headings look like roles of nodes of one kind, or say nothing about kinds."""
    names = [simplify(one), simplify(other)]
    if not all(map(_is_word, names)) or kind_of(one) == kind_of(other):
        return True
    for pair in (names, names[::-1]):
        kinds = kind_of(pair[0]), kind_of(pair[1])
        if not {tuple(pair), kinds}.isdisjoint(ROLES_OF_ONE_KIND) or dict(_pairs_of_roles(pair)):
            return True
    return False
