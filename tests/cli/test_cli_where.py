"""``--where`` on the command line."""

from pathlib import Path

import numpy as np
import pytest
from commands import refuse, succeed

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("ignore:.*labels are few for:UserWarning")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """All edges, and only those with an amount above 10."""
    random = np.random.default_rng(0)
    rows = [(a, b, n) for a, b, n in zip(*random.integers(0, 60, (3, 4000)), strict=True) if a != b]
    paths = {name: tmp_path / f"{name}.csv" for name in ("all", "some", "more", "labels")}
    for name, chosen in (("all", rows), ("some", [row for row in rows if row[2] > 10])):
        text = "".join(f"n{a},n{b},{n}\n" for a, b, n in chosen)
        paths[name].write_text("src,dst,amount\n" + text)
    paths["more"].write_text("src,dst,amount\nn1,n2,50\nn2,n3,5\n")
    paths["labels"].write_text("node,label\nn1,a\nn2,b\nn3,a\nn4,b\n")
    return paths


def test_the_answers_are_those_of_the_rows_that_count(files, tmp_path):
    outputs = tmp_path / "filtered.csv", tmp_path / "chosen.csv"
    common = ["--labels", files["labels"], "--max-edges", 200, "--seed", 3]
    where = ["--where", "amount > 10 and src is not null"]
    succeed("label", files["all"], *common, *where, "-o", outputs[0])
    succeed("label", files["some"], *common, "-o", outputs[1])
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("amuont > 10", "all.csv: has no column 'amuont' for --where, only 'src', 'dst', 'amount'"),
        ("amount >", "a column, a value or a parenthesis is missing at the end"),
        ("amount > 99", "all.csv: no row fulfils --where amount > 99"),
        ("src > 5", "all.csv, row 2: 'src' is not a number, which --where needs: 'n"),
    ],
)
def test_mistakes_are_one_line(files, tmp_path, where, message):
    output = tmp_path / "out.csv"
    problem = message
    refuse(
        "label",
        files["all"],
        "--labels",
        files["labels"],
        "--where",
        where,
        "-o",
        output,
        said=problem,
    )
    assert not output.exists()


def test_a_state_warns_of_another_filter(files, tmp_path):
    state = tmp_path / "s.ohm"
    common = ["--state", state, "-o", tmp_path / "out.csv"]
    where = ["--where", "amount > 10"]
    succeed("label", files["all"], "--labels", files["labels"], *where, *common)
    problem = f"all.csv: {state} has it with --where"
    refuse("label", files["all"], "--where", "amount <= 10", *common, said=problem)
    result = succeed("label", files["more"], *common)
    assert "has read edges with --where" in result.stderr
    assert "before, but these are read without --where" in result.stderr
    (tmp_path / "last.csv").write_text("src,dst,amount\nn5,n6,50\n")
    result = succeed("label", tmp_path / "last.csv", *common)
    assert "--where" not in result.stderr
