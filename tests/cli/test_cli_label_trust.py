"""``ohmlearn label``: shares of classes, methods, abstaining, and how good the answer is."""

from html import escape
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from commands import label, read_rows, succeed, summary_of

from ohmlearn import HFSClassifier, gallery, read_edges
from ohmlearn.cli.label_model import read_prior
from ohmlearn.reading.label_table import read_labels

NAMES = np.array(["red", "green", "blue"])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Three blocks of different sizes with many edges between them; labels drawn at random."""
    folder = tmp_path_factory.mktemp("blocks")
    sizes = [150, 100, 50]
    u, v, _ = gallery.stochastic_blocks(sizes, 0.5, bridges=1500, random_state=0).edges()
    edges = folder / "edges.csv"
    edges.write_text("u,v\n" + "".join(f"{a},{b}\n" for a, b in zip(u, v, strict=True)))
    block = np.repeat(NAMES, sizes)
    drawn = np.random.default_rng(1).choice(300, 40, replace=False)
    labels = folder / "labels.csv"
    labels.write_text("node,label\n" + "".join(f"{i},{block[i]}\n" for i in drawn))
    return edges, labels


def fit(files: tuple[Path, Path], **parameters: object) -> HFSClassifier:
    labels = dict(read_labels(str(files[1])))
    return HFSClassifier(random_state=0, **parameters).fit_edges(read_edges(files[0]), labels)


def run(files: tuple[Path, Path], out: Path, *args: object) -> tuple[list[dict[str, str]], str]:
    """Return the rows of the table, and what was printed."""
    result = succeed("label", files[0], "--labels", files[1], "-o", out, *args)
    return list(read_rows(out).values()), result.stderr


def summarise(files: tuple[Path, Path], *args: object) -> dict:
    return summary_of(label(files[0], "--labels", files[1], "--json", *args))


@pytest.mark.parametrize(
    ("args", "parameters"),
    [
        (["--class-prior", "labels"], {"class_prior": "labels"}),
        (
            ["--class-prior", "red=5,green=3", "--class-prior", "blue=2"],
            {"class_prior": {"red": 0.5, "green": 0.3, "blue": 0.2}},
        ),
        (["--method", "restart"], {"method": "restart"}),
        (["--method", "auto"], {"method": "auto"}),
        (["--option", "calibration=none"], {"calibration": None}),
        (["--passes", "1", "--max-edges", "900"], {"passes": 1, "max_edges": 900}),
    ],
)
def test_options_are_those_of_python(files, tmp_path: Path, args: list, parameters: dict):
    rows, printed = run(files, tmp_path / "out.csv", *args)
    model = fit(files, **parameters)
    assert [row["label"] for row in rows] == model.transduction_.tolist()
    for at, name in enumerate(model.classes_):
        found = [float(row[f"probability_{name}"]) for row in rows]
        np.testing.assert_array_equal(found, model.label_distributions_[:, at])
    assert f"Accuracy  {model.accuracy_estimate_}\n" in printed


def test_shares_of_classes_that_are_numbers(files, tmp_path: Path):
    numbers = tmp_path / "numbers.csv"
    text = files[1].read_text()
    for number, name in enumerate(NAMES):
        text = text.replace(name, str(number))
    numbers.write_text(text)
    given = "0=0.4,1=0.4,2=0.2"
    rows, _ = run((files[0], numbers), tmp_path / "out.csv", "--class-prior", given)
    model = fit((files[0], numbers), class_prior=[0.4, 0.4, 0.2])
    assert [int(row["label"]) for row in rows] == model.transduction_.tolist()
    assert np.any(model.transduction_ != fit((files[0], numbers)).transduction_)


def test_nodes_without_confidence_are_marked_and_kept(files, tmp_path: Path):
    rows, printed = run(files, tmp_path / "out.csv", "--min-probability", 0.75)
    expected = fit(files).predict(abstain=0.75)
    unsure = np.array([answer is None for answer in expected])
    assert 10 < unsure.sum() < 290
    assert [row["abstained"] == "true" for row in rows] == unsure.tolist()
    assert [row["label"] or None for row in rows] == expected.tolist()
    assert f"Abstained {unsure.sum()} nodes, whose label is left empty" in printed
    summary = summarise(files, "--min-probability", 0.75)
    assert summary["n_abstained"] == unsure.sum()
    assert sum(summary["classes"].values()) == 300 - unsure.sum()
    assert "n_abstained" not in summarise(files)
    _, printed = run(files, tmp_path / "out.csv", "--min-probability", 0.9999)
    assert "Classes   none, because no label is likely enough\nAbstained 300 nodes" in printed


def test_what_was_added_is_printed(tmp_path: Path):
    # One class has three of ten nodes; some nodes have many edges.
    random, n = np.random.default_rng(1), 1500
    truth = np.where(random.random(n) < 0.3, "fraud", "fair")
    p = np.minimum((1 - random.random(n)) ** -0.8, 200.0)
    u, v = (random.choice(n, 9000, p=p / p.sum()) for _ in range(2))
    u[:n] = np.arange(n)
    own = (truth[u] == truth[v]) | (random.random(9000) < 0.35) | (np.arange(9000) < n)
    files = tmp_path / "edges.csv", tmp_path / "labels.csv"
    rows = "".join(f"{a},{b}\n" for a, b in zip(u[own], v[own], strict=True))
    files[0].write_text("u,v\n" + rows)
    drawn = random.choice(n, 150, replace=False)
    files[1].write_text("node,label\n" + "".join(f"{i},{truth[i]}\n" for i in drawn))
    page = tmp_path / "page.html"
    report = ["--report", page] if find_spec("matplotlib") else []
    _, printed = run(files, tmp_path / "out.csv", *report)
    model, figures = fit(files), summarise(files)
    assert figures["restart"] == model.restart_
    assert list(figures["bias"].values()) == model.bias_.tolist()
    before, after = (figures[f"proportions{end}"]["fraud"] for end in ("_without_bias", ""))
    assert after == np.mean(model.transduction_ == "fraud")
    assert model.restart_ > 0.005
    assert f"Method    harmonic + {model.restart_:.2f} restart\n" in printed
    what = f"{100 * before:.0f}% -> {100 * after:.0f}% of nodes"
    assert f"Bias      fraud {model.bias_[1]:+.1f}: {what}\n" in printed
    if report:
        assert escape(what) in page.read_text()
        assert "what a label of this class is worth" in page.read_text()
    with pytest.warns(UserWarning, match="fraud has .* of 150 labels"):
        model = fit(files, method="harmonic")
    assert "restart" not in summarise(files, "--method", "harmonic")
    shown = model.answer_.find_imbalance().describe("--class-prior")
    _, printed = run(files, tmp_path / "out.csv", "--method", "harmonic")
    assert f"Caution   {shown}\n" in printed
    assert "Method" not in printed
    assert "Bias" not in printed
    rough = ("--class-prior", "fraud=0.4,fair=0.6", "--option", "prior_strength=rough")
    some = summarise(files, *rough)["classes"]["fraud"]
    exact = summarise(files, *rough[:2])["classes"]["fraud"]
    assert exact == pytest.approx(0.4 * model.graph_.n_nodes, abs=3)
    assert figures["classes"]["fraud"] < some < exact


@pytest.mark.parametrize(
    ("n_red", "n_green", "args", "caveat"),
    [
        (2, 1, (), "rough, and probably too low: fewer than 3 labels"),
        (
            3,
            3,
            (),
            "(equally many for each class), so they do not tell how common the classes are",
        ),
        (3, 3, ("--class-prior", "red=2,green=1"), None),
        (4, 3, (), None),
        (1, 1, (), "not estimated, because no class has two labels"),
        (3, 0, (), "not estimated, because there is only one class"),
    ],
)
def test_caveats_of_the_accuracy(
    files, tmp_path: Path, n_red: int, n_green: int, args: tuple, caveat: str | None
):
    few = tmp_path / "few.csv"
    rows = [f"{i},red\n" for i in range(n_red)] + [f"{160 + i},green\n" for i in range(n_green)]
    few.write_text("node,label\n" + "".join(rows))
    _, printed = run((files[0], few), tmp_path / "out.csv", *args)
    lines = printed.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("Accuracy"))
    if caveat is None:
        assert lines[at + 1].startswith(("Passes", "Method", "Bias"))
    else:
        assert caveat in lines[at] + lines[at + 1]
    assert ("about" in lines[at]) != ("not estimated" in lines[at])


def test_one_pass_says_how_stable_it_is_instead_of_a_residual(files, tmp_path: Path):
    args = ["--passes", "1", "--max-edges", "900"]
    model = fit(files, passes=1, max_edges=900)
    epsilon = model.sparsifier_.epsilon_estimate_
    share = float(model.stability_.mean())
    assert share > 0.01
    _, printed = run(files, tmp_path / "out.csv", *args)
    assert "residual" not in printed
    assert f"those of the edges kept (epsilon about {epsilon:.2g}, estimated)" in printed
    assert f"Stability {100 * share:.0f}% of labels would change with another seed: " in printed
    assert "seed: raise --passes or raise --max-edges\n" in printed
    summary = summarise(files, *args)
    assert "residual" not in summary
    assert (summary["epsilon_estimate"], summary["unstable_share"]) == (epsilon, share)


def test_a_pipe_has_no_more_passes(files):
    args = ["-", "--labels", files[1], "--json", "--epsilon", "0.95"]
    found = label(*args, input=files[0].read_bytes())
    assert summary_of(found)["unstable_remedy"] == "lower --epsilon"


def test_an_answer_of_all_edges_has_a_residual(files, tmp_path: Path):
    _, printed = run(files, tmp_path / "out.csv")
    assert "Stability" not in printed
    assert "Passes    3, residual " in printed
    kept = summarise(files, "--passes", 1, "--max-edges", 100_000)  # no edge is dropped
    assert (kept["passes"], max(kept["residual"]) < 1e-6) == (1, True)


def test_one_pass_is_enough_and_a_label_alone_is_not_left_out(tmp_path: Path):
    edges, labels = tmp_path / "edges.csv", tmp_path / "labels.csv"
    edges.write_text("src,dst\n" + "".join(f"a{i},a{i + 1}\n" for i in range(9)) + "b0,b1\n")
    labels.write_text("node,label\na0,x\na1,x\na8,y\na9,y\nb0,y\n")
    printed = label(edges, "--labels", labels, "--passes", 3, "-o", tmp_path / "out.csv").stderr
    assert "Passes    1, residual " in printed
    assert "(one is enough, because all edges are kept)" in printed
    assert "5 of them with a label given" in printed
    assert "estimated from 4 labels (1 more is connected to no other label)" in printed


def test_the_page_says_how_good_the_labels_are(files, tmp_path: Path):
    pytest.importorskip("matplotlib")
    from pages import Page

    path = tmp_path / "page.html"
    args = ["--report", path, "--passes", 1, "--max-edges", 900, "--min-probability", 0.5]
    run(files, tmp_path / "out.csv", *args)
    model = fit(files, passes=1, max_edges=900)
    page = Page(path)
    assert page.faults == []
    assert page.n_figures == 4
    assert f"The labels are {model.accuracy_estimate_}." in page.text
    assert f"{100 * model.stability_.mean():.0f}% of labels would change" in page.text
    assert "40 labels were predicted, each without itself" in page.text
    epsilon = f"{model.sparsifier_.epsilon_estimate_:.2g}"
    assert ["Epsilon of H, estimated", epsilon] in page.tables[1]
    assert not any(row[0].startswith("Residual") for row in page.tables[1])
    suggested = model.suggest_labels(20)
    assert [row[:2] for row in page.tables[4][1:]] == [
        [str(found.node), found.reason] for found in suggested
    ]


def test_classes_of_a_prior_are_those_of_the_labels():
    assert read_prior(("1=0.7,2=0.3",), {"ann": 1, "bob": [1, 2]}) == {1: 0.7, 2: 0.3}
    named = read_prior(("Smith, J.=3", "a=b=1"), {"ann": "Smith, J."})
    assert named == {"Smith, J.": 3.0, "a=b": 1.0}
