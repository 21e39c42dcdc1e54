"""Invalid files, pickles and states are refused with a message that names the fault."""

import hashlib
import io
import json
import pickle
import re

import numpy as np
import pytest

from ohmlearn._arrays_file import MAGIC, VERSION, read_arrays, write_arrays
from ohmlearn.nodes import NodeTable
from ohmlearn.sparsifier import StreamingSparsifier


def stream(n_edges=12_000, n_nodes=60):
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, n_nodes, (2, n_edges))
    return u, v, rng.lognormal(size=n_edges)


@pytest.fixture(scope="module")
def native():
    return StreamingSparsifier(n_nodes=60, epsilon=0.9, random_state=0).update(*stream())


@pytest.fixture(scope="module")
def paper():
    return StreamingSparsifier(n_nodes=60, epsilon=0.9, scheme="paper", random_state=0).update(
        *stream()
    )


def refusal(sparsifier, tmp_path, **changes):
    """Save, change arrays (None removes one), and return the message of the refusal."""
    path = tmp_path / "changed.ohm"
    sparsifier.save(path)
    arrays = read_arrays(path)
    for name, change in changes.items():
        if change is None:
            del arrays[name]
        else:
            arrays[name] = change(arrays[name].copy())
    write_arrays(path, arrays)
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        StreamingSparsifier.load(path)
    found = re.fullmatch(
        f"{re.escape(str(path))} holds no sparsifier that can continue: (.*); restore it from a "
        f"copy, or sparsify the edges again",
        str(caught.value),
    )
    assert found, str(caught.value)
    return found[1]


def put(at, value):
    def change(array):
        array[at] = value
        return array

    return change


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"w": put(5, np.nan)}, "row 5 has weight nan"),
        ({"w": put(5, -1.0)}, "row 5 has weight -1"),
        ({"w": lambda w: w[:-1]}, r"u, v, w and chance have (\d+), \1, \d+ and \1 rows"),
        ({"chance": lambda p: p[:-1]}, r"u, v, w and chance have (\d+), \1, \1 and \d+ rows"),
        ({"chance": put(5, 1.5)}, "row 5 was kept with probability 1.5"),
        ({"chance": put(5, np.nan)}, "row 5 was kept with probability nan"),
        ({"u": put(0, -1)}, r"row 0 joins nodes -1 and \d+ of 60"),
        ({"v": put(0, 60)}, r"row 0 joins nodes \d+ and 60 of 60"),
        ({"u": put(300, 0)}, "row 300 is not in order"),
        ({"nodes": lambda nodes: nodes[:59]}, "records for 59 of 60 nodes"),
        (
            {"nodes": lambda nodes: nodes[:, :-1]},
            r"nodes must be rows of 64 uint8, got uint8 of shape \(60, 63\)",
        ),
        # Each float of the record becomes nan.
        ({"nodes": put(3, 255)}, "the record of node 3 holds a number out of its range"),
        ({"position": put((), -1)}, "the number of edges seen is -1"),
        ({"position": np.ravel}, r"position must be a single int64, got int64 of shape \(1,\)"),
        ({"n_self_loops": put((), 12_001)}, "12001 of 12000 edges are self-loops"),
        ({"n_zero_weights": put((), -1)}, r"-1 of \d+ edges have zero weight"),
        ({"n_resamples": put((), -1)}, "the number of resamples is -1"),
        ({"capacity": put((), 7)}, "the capacity is 7 rows"),
        ({"n_sorted": put((), 10**9)}, r"1000000000 of \d+ rows are sorted"),
        ({"n_expected": put((), -1.0)}, "n_expected = -1 must be at least 0"),
        ({"correction": put((), 0.5)}, "the correction of leverages is 0.5"),
        ({"beta": put((), np.nan)}, r"the rate beta is nan after \d+ resamples"),
        ({"beta": put((), 0.0)}, r"the rate beta is 0 after \d+ resamples"),
        ({"weight_seen": put(0, np.inf)}, "the weight seen is inf"),
        ({"weight_seen": lambda lanes: lanes[1:]}, "weight_seen must have 8 entries, got 7"),
        ({"u": lambda u: u.astype(np.int64)}, r"u must be a vector of int32, got int64 of shape"),
        ({"w": lambda w: w.astype(">f4")}, r"w must be a vector of float32, got >f4 of shape"),
        ({"parameters": None}, "its parameters are missing"),
        ({"parameters": lambda _: np.array(3)}, "its parameters are missing"),
    ],
)
def test_arrays_that_no_sampler_has(native, tmp_path, changes, message):
    assert re.search(message, refusal(native, tmp_path, **changes))


