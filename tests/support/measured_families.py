"""The graphs of benchmarks/families.py with their rulers, made once for all tests."""

from functools import cache

from benchmarks.families import FAMILIES, Family, Ruler


@cache
def family_and_ruler(name: str) -> tuple[Family, Ruler]:
    """Return a family, and a ruler of its graph; making it takes longer than measuring."""
    family = FAMILIES[name]()
    return family, Ruler(family.graph)
