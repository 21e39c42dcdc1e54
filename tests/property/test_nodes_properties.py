"""Tables of nodes against a dict."""

import pickle

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from ohmlearn.nodes import NodeTable

integers = st.one_of(st.integers(0, 40), st.integers(-(2**63), 2**63 - 1))
strings = st.one_of(st.sampled_from(["", "a", "b", "ab", "\0", "ä", "a" * 8, "a" * 9]), st.text())
ends = st.one_of(
    st.lists(st.tuples(integers, integers), max_size=300),
    st.lists(st.tuples(strings, strings), max_size=100),
)


@settings(deadline=None)
@given(ends, st.data())
def test_interning_equals_a_dict(edges, data):
    known = {}
    expected = [[known.setdefault(node, len(known)) for node in edge] for edge in edges]
    table = NodeTable()
    found = []
    cuts = sorted(data.draw(st.lists(st.integers(0, len(edges)), max_size=4)))
    for a, b in zip([0, *cuts], [*cuts, len(edges)], strict=True):
        if b > a:
            u, v = table.add_edges(*zip(*edges[a:b], strict=True))
            found += np.stack([u, v], axis=1).tolist()
    assert found == expected
    assert table.ids().tolist() == list(known)
    assert len(table) == len(known)
    if known:
        others = data.draw(st.lists(strings if table.kind == "string" else integers, min_size=1))
        found = table.find(others, missing="mask")
        assert found.filled(-1).tolist() == [known.get(node, -1) for node in others]
        again = pickle.loads(pickle.dumps(table))
        assert again.ids().tolist() == list(known)
        assert again.add(others).tolist() == table.add(others).tolist()


@settings(deadline=None)
@given(ends, st.text("abéz", min_size=1, max_size=20), st.integers(0, 100))
def test_kinds_in_front_equal_a_dict(edges, first, cut):
    kinds = (first, first + "!")
    known = {}

    def name(node, kind):
        front = f"{kind}:"
        return node if str(node).startswith(front) else f"{front}{node}"

    expected = [
        [
            known.setdefault(name(node, kind), len(known))
            for node, kind in zip(edge, kinds, strict=True)
        ]
        for edge in edges
    ]
    table = NodeTable()
    found = []
    for part in (edges[:cut], edges[cut:]):
        if part:
            u, v = table.add_edges(*zip(*part, strict=True), kinds=kinds)
            found += np.stack([u, v], axis=1).tolist()
    assert found == expected
    assert table.ids().tolist() == list(known)
    assert table.find(list(known)).tolist() == list(known.values())


@settings(deadline=None)
@given(st.lists(integers, max_size=50), st.lists(integers, max_size=50))
def test_merging_keeps_ids(first, second):
    a, b = NodeTable(), NodeTable()
    a.add(first)
    b.add(second)
    moved = a.merge(b)
    assert a.ids(moved).tolist() == b.ids().tolist()
    assert a.ids().tolist() == list(dict.fromkeys([*first, *second]))