def test_no_array_of_the_sampler_may_be_missing(native, tmp_path):
    for name in native.get_state().keys() - {"parameters"}:
        assert refusal(native, tmp_path, **{name: None}) == f"{name} is missing"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"row_u": put(4, -1)}, "a node of row 4 is out of range"),
        ({"row_a": put(4, np.nan)}, "the weight of row 4 is out of range"),
        ({"row_p": put(4, 1.5)}, "p of row 4 is out of range"),
        ({"row_p": put(4, 1e-300)}, "the weight of row 4 is out of range"),
        ({"row_q": put(4, 2**62)}, "q of row 4 is out of range"),
        ({"buffer_u": put(1, 59)}, "a node of waiting edge 1 is out"),
        ({"buffer_a": put(1, -1.0)}, "the weight of waiting edge 1 is out"),
        (
            {"row_q": lambda q: q[:-1]},
            r"one entry per edge is needed in each array, got len\(row_u\)",
        ),
        ({"row_q": None}, "row_q is missing"),
        ({"seed": put((), 1)}, "sketches differ: seed = 0 and 1"),
        ({"seed": None}, "sketches differ: seed = 0 and None"),
        ({"n_blocks": put((), -1)}, "n_blocks = -1 is out of range"),
        ({"n_edges_seen": put((), 5)}, r"\d+ rows cannot come from -?\d+ edges"),
        ({"merged": lambda _: np.array(0.5)}, "merged must be a single bool, got float64"),
        ({"weight_seen": put((), -1.0)}, "weight_seen = -1.0 is out of range"),
        ({"epsilon": put((), 0.5)}, "sketches differ: epsilon = 0.9 and 0.5"),
        (
            {"n_edges_seen": put((), 10**7)}
            | {f"buffer_{x}": lambda column: np.tile(column[:1], 10**6) for x in ("u", "v", "a")},
            r"1000000 edges wait for a block of \d+",
        ),
    ],
)
def test_arrays_that_the_scheme_of_the_paper_does_not_have(paper, tmp_path, changes, message):
    assert re.search(message, refusal(paper, tmp_path, **changes))


def test_files_of_version_1_are_refused(native, tmp_path):
    path = tmp_path / "old.ohm"
    native.save(path)
    content = path.read_bytes()
    path.write_bytes(content[:8] + (1).to_bytes(4, "little") + content[12:])
    message = (
        f"{path} has format version 1: ohmlearn 0.1 wrote it, and this ohmlearn reads version 2; "
        f"sparsify the edges again"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        StreamingSparsifier.load(path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_nodes", 61, "there are records for 60 of 61 nodes"),
        ("n_nodes", 2**40, "n_nodes must be an integer in"),
        ("n_nodes", "60", "its parameter n_nodes = '60' has the wrong type"),
        ("epsilon", 10**400, "its parameter epsilon = 1000"),
        ("epsilon", float("nan"), "epsilon must be a number above 0 and below 1, got nan"),
        ("scheme", "best", "scheme must be one of"),
        ("scheme", "paper", "n_blocks is missing"),
        ("memory", "9" * 400 + "TB", ""),
        ("max_edges", 10, "max_edges = 10 is fewer than two edges for each of 60 nodes"),
        ("n_jobs", 2**31, "n_jobs must be at most 4096 threads, got 2147483648"),
        ("verbose", [], r"its parameter verbose = \[\] has the wrong type"),
        ("seed", None, "its parameter seed = None has the wrong type"),
        ("seed", -1, "random_state must be None or an integer in"),
        ("more", 1, "its parameters must be n_nodes, epsilon, .*, seed"),
    ],
)
def test_parameters_that_no_sparsifier_has(native, tmp_path, name, value, message):
    def change(text):
        return np.array(json.dumps(json.loads(str(text)) | {name: value}))

    assert re.search(message, refusal(native, tmp_path, parameters=change))


@pytest.mark.parametrize("text", ["", "[1]", "[" * 100_000, '{"n_nodes": 60}'])
def test_parameters_that_are_no_dictionary(native, tmp_path, text):
    found = refusal(native, tmp_path, parameters=lambda _: np.array(text))
    assert found.startswith("its parameters must be n_nodes, epsilon, ")


def archive(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def compressed():
    file = io.BytesIO()
    np.savez_compressed(file, u=np.zeros(10**6))
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "File is not a zip file"),
        (b"PK\x03\x04 and more", "File is not a zip file"),
        (compressed(), "u.npy is compressed"),
        (archive(u=np.full(2, 0x77777777)).replace(b"wwww", b"wwwx", 1), "Bad CRC-32"),
    ],
)
def test_a_right_checksum_of_something_else(tmp_path, content, message):
    path = tmp_path / "other.ohm"
    path.write_bytes(
        MAGIC + VERSION.to_bytes(4, "little") + hashlib.sha256(content).digest() + content
    )
    start = f"^{re.escape(str(path))} holds no arrays that ohmlearn has saved: .*{message}"
    with pytest.raises(ValueError, match=f"{start}.*; give a file that save has written$"):
        StreamingSparsifier.load(path)


