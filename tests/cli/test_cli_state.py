"""``ohmlearn label --state``: edges of several days in one model, each taken in once."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from commands import label, refuse, succeed

from ohmlearn import HFSClassifier, HFSRegressor, StateFile, StreamingSparsifier, read_edges
from ohmlearn._arrays_file import write_arrays
from ohmlearn.reading.label_table import read_labels

pytestmark = pytest.mark.filterwarnings("ignore:.*labels are few for:UserWarning")
N = 80


def write_edges(path: Path, seed: int, n_edges: int = 3000, name: str = "n") -> Path:
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, N + 10 * seed, (2, n_edges))
    v = np.where(rng.random(n_edges) < 0.9, v - v % 2 + u % 2, v)
    rows = [
        f"{name}{a},{name}{b},{w}"
        for a, b, w in zip(u, v, rng.integers(1, 5, n_edges), strict=True)
    ]
    path.write_text("\n".join(["src,dst,w", *rows]) + "\n")
    return path


@pytest.fixture
def days(tmp_path: Path) -> list[Path]:
    return [write_edges(tmp_path / f"day{seed}.csv", seed) for seed in range(3)]


@pytest.fixture
def known(tmp_path: Path) -> Path:
    path = tmp_path / "known.csv"
    path.write_text("".join(f"n{i},{'odd' if i % 2 else 'even'}\n" for i in range(12)))
    return path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "s.ohm"


def assert_ok(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stderr.splitlines() if line.startswith("{")]
    summary = next(line for line in lines if "n_edges_seen" in line)  # progress may follow it
    assert summary["passes"] == 1
    return summary


def assert_same_model(path: Path, model: HFSClassifier) -> None:
    found = HFSClassifier.load(path)
    assert found.nodes_.ids().tolist() == model.nodes_.ids().tolist()
    assert found.graph_ == model.graph_
    np.testing.assert_array_equal(found.scores_, model.scores_)
    np.testing.assert_array_equal(found.label_distributions_, model.label_distributions_)


@pytest.mark.parametrize("name", ["n", ""])  # strings, and integers
def test_two_days_are_two_updates_in_python(name: str, tmp_path: Path, state: Path):
    days = [write_edges(tmp_path / f"day{seed}.csv", seed, name=name) for seed in range(3)]
    labels = tmp_path / "known.csv"
    labels.write_text("node,label\n" + "".join(f"{name}{i},{i % 2}\n" for i in range(12)))
    out, options = tmp_path / "out.csv", ["--max-edges", 500, "--seed", 3, "--json"]
    summary = assert_ok(label(days[0], "--labels", labels, "--state", state, "-o", out, *options))
    model = HFSClassifier(max_edges=500, random_state=3, passes=1)
    y = dict(read_labels(str(labels)))
    model.fit_edges(read_edges(days[0]), y)
    assert_same_model(state, model)
    for day in days[1:]:
        before = summary["n_edges_seen"]
        summary = assert_ok(label(day, "--state", state, "-o", out, "--json"))
        assert summary["state"]["n_edges_before"] == before
        assert summary["state"]["labels"] == {"kept": 12, "replaced": 0, "new": 0}
        model.update(read_edges(day, nodes=model.nodes_))
        assert_same_model(state, model)
    answers = [line.split(",") for line in out.read_text().splitlines()[1:]]
    assert [row[0] for row in answers] == [str(x) for x in model.nodes_.ids()]
    assert [row[1] for row in answers] == [str(x) for x in model.transduction_]
    assert [float(row[2]) for row in answers] == model.label_distributions_[:, 0].tolist()
    assert [source["name"] for source in HFSClassifier.load(state).kept_.sources] == [
        day.name for day in days
    ]


def test_python_and_the_command_continue_the_same_file(days: list[Path], known: Path, state: Path):
    assert_ok(label(days[0], "--labels", known, "--state", state, "--json"))
    model = HFSClassifier.load(state)
    model.update(read_edges(days[1], nodes=model.nodes_)).save(state)
    assert_ok(label(days[2], "--state", state, "--json"))
    assert_same_model(state, model.update(read_edges(days[2], nodes=model.nodes_)))
    result = label(days[0], "--state", state)  # still known
    assert f"day0.csv is skipped: {state} has it already" in result.stderr


def test_a_source_is_taken_in_once(days: list[Path], known: Path, state: Path, tmp_path: Path):
    assert_ok(label(days[0], days[1], "--labels", known, "--state", state, "--json"))
    content = state.read_bytes()
    copy = tmp_path / "copy.csv"
    copy.write_bytes(days[1].read_bytes())
    blanks = tmp_path / "blanks.tsv"
    blanks.write_text(days[1].read_text().replace(",", "\t"))
    for source, note, options in (
        (days[1], "day1.csv is skipped: {} has it already", {}),
        (copy, "copy.csv is skipped: {} has the same content already as day1.csv", {}),
        # These are recognised when they have been read.
        (blanks, "blanks.tsv is skipped: {} has the same edges already as day1.csv", {}),
        ("-", "input is skipped: {} has the same edges already as day1.csv", {"input": days[1]}),
    ):
        options = {name: path.read_bytes() for name, path in options.items()}
        succeed("label", source, "--state", state, **options, said=note.format(state))
        assert state.read_bytes() == content
    alone = state.with_name("alone.ohm")
    alone.write_bytes(content)
    assert_ok(label(days[2], "--state", alone, "--json"))
    summary = assert_ok(label(blanks, days[2], copy, "--state", state, "--json"))
    assert summary["state"]["n_skipped"] == 2
    assert state.read_bytes() == alone.read_bytes()


def test_the_same_command_again_does_nothing(
    days: list[Path], known: Path, state: Path, tmp_path: Path
):
    command = [*days, "--labels", known, "--state", state, "--passes", 3, "-o"]
    for out in (tmp_path / "first.csv", tmp_path / "second.csv"):
        succeed("label", *command, out)
        answers = out.read_bytes()
    assert (tmp_path / "first.csv").read_bytes() == answers
    content = state.read_bytes()
    state.unlink()
    days[0].with_name("copy.csv").write_bytes(days[0].read_bytes())
    more = [days[0], days[0].with_name("copy.csv")]
    succeed("label", *command[:3], *more, *command[3:], tmp_path / "copies.csv")
    assert state.read_bytes() == content
    assert (tmp_path / "copies.csv").read_bytes() == answers
    assert HFSClassifier.load(state).n_iter_ == 3
    written = state.stat()
    succeed("label", *command, tmp_path / "third.csv")
    assert state.stat().st_mtime_ns == written.st_mtime_ns
    succeed("label", days[1], "--state", state, "--method", "restart", "-q")
    assert HFSClassifier.load(state).method_ == "restart"


def test_few_edges_may_be_the_same_by_coincidence(known: Path, state: Path, tmp_path: Path):
    days = [tmp_path / "first.csv", tmp_path / "second.csv"]
    for day in days:
        day.write_text(f"src,dst,note\nn0,n1,{day.stem}\n")
    summary = assert_ok(label(*days, "--labels", known, "--state", state, "--json"))
    assert (summary["n_edges_seen"], summary["state"]["n_skipped"]) == (2, 0)


def test_pipes_are_sources(days: list[Path], known: Path, state: Path):
    content = [day.read_bytes() for day in days]
    assert_ok(label("-", "--labels", known, "--state", state, "--json", input=content[0]))
    assert_ok(label("-", "--state", state, "--json", input=content[1]))
    saved = state.read_bytes()
    result = label("-", "--state", state, input=content[0])
    assert f"standard input is skipped: {state} has it already" in result.stderr
    result = label(days[0], "--state", state)
    assert "has the same edges already as standard input" in result.stderr
    assert state.read_bytes() == saved
    assert_same_model(
        state,
        HFSClassifier(passes=1, random_state=0)
        .fit_edges(first := read_edges(days[0]), dict(read_labels(str(known))))
        .update(read_edges(days[1], nodes=first.nodes)),
    )


def test_a_pipe_is_not_needed_again_for_a_later_copy(days: list[Path], known: Path, state: Path):
    blanks = state.with_name("blanks.tsv")
    blanks.write_text(days[1].read_text().replace(",", "\t"))
    args = ["-", days[1], blanks, "--labels", known, "--state", state, "--json"]
    summary = assert_ok(label(*args, input=days[0].read_bytes()))
    assert summary["state"]["n_skipped"] == 1
    kept = StreamingSparsifier(epsilon=0.8, random_state=0).update(read_edges(days[:2]))
    assert HFSClassifier.load(state).sparsifier_.snapshot() == kept.snapshot()


def test_labels_of_a_file_replace_those_of_the_same_nodes(
    days: list[Path], known: Path, state: Path, tmp_path: Path
):
    assert_ok(label(days[0], "--labels", known, "--state", state, "--json"))
    more = tmp_path / "more.csv"
    more.write_text("node,label,weight\nn0,odd,2\nn1,odd,1\nn40,even,0.5\nn41,new,1\nn41,odd,3\n")
    summary = assert_ok(label(days[1], "--labels", more, "--state", state, "--json"))
    assert summary["state"]["labels"] == {"kept": 10, "replaced": 2, "new": 2}
    y = {f"n{i}": "odd" if i % 2 else "even" for i in range(2, 12)}
    y |= {"n0": "odd", "n1": "odd", "n40": "even", "n41": ["new", "odd"]}
    model = HFSClassifier(passes=1, random_state=0)
    model.fit_edges(read_edges(days[0]), dict(read_labels(str(known))))
    model.update(read_edges(days[1], nodes=model.nodes_))
    with pytest.warns(UserWarning, match="contradicting"):
        model.relabel(y, sample_weight={"n0": 2.0, "n40": 0.5, "n41": [1.0, 3.0]})
    assert_same_model(state, model)
    summary = assert_ok(label(days[2], "--state", state, "--json"))  # kept as they are
    assert_same_model(state, model.update(read_edges(days[2], nodes=model.nodes_)))
    assert summary["n_contradicting"] == 1
    (tmp_path / "last.csv").write_text("n5,even\n")
    assert_ok(label("--labels", tmp_path / "last.csv", "--state", state, "--json"))
    found = HFSClassifier.load(state)
    at = found.labelled_.tolist().index(found.nodes_.find(["n41"])[0])
    np.testing.assert_allclose(found.problem_.labels.values[at], [0.0, 0.25, 0.75])
    assert found.problem_.labels.weights[at] == 4.0


def test_integers_and_names_as_labels(days: list[Path], state: Path, tmp_path: Path):
    labels = tmp_path / "labels.csv"
    labels.write_text("".join(f"n{i},{i % 2}\n" for i in range(12)))
    assert_ok(label(days[0], "--labels", labels, "--state", state, "--json"))
    assert HFSClassifier.load(state).classes_.tolist() == [0, 1]
    labels.write_text("n20,x\n")
    assert_ok(label("--labels", labels, "--state", state, "--json"))
    assert HFSClassifier.load(state).classes_.tolist() == ["0", "1", "x"]
    labels.write_text("n20,1\n")
    assert_ok(label("--labels", labels, "--state", state, "--json"))
    assert HFSClassifier.load(state).classes_.tolist() == ["0", "1"]


def test_options_of_the_answer_may_change(days: list[Path], known: Path, state: Path):
    assert_ok(label(days[0], "--labels", known, "--state", state, "--json"))
    shares = ["--class-prior", "odd=0.3,even=0.7"]
    result = label("--state", state, "--method", "restart", *shares)
    assert f"{state}: --method was 'auto', and is 'restart' from now on" in result.stderr
    model = HFSClassifier(
        passes=1, random_state=0, method="restart", class_prior={"odd": 0.3, "even": 0.7}
    )
    model.fit_edges(read_edges(days[0]), dict(read_labels(str(known))))
    assert_same_model(state, model)
    result = label("--state", state)  # and stay so
    assert "from now on" not in result.stderr
    assert_same_model(state, model)


def test_options_of_the_sparsifier_may_not(days: list[Path], known: Path, state: Path):
    assert_ok(
        label(days[0], "--labels", known, "--state", state, "--seed", 4, "--epsilon", 0.7, "--json")
    )
    content = state.read_bytes()
    for option, before, now in (("epsilon", 0.7, 0.8), ("seed", 4, 0), ("max-edges", None, 400)):
        result = refuse("label", days[1], "--state", state, f"--{option}", now)
        how = f"with --{option} {before}" if before else f"without --{option}"
        assert f"{state} was started {how}, but this command has {now}" in result.stderr
    result = label(days[1], "--state", state, "--passes", 3)
    assert "more passes would need all edges" in result.stderr
    assert state.read_bytes() == content
    assert_ok(label(days[1], "--state", state, "--seed", 4, "--passes", 1, "--json"))
    assert HFSClassifier.load(state).sparsifier_.seed == 4


def test_nothing_is_written_unless_the_answers_are(
    days: list[Path], known: Path, state: Path, tmp_path: Path
):
    def fail(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "out.csv"
    assert_ok(label(days[0], "--labels", known, "--state", state, "-o", out, "--json"))
    content, files = state.read_bytes(), sorted(tmp_path.iterdir())
    for place, what, code in (
        ("ohmlearn.report.write_table.write_table", fail, 1),
        ("ohmlearn.report.write_table.write_table", interrupt, 130),
        ("ohmlearn._arrays_file.os.replace", fail, 1),
        ("ohmlearn._arrays_file.os.fsync", interrupt, 130),
        ("ohmlearn.sparsifier.StreamingSparsifier.add", interrupt, 130),
        ("ohmlearn.cli.label_command.make_summary", interrupt, 130),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(place, what)
            assert label(days[1], "--state", state, "-o", out).exit_code == code, place
        assert state.read_bytes() == content, place
        assert sorted(tmp_path.iterdir()) == files
    assert_ok(label(days[1], "--state", state, "-o", out, "--json"))


def test_a_state_that_another_run_has_written_stays(
    days: list[Path], known: Path, state: Path, monkeypatch: pytest.MonkeyPatch
):
    assert_ok(label(days[0], "--labels", known, "--state", state, "--json"))
    other = HFSClassifier.load(state).update(([0], [1]))
    monkeypatch.setattr("ohmlearn.report.write_table.write_table", lambda *_: other.save(state))
    result = label(days[1], "--state", state)
    assert f"{state} was written by another run meanwhile" in result.stderr
    assert_same_model(state, other)


def test_a_saved_sparsifier_is_a_start(days: list[Path], known: Path, state: Path):
    kept = StreamingSparsifier(max_edges=400, random_state=9).update(read_edges(days[0]))
    kept.save(state)
    result = label(days[1], "--state", state)
    assert "has no labels yet; give them with --labels" in result.stderr
    assert_ok(label(days[1], "--labels", known, "--state", state, "--json"))
    model = HFSClassifier(max_edges=400, passes=1, random_state=9)
    model.fit_edges(read_edges(days[0]), dict(read_labels(str(known))))
    model.update(read_edges(days[1], nodes=model.nodes_))
    found = HFSClassifier.load(state)
    assert found.graph_ == model.graph_
    np.testing.assert_allclose(found.scores_, model.scores_, atol=1e-9)


def test_the_command_sparsify_makes_a_start(days: list[Path], known: Path, state: Path):
    options = ["--epsilon", "0.8", "--seed", "5"]
    succeed("sparsify", days[0], "-o", state, *options)
    kept = StreamingSparsifier(epsilon=0.8, random_state=5).update(read_edges(days[0]))
    assert StreamingSparsifier.load(state).snapshot() == kept.snapshot()
    assert_ok(label("--labels", known, "--state", state, "--json"))
    model = HFSClassifier(passes=1, random_state=5)
    assert_same_model(state, model.fit_edges(read_edges(days[0]), dict(read_labels(str(known)))))


def test_numbers_of_nodes_become_ids(tmp_path: Path, state: Path):
    StreamingSparsifier(random_state=9).update([0, 1, 2], [1, 2, 3]).save(state)
    labels, more = tmp_path / "known.csv", tmp_path / "more.csv"
    labels.write_text("0,a\n3,b\n")
    more.write_text("3,7\n")
    result = succeed("label", more, "--labels", labels, "--state", state)
    rows = [line.split(",")[:2] for line in result.stdout.splitlines()[1:]]
    assert rows == [["0", "a"], ["1", "a"], ["2", "b"], ["3", "b"], ["7", "b"]]


def test_other_files_are_no_states(days: list[Path], known: Path, state: Path):
    args = (days[0], "--labels", known, "--state", state)
    state.write_text("something else")
    refuse("label", *args, said="was not saved by ohmlearn")
    HFSRegressor().fit_edges(([0, 1], [1, 2]), {0: 1.0, 2: 2.0}).save(state)
    problem = "holds no HFSClassifier that can continue: it is one of 'HFSRegressor'"
    refuse("label", *args, said=problem)
    HFSClassifier(epsilon=None).fit_edges(([0, 1], [1, 2]), {0: 1, 2: 2}).save(state)
    refuse("label", *args, said="a model that keeps all edges (--epsilon None) cannot")
    kept = StreamingSparsifier(random_state=0).update(read_edges(days[0]))
    write_arrays(state, kept.get_state() | {"reading": np.array("{}")})  # of version 0.1
    found = refuse("label", *args, said=f"{state} is a checkpoint")
    assert "finish with the version that wrote it" in found.stderr


def write_timed(path: Path, seed: int) -> Path:
    """Edges of one day, with dates."""
    lines = write_edges(path, seed).read_text().splitlines()
    seconds = np.arange(len(lines)) * 20 + seed * 86400
    times = np.datetime64("2026-03-01T00:00:00") + seconds.astype("m8[s]")
    rows = [f"{line},{time}Z" for line, time in zip(lines[1:], times, strict=False)]
    path.write_text("\n".join(["src,dst,w,time", *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    ("option", "parameters", "other"),
    [
        (["--half-life", "12h"], {"half_life": "12h"}, ["--half-life", "1d"]),
        (["--horizon", "1d"], {"horizon": "1d"}, ["--horizon", "2d"]),
    ],
)
def test_a_state_that_forgets(
    option: list[str], parameters: dict[str, str], other: list[str], known: Path, state: Path
):
    days = [write_timed(state.parent / f"day{seed}.csv", seed) for seed in range(3)]
    assert_ok(label(days[0], "--labels", known, "--state", state, *option, "--json"))
    assert_ok(label(days[1], "--state", state, "--json"))
    model = HFSClassifier(**parameters, passes=1, random_state=0)
    model.fit_edges(read_edges(days[0], time=True), dict(read_labels(str(known))))
    model.update(read_edges(days[1], time=True, nodes=model.nodes_))
    assert_same_model(state, model)
    result = label(days[2], "--state", state, *other)
    assert f"{state} was started with {other[0]}" in result.stderr
    assert_ok(label(days[2], "--state", state, *option, "--json"))


def test_a_state_answers_for_several_windows(known: Path, state: Path):
    days = [write_timed(state.parent / f"day{seed}.csv", seed) for seed in range(2)]
    args = ["--labels", known, "--state", state, "--json"]
    assert_ok(label(*days, *args, "--since", "2026-03-01T06:00:00Z"))
    model = HFSClassifier(horizon=np.inf, passes=1, random_state=0)
    y = dict(read_labels(str(known)))
    model.fit_edges(read_edges(days, time=True), y, since="2026-03-01T06:00:00Z")
    assert_same_model(state, model)
    assert_ok(label("--state", state, "--json", "--since", "2026-03-02T03:00:00Z"))
    model.update([], since="2026-03-02T03:00:00Z")
    assert_same_model(state, model)
    assert_ok(label(*days, "--state", state, "--json", "--since", "2026-03-02T06:00:00Z"))
    model.update([], since="2026-03-02T06:00:00Z")
    assert_same_model(state, model)


def test_a_file_that_has_grown_is_refused(days: list[Path], known: Path, state: Path):
    command = [days[0], "--labels", known, "--state", state]
    succeed("label", *command)
    content, size = state.read_bytes(), days[0].stat().st_size
    with days[0].open("a") as file:
        file.write("n1,n2,1\n")
    found = refuse("label", *command)
    assert f"it has grown since {state} has read it, from {size:,} to {size + 8:,}" in found.stderr
    assert "give only the new edges" in found.stderr
    assert state.read_bytes() == content
    write_edges(days[0], 7)  # another file of the same name
    succeed("label", *command, said=f"{state} has read another day0.csv before")
    (state.parent / "sub").mkdir()
    found = label(write_edges(state.parent / "sub" / "day0.csv", 8), "--state", state)
    assert "another day0.csv" not in found.stderr


def test_a_file_without_a_known_node_gives_a_warning(days: list[Path], known: Path, state: Path):
    assert_ok(label(days[0], "--labels", known, "--state", state, "--json"))
    found = succeed(
        "label", write_edges(state.parent / "other.csv", 1, name="user:"), "--state", state
    )
    n_old, n_new = len(read_all(days[0])), len(read_all(state.parent / "other.csv"))
    text = f"other.csv: none of its {n_new} nodes is among the {n_old} of {state}"
    assert text in found.stderr
    assert "('user:" in found.stderr
    assert "none of its" not in label(days[1], "--state", state).stderr


def read_all(path: Path) -> set[str]:
    ends = [line.split(",")[:2] for line in path.read_text().splitlines()[1:]]
    return {node for pair in ends for node in pair}


def test_python_and_the_command_write_the_same_state(
    days: list[Path], known: Path, state: Path, tmp_path: Path
):
    y = dict(read_labels(str(known)))
    other = tmp_path / "python.ohm"
    StateFile(other, random_state=0, passes=1, n_jobs=1).update(days[0], y)
    model = StateFile(other, passes=1).update(days)
    how = ("--state", state, "--threads", 1, "--json")  # the file has the number of threads
    assert_ok(label(days[0], "--labels", known, *how))
    assert_ok(label(*days, *how))
    assert_same_model(state, model)
    assert other.read_bytes() == state.read_bytes()
    assert_same_model(state, StateFile(other).update(days, y))
    assert other.read_bytes() == state.read_bytes()
    with pytest.raises(ValueError, match=r"max_edges = 7 differs from None, with which .* made"):
        StateFile(other, max_edges=7).update(days)


def test_two_ways_to_write_an_id_are_one_node(tmp_path: Path):
    from ohmlearn.cli.label_state import _join_labels as join_labels
    from ohmlearn.estimators.label_job import Labelling
    from ohmlearn.estimators.problem import HFSParameters

    edges = (np.array([16, 17]), np.array([17, 18]))
    model = HFSClassifier(random_state=0).fit_edges(read_edges(edges), {16: "a", 18: "b"})
    path = tmp_path / "more.csv"
    path.write_text("node,label,weight\n17,a,1\n17.0,b,3\n")
    found = Labelling(HFSParameters(), model.kept_, model.problem_)
    joined, counts = join_labels(found, read_labels(path))
    assert joined["17"] == ["a", "b"]
    assert counts == {"kept": 2, "replaced": 0, "new": 1}
