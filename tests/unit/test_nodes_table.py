"""Tables of nodes: kinds of input, size, errors."""

import resource
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from refuses import refuses

from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_ids import CodedIds, encode_strings
from ohmlearn.nodes.node_table import add_ends, are_reordered, join_tables, look_up, number_ends


def test_many_shuffled_and_sparse_integers():
    rng = np.random.default_rng(0)
    dense = rng.permutation(300_000)
    sparse = rng.integers(-(2**62), 2**62, 100_000)
    stream = np.concatenate([dense, sparse, dense[::3]])
    table = NodeTable()
    numbers = np.concatenate([table.add(part) for part in np.array_split(stream, 7)])
    np.testing.assert_array_equal(table.ids()[numbers], stream)
    _, first = np.unique(stream, return_index=True)
    np.testing.assert_array_equal(table.ids(), stream[np.sort(first)])


def test_many_strings():
    names = [f"node {i * 7919 % 100_003:x}" for i in range(150_000)]
    table = NodeTable()
    u, v = table.add_edges(names[::2], names[1::2])
    assert table.ids().tolist() == list(dict.fromkeys(names))
    np.testing.assert_array_equal(table.find(names[::2]), u)
    np.testing.assert_array_equal(table.find(names[1::2]), v)


def test_a_huge_id_does_not_allocate():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    table = NodeTable()
    assert table.add([2**63 - 1, 0, -(2**63), 2**40]).tolist() == [0, 1, 2, 3]
    unit = 1 if sys.platform == "darwin" else 1024
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 64e6


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint16, np.uint32, np.uint64])
def test_integer_types(dtype):
    table = NodeTable()
    u, v = table.add_edges(np.array([3, 5], dtype=dtype), np.array([5, 9], dtype=np.int32))
    assert (u.tolist(), v.tolist()) == ([0, 1], [1, 2])
    assert table.ids().tolist() == [3, 5, 9]
    assert table.kind == "int64"


def test_string_types():
    pa = pytest.importorskip("pyarrow")
    names = ["x", "yy", "", "x"]
    for make in (
        np.array,
        lambda s: np.array(s, dtype=object),
        pa.array,
        lambda s: pa.array(s, type=pa.large_string()),
        lambda s: pa.array(s, type=pa.string_view()),
        lambda s: pa.array(s).dictionary_encode(),
        lambda s: pa.chunked_array([s[:1], s[1:]]),
        lambda s: pa.array(["no", *s, "no"])[1:5],
    ):
        table = NodeTable()
        assert table.add(make(names)).tolist() == [0, 1, 2, 0]
        assert table.ids().tolist() == ["x", "yy", ""]
        assert table.to_arrow().to_pylist() == ["x", "yy", ""]
    mixed = NodeTable()
    mixed.add_edges(pa.array(names), pa.array(names, type=pa.large_string()))
    assert mixed.ids().tolist() == ["x", "yy", ""]


def test_empty():
    table = NodeTable()
    assert table.find([1, 2], missing="mask").mask.tolist() == [True, True]
    assert len(table.ids()) == 0
    assert len(table.add([])) == 0
    assert table.add(["a"]).tolist() == [0]  # earlier calls did not decide the kind of ids
    assert len(NodeTable().merge(NodeTable())) == 0
    assert NodeTable.from_state(NodeTable().get_state()).kind is None


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (TypeError, r"u\[1\] = 2.5 is a float", lambda t: t.add_edges(["a", 2.5], ["b", "c"])),
        (TypeError, "ids has dtype complex128", lambda t: t.add(np.array([1j]))),
        (ValueError, r"whole numbers .* got 1.5 as ids\[1\]", lambda t: t.add(np.array([1, 1.5]))),
        (ValueError, r"a node id is missing: ids\[1\]", lambda t: t.add([1, None])),
        (ValueError, "2 of 3 ids are not in the table: 7, 9", lambda t: t.find([7, 1, 9])),
        (TypeError, "were integers so far, but now strings", lambda t: t.add(["x"])),
        (TypeError, "were strings so far, but now integers", lambda t: t.add_edges(["x"], [1])),
        (ValueError, r"fit int64, but ids\[1\] = 9223372036854775808", lambda t: t.add([0, 2**63])),
        (ValueError, "fit int64", lambda t: t.add([-(2**63) - 1, 2**64])),
        (ValueError, "fit int64", lambda t: t.add(np.array([2**63], dtype=np.uint64))),
        (ValueError, "one-dimensional", lambda t: t.add([[1]])),
        (ValueError, "lone surrogate", lambda t: t.add(["\ud800"])),
        (ValueError, "node number 2 is out of range; the table has 2 nodes", lambda t: t.ids([2])),
        (ValueError, "must be integers", lambda t: t.ids([0.5])),
        (ValueError, "equally long", lambda t: t.add_edges([1, 2], [1])),
    ],
)
def test_bad_ids_are_refused(error, message, call):
    table = NodeTable()
    table.add([1, 2])
    with pytest.raises(error, match=message):
        call(table)
    assert table.ids().tolist() == [1, 2]