def test_an_array_that_says_it_is_huge_takes_no_memory(tmp_path, monkeypatch):
    """The header is valid and agrees with the checksum of the archive."""
    write = np.lib.format.write_array

    def lie(file, array, **options):
        header = {"descr": "<i8", "fortran_order": False, "shape": (10**14,)}
        np.lib.format.write_array_header_1_0(file, header)

    monkeypatch.setattr(np.lib.format, "write_array", lie)
    path = tmp_path / "huge.ohm"
    write_arrays(path, {"u": np.zeros(1)})
    monkeypatch.setattr(np.lib.format, "write_array", write)
    with pytest.raises(ValueError, match=r"holds no arrays .*: Unable to allocate"):
        StreamingSparsifier.load(path)


def test_pickles_are_checked_as_files_are(native, paper):
    for sparsifier, name in ((native, "w"), (paper, "row_a")):
        state = sparsifier.__getstate__()

        def restore(state):
            found = StreamingSparsifier.__new__(StreamingSparsifier)
            found.__setstate__(state)
            return found

        assert restore(state).stats_ == sparsifier.stats_
        with pytest.raises(ValueError, match=r"weight of row 0 is|row 0 has weight"):
            restore(state | {name: -state[name]})
        with pytest.raises(ValueError, match=r"is missing|must be present"):
            restore({"parameters": state["parameters"]})
        with pytest.raises(ValueError, match="its parameters are missing"):
            restore({key: value for key, value in state.items() if key != "parameters"})


def test_pickles_of_tables_of_nodes_are_checked():
    table = NodeTable()
    table.add(["a", "bc", "d"])
    offsets, data = table.get_state()["node_offsets"], table.get_state()["node_bytes"]
    for state, message in [
        (
            {"node_offsets": offsets + 1, "node_bytes": data},
            "offsets exceed the length of the strings",
        ),
        ({"node_offsets": offsets[::-1].copy(), "node_bytes": data}, "offsets must not decrease"),
        ({"node_offsets": offsets.astype(float), "node_bytes": data}, "a vector of int64"),
        ({"node_offsets": offsets}, "node_bytes is missing"),
        ({"node_ids": np.array([3, 4, 3])}, "node ids are not unique"),
        ({"node_ids": np.array([3.0, 4.0])}, "node_ids must be a vector of int64, got float64"),
    ]:
        with pytest.raises(ValueError, match=message):
            NodeTable.from_state(state)
    assert pickle.loads(pickle.dumps(table)).ids().tolist() == ["a", "bc", "d"]


def test_numbers_of_numpy_as_parameters_are_saved(tmp_path):
    sparsifier = StreamingSparsifier(
        n_nodes=np.int64(60), epsilon=np.float32(0.5), max_edges=np.int32(500), random_state=0
    )
    sparsifier.update(*stream()).save(tmp_path / "h.ohm")
    loaded = StreamingSparsifier.load(tmp_path / "h.ohm")
    assert loaded.options == sparsifier.options
    assert loaded.snapshot() == sparsifier.snapshot()


def test_weights_at_both_ends_of_the_range_can_be_saved(tmp_path):
    """Weights too far apart for the solver lose columns of an embedding, but not the file."""
    rng = np.random.default_rng(4)
    u, v = rng.integers(0, 300, (2, 20_000))
    w = np.where(rng.random(20_000) < 0.001, 1e27, 1.2e-38)
    sparsifier = StreamingSparsifier(n_nodes=300, epsilon=0.9, random_state=4).update(u, v, w)
    assert sparsifier.n_resamples_ > 0
    sparsifier.save(tmp_path / "h.ohm")
    assert StreamingSparsifier.load(tmp_path / "h.ohm").snapshot() == sparsifier.snapshot()


def test_a_merge_with_more_nodes_than_were_given_can_be_saved(tmp_path):
    small = StreamingSparsifier(n_nodes=60, epsilon=0.9, random_state=0).update(*stream())
    large = StreamingSparsifier(n_nodes=90, epsilon=0.9, random_state=1).update(*stream(n_nodes=90))
    small.merge(large).save(tmp_path / "h.ohm")
    loaded = StreamingSparsifier.load(tmp_path / "h.ohm")
    assert loaded.snapshot() == small.snapshot()
    assert loaded.snapshot().n_nodes == 90
