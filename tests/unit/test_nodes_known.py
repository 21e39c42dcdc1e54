"""Numbers of ends of which some are known already are those that `NodeTable.add_edges` gives."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ohmlearn import NodeTable
from ohmlearn.nodes.known_nodes import add_ends, look_up, number_ends
from ohmlearn.nodes.node_ids import CodedIds, encode_strings

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
