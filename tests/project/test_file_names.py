"""Each file name in tests/ belongs to one file, so a name in a message or a search is enough."""

from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_file_names_are_unique():
    places = defaultdict(list)
    for path in sorted(TESTS.rglob("*.py")):
        places[path.name].append(str(path.relative_to(TESTS)))
    places.pop("conftest.py", None)  # pytest prescribes this name, one per folder
    assert places[Path(__file__).name] == ["project/test_file_names.py"]
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