def table(ids):
    nodes = NodeTable()
    nodes.add(ids)
    return nodes


@pytest.mark.parametrize(
    ("ids", "others", "agree"),
    [
        (["a", "b"], ["a", "b", "c"], True),
        (["a", "b"], ["a", "b"], True),
        (["a", "b"], [], True),
        (["a", "b"], ["b", "a"], False),
        (["ab", "c"], ["a", "bc"], False),  # the same bytes, split elsewhere
        (["a", "b"], ["a", "c", "d"], False),
        ([7, -3], [7, -3, 2**62], True),
        ([7, -3], [7, 3], False),
        ([1], ["1"], False),
    ],
)
def test_tables_agree_if_one_is_the_beginning_of_the_other(ids, others, agree):
    one, other = table(ids), table(others)
    assert one.agrees_with(other) is agree
    assert other.agrees_with(one) is agree
    assert one.agrees_with(one)
    if agree:
        longer = max(one, other, key=len)
        assert join_tables(one, other).ids().tolist() == longer.ids().tolist()
        assert join_tables(None, one) is join_tables(one, None) is one
    else:
        with pytest.raises(ValueError, match="numbered in two ways"):
            join_tables(one, other)


@pytest.mark.parametrize("ids", [[7, -(2**40), 5, 8], ["x", "", "häuser", "y" * 40]])
@pytest.mark.parametrize(
    "numbers",
    [[2], [], 3, np.int32(1), [[1], [0]], [1, 1, 1], np.array([3, 0], np.uint8), range(4), [2] * 9],
)
def test_some_ids_are_those_of_all(ids, numbers):
    nodes = table(ids)
    found, expected = nodes.ids(numbers), nodes.ids()[np.asarray(numbers, dtype=np.int64)]
    assert type(found) is type(expected)
    if isinstance(found, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.flags.writeable
        found, expected = found.tolist(), expected.tolist()
    assert found == expected


@pytest.mark.parametrize("kind", [np.int64, str])
def test_a_few_ids_do_not_cost_a_copy_of_all(kind):
    nodes = table(np.arange(100_000).astype(kind))
    tracemalloc.start()
    found = nodes.ids([70_000, 3]).tolist()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == [kind(70_000), kind(3)]
    assert peak < 20_000  # bytes


def test_ids_that_are_taken_for_numbers_of_rows():
    assert are_reordered(table([1, 0]))
    assert not any(map(are_reordered, (None, table([0, 1]), table([1, 2]), table(["1", "0"]))))


def test_a_missing_id_is_not_the_last_node():
    table = NodeTable()
    table.add(["ann", "bob"])
    values = np.array([1.0, 2.0])
    with pytest.raises(ValueError, match="1 of 2 ids is not in the table: 'eve'"):
        table.find(["ann", "eve"])
    found = table.find(["ann", "eve"], missing="mask")
    assert found.compressed().tolist() == [0]
    with pytest.raises(IndexError):  # numpy ignores the mask of an index
        values[found]
    many = [f"x{i}" for i in range(9)]
    with pytest.raises(ValueError, match=r"9 of 9 ids are .*: 'x0', 'x1', 'x2', ...; missing"):
        table.find(many)
    with refuses(parameter="missing"):
        table.find(many, missing="ignore")


RNG = np.random.default_rng(0)
NAMES = np.array([f"{'y' * (i % 20)}{i}" for i in range(400)], dtype=object)


def as_column(numbers, kind):
    if kind == "strings":
        return encode_strings(NAMES[numbers].tolist())
    if kind == "codes":
        return CodedIds(encode_strings(NAMES.tolist()), numbers)
    return numbers.astype(kind) * 10**6 - 7


@pytest.mark.parametrize("kinds", [None, ("user", "item")])
@pytest.mark.parametrize("kind", ["int32", "int64", "strings", "codes"])
def test_new_ids_are_numbered_in_the_order_of_appearance(kind, kinds):
    expected, nodes = NodeTable(), NodeTable()
    for largest in (3, 20, 22, 22, 300, 310, 400, 400):
        u, v = RNG.integers(0, largest, (2, 150))
        plain = "strings" if kind == "codes" else kind
        pair = expected.add_edges(as_column(u, plain), as_column(v, plain), kinds=kinds)
        ends = as_column(u, kind), as_column(v, kind)
        known = look_up(nodes, *ends, kinds)
        found = add_ends(nodes, *ends, kinds) if known is None else number_ends(nodes, known, kinds)
        for one, other in zip(found, pair, strict=True):
            assert one.tolist() == other.tolist()
        assert nodes.ids().tolist() == expected.ids().tolist()
        assert nodes.kinds == expected.kinds


def test_what_is_looked_up_may_be_numbered_after_others():
    nodes = NodeTable()
    nodes.add([1, 2, 3])
    early = look_up(nodes, np.array([1, 2, 9, 3]), np.array([2, 8, 1, 3]))
    assert early.rows.tolist() == [1, 2]
    nodes.add([9])
    u, v = number_ends(nodes, early)
    assert nodes.ids(u).tolist() == [1, 2, 9, 3]
    assert nodes.ids(v).tolist() == [2, 8, 1, 3]
    assert nodes.ids().tolist() == [1, 2, 3, 9, 8]


def test_ids_of_another_kind_are_left_to_the_table():
    nodes = NodeTable()
    nodes.add(["a"])
    assert look_up(nodes, np.array([1]), np.array([2])) is None
    with pytest.raises(TypeError, match="node ids were strings so far"):
        add_ends(nodes, np.array([1]), np.array([2]))
    nodes = NodeTable()
    nodes.add_edges(["1"], ["1"], kinds=("user", "item"))
    coded = CodedIds(encode_strings(["plain", "user:1"]), np.array([1, 1]))
    add_ends(nodes, coded, coded)  # the string without a kind is not used
    assert nodes.ids().tolist() == ["user:1", "item:1"]
    with pytest.raises(ValueError, match="so ids start with one"):
        add_ends(nodes, coded, coded._replace(codes=np.array([0, 1])))


@pytest.mark.parametrize("kind", ["int64", "strings"])
def test_threads_look_up_while_another_adds(kind):
    nodes = NodeTable()
    order = RNG.permutation(400)
    nodes.add(as_column(order[:1], kind))

    def look(seed):
        rng = np.random.default_rng(seed)
        last = np.full(400, -1)
        while (last < 0).any():
            ask = rng.permutation(400)
            found = nodes.peek(as_column(ask, kind))
            known = last[ask] >= 0
            assert np.array_equal(found[known], last[ask][known])  # numbers do not change
            last[ask] = found
        return last

    with ThreadPoolExecutor(3) as pool:
        looks = [pool.submit(look, seed) for seed in range(3)]
        for first in range(1, 400, 3):
            nodes.add(as_column(order[first : first + 3], kind))
        for found in looks:
            assert np.array_equal(found.result()[order], np.arange(400))
