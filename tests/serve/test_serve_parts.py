"""Small parts of a service: its clock, its database, its answers."""

import logging

import numpy as np
import pytest
from click.testing import CliRunner
from pyarrow import csv
from serve_cases import LabelRow, make_edges, serving, three_labels, wait_for_answers

from ohmlearn import NodeTable
from ohmlearn.cli import main
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.answer_store import Answers, Changes, find_changes, find_numbers, name_nodes
from ohmlearn.serve.database import Database, Offset, Receipt
from ohmlearn.serve.edge_intake import Clock
from ohmlearn.serve.settings import Settings


class Clocks:
    """The two clocks of a system, set by a test."""

    def __init__(self, monkeypatch):
        self.wall, self.steady = 1.7e9, 100.0
        monkeypatch.setattr("time.time", lambda: self.wall)
        monkeypatch.setattr("ohmlearn.serve.edge_intake.steady_time", lambda: self.steady)

    def go(self, seconds, jump=0.0):
        """Let time pass, and set the clock of the system by `jump`."""
        self.steady += seconds
        self.wall += seconds + jump


def test_a_clock_that_jumps_is_not_believed_at_once(monkeypatch, caplog):
    clocks = Clocks(monkeypatch)
    clock = Clock()
    clocks.go(5.0, jump=30.0)  # a correction
    assert clock.now() == 1.7e9 + 35.0
    clocks.go(1.0, jump=3e8)
    with caplog.at_level(logging.WARNING):
        assert clock.now() == pytest.approx(1.7e9 + 36.0)
    assert "the clock has jumped by 300000000 s; ignored" in caplog.text
    clocks.go(100.0, jump=-3e8)  # and back
    assert clock.now() == pytest.approx(1.7e9 + 136.0)
    clocks.go(1.0, jump=-1e6)
    assert clock.now() == pytest.approx(1.7e9 + 137.0)
    clocks.go(601.0)
    with caplog.at_level(logging.WARNING):
        assert clock.now() == pytest.approx(1.7e9 + 738.0 - 1e6)
    assert "the clock stays set by -1000000 s; believed" in caplog.text


def test_edges_without_a_time_get_the_present_one_and_any_order_is_taken(tmp_path):
    u, v, w, _ = make_edges(600)
    with serving(tmp_path / "s", half_life="1h") as service:
        service.put_labels(three_labels())
        for at, times in enumerate([np.full(200, 1.7e9), None, np.full(200, 1.2e9)]):
            part = slice(200 * at, 200 * at + 200)
            service.submit(RawBatch(u[part], v[part], w[part], t=times)).result(30)
        wait_for_answers(service)
        latest = service.envelope()["watermark"]["time"]
        assert abs(latest - Clock().now()) < 60
        graph = service._labeller.solved.graph
        assert service.status()["problems"] == []
    total = float(graph.edges()[2].sum())
    assert total == pytest.approx(w[200:400].sum(), rel=1e-3)  # the others have faded long ago


def test_ids_and_offsets_of_operations_that_the_log_lost_are_forgotten(tmp_path):
    database = Database(tmp_path / "x.sqlite")
    receipts = [Receipt(10, operation=number) for number in range(1, 7)]
    places = [Offset("t", number % 2, 100 + number) for number in range(1, 7)]
    operations = [receipt.operation for receipt in receipts]
    names = [f"b{number}" for number in operations]
    database.keep_column("event_id", "id")
    database.record(
        dict(zip(names, receipts, strict=True)),
        list(zip(places, operations, strict=True)),
        {number: np.array([10 + number], np.uint64) for number in operations},
    )
    assert database.next_offsets("t") == {0: 107, 1: 106}
    database.forget_after(4)
    assert database.next_offsets("t") == {0: 105, 1: 104}
    assert database.find_batch("b5") is None
    assert database.find_batch("b4") == Receipt(10, operation=4)
    assert database.events().tolist() == [11, 12, 13, 14]
    database.prune(4, most=2)
    assert [database.find_batch(name) is not None for name in names[:4]] == [
        False, False, True, True
    ]  # fmt: skip
    assert database.next_offsets("t") == {0: 105, 1: 104}
    database.close()


def test_pruning_keeps_offsets_that_may_be_needed_after_a_crash(tmp_path):
    database = Database(tmp_path / "x.sqlite")
    for operation in (1, 2, 3):
        database.record({}, [(Offset("t", 0, 10 * operation), operation)], {})
    database.prune(2, most=10)  # operation 3 is not durable yet
    database.forget_after(2)
    assert database.next_offsets("t") == {0: 21}
    database.close()


def test_a_database_of_another_version_is_refused(tmp_path):
    database = Database(tmp_path / "x.sqlite")
    database._connection.execute("PRAGMA user_version = 7")
    database.close()
    with pytest.raises(ValueError, match="has version 7, but this version of ohmlearn reads"):
        Database(tmp_path / "x.sqlite")


def answers_of(codes, classes, version=1):
    """Return answers in which each label has the probability 0.75."""
    shares = np.full((len(codes), len(classes)), 0.25, np.float32)
    codes = np.array(codes, np.int32)
    rows = np.flatnonzero(codes >= 0)
    shares[rows, codes[rows]] = 0.75
    return Answers(version, list(classes), codes, shares, np.array([0], np.int32))


def test_changes_between_answers_with_other_classes():
    nodes = NodeTable()
    nodes.add(["ann", "bob", "cy", "dan", "eve"])
    before = answers_of([0, 1, 1, -1], ["a", "b"])
    after = answers_of([1, 0, 1, 0, -1], ["b", "a"], 2)  # ann a, bob b, cy a, dan b
    found = Changes.unpack(find_changes(before, after).pack())
    assert name_nodes(nodes, found.describe(0, 10)) == [
        {"node": "cy", "before": "b", "after": "a", "probability": 0.75},
        {"node": "dan", "before": None, "after": "b", "probability": 0.75},
    ]
    gone = name_nodes(nodes, find_changes(after, Answers.empty(3, 5)).describe(0, 10))
    assert [(one["node"], one["before"], one["after"]) for one in gone] == [
        ("ann", "a", None), ("bob", "b", None), ("cy", "a", None), ("dan", "b", None),
    ]  # fmt: skip


def test_saved_answers_are_checked(tmp_path):
    path = tmp_path / "answers.ohm"
    answers = answers_of([0, 1, -1], ["a", "b"], 7)
    answers.save(path)
    loaded = Answers.load(path)
    np.testing.assert_array_equal(loaded.codes, answers.codes)
    np.testing.assert_array_equal(loaded.probabilities, answers.probabilities)
    assert (loaded.version, loaded.classes, loaded.latest) == (7, ["a", "b"], -np.inf)
    content = bytearray(path.read_bytes())
    content[-30] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=str(path)):
        Answers.load(path)


def test_ids_are_found_by_text_or_number():
    names, numbers = NodeTable(), NodeTable()
    names.add(["17", "x"])
    numbers.add([17, -5])
    ids = [17, "17", "x", "-5", "+17", "017", "", 10**40, "1_7"]
    assert find_numbers(names, ids).tolist() == [0, 0, 1, -1, -1, -1, -1, -1, -1]
    assert find_numbers(numbers, ids).tolist() == [0, 0, -1, 1, -1, -1, -1, -1, -1]
    assert find_numbers(NodeTable(), ids).tolist() == [-1] * 9


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"half_life": "1d", "window": "2d"}, "exclude each other"),
        ({"half_life": 0.01}, "half_life = 0.01 is shorter than a second"),
        ({"window": "soon"}, "window"),
        ({"epsilon": 1.5}, "epsilon"),
        ({"passes": 0}, "passes"),
        ({"every_edges": 0}, "every_edges"),
    ],
)
def test_bad_settings(given, message):
    with pytest.raises(ValueError, match=message):
        Settings(**given)


@pytest.mark.parametrize(("n_edges", "n_removed"), [(600, 100), (6000, 0)])
def test_answers_with_features_are_those_of_a_file(tmp_path, n_edges, n_removed):
    """After removals if no edge was dropped, and with dropped edges if none was removed."""
    u, v, w, _ = make_edges(n_edges, 150)
    people, known = tmp_path / "people.csv", tmp_path / "known.csv"
    sizes = np.arange(150) % 3 + np.random.default_rng(1).normal(size=150)
    people.write_text("id,size\n" + "".join(f"{i},{x:.3f}\n" for i, x in enumerate(sizes)))
    labels = [LabelRow(node, f"group {node % 3}") for node in range(40)]
    known.write_text("node,label\n" + "".join(f"{one.node},{one.label}\n" for one in labels))
    with serving(tmp_path / "s", features={"path": str(people)}) as service:
        for part in np.array_split(np.arange(n_edges), 7):
            service.submit(RawBatch(u[part], v[part], w[part])).result(60)
        if n_removed:
            gone = RawBatch(u[:n_removed], v[:n_removed])
            service.submit(gone, is_removal=True).result(60)
        service.put_labels(labels)
        wait_for_answers(service)
        kept = service._labeller.solved.kept.graph.n_edges
        assert kept < 500 if n_removed else kept < 1500
        found = {row["node"]: row for row in service.lookup(list(range(150)))["results"]}
    files = ["--labels", known, "--features", people, "--passes", "1", "-o", tmp_path / "out.csv"]
    done = CliRunner().invoke(main, ["label", *map(str, [tmp_path / "s" / "log", *files])])
    assert done.exit_code == 0, done.output
    for row in csv.read_csv(tmp_path / "out.csv").to_pylist():
        assert found[row["node"]]["label"] == row["label"]
        for name, p in found[row["node"]]["probabilities"].items():
            assert p == pytest.approx(row[f"probability_{name}"], abs=1e-6)
