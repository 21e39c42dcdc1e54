"""--memory limits the whole command, which runs in a child process where memory is measured."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from click.testing import Result
from commands import invoke

from ohmlearn.cli.memory_budget import Budget

CALL = "from ohmlearn.cli import main; main()"
N, M = 20_000, 500_000


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("budget")
    rng = np.random.default_rng(0)
    u = rng.integers(0, N, M)
    v = np.where(
        rng.random(M) < 0.8, u // 100 * 100 + rng.integers(0, 100, M), rng.integers(0, N, M)
    )
    np.save(folder / "edges.npy", np.stack([u, v], axis=1))
    nodes = rng.choice(N, 300, replace=False)
    rows = [f"{node},c{node // 100 % 5}" for node in nodes]
    (folder / "labels.csv").write_text("\n".join(["node,label", *rows]) + "\n")
    return folder


def arguments(*options: str, output: str = "out.csv") -> list[str]:
    command = ["label", "edges.npy", "--labels", "labels.csv", "-o", output]
    return [*command, "--json", "--n-nodes", str(N), *options]


def label(files, *options: str) -> Result:
    """Label in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(files)
        return invoke(*arguments(*options))


@pytest.mark.slow
@pytest.mark.parametrize("passes", ["1", "3"])
def test_a_budget_is_kept_by_the_whole_command(files, passes):
    budgets = (380, 440)

    def label_in_child(memory: int) -> subprocess.CompletedProcess[str]:
        options = arguments(
            "--memory", f"{memory}MB", "--passes", passes, output=f"out-{memory}.csv"
        )
        command = [sys.executable, "-c", CALL, *options]
        return subprocess.run(command, cwd=files, capture_output=True, text=True, check=False)

    kept = []
    with ThreadPoolExecutor(len(budgets)) as pool:
        children = pool.map(label_in_child, budgets)
    for memory, shown in zip(budgets, children, strict=True):
        assert shown.returncode == 0, shown.stderr
        summary = json.loads(shown.stderr.splitlines()[-1])
        assert summary["peak_memory"] <= 1.1 * memory * 10**6
        kept.append(summary["n_edges_kept"])
    assert kept[0] < kept[1]


@pytest.mark.slow
def test_a_budget_that_cannot_be_kept_is_refused_with_one_that_can(files):
    shown = label(files, "--memory", "300MB")
    assert shown.exit_code == 2
    assert (
        "--memory 300MB is too little for 20,000 nodes and 5 classes; give at least" in shown.stderr
    )
    least = shown.stderr.split("at least ")[1].split(",")[0]
    # A state takes the same budget in every run.
    for more in ((), ("--state", "s.ohm"), ("--state", "s.ohm")):
        assert label(files, "--memory", least, *more).exit_code == 0


def test_ids_that_are_text_count(files, monkeypatch):
    monkeypatch.chdir(files)
    names = [f"left:{i}" for i in np.load(files / "edges.npy")[:1000, 0]]
    plain, text = (
        Budget(n_nodes=N, id_length=length) for length in (None, np.mean([*map(len, names)]))
    )
    for kinds, budget in (("no", plain), ("columns", text)):  # 17, and left:17
        command = ["sparsify", "edges.npy", "--bipartite", kinds, "-o", "h.ohm"]
        shown = invoke(*command, "--memory", "290MB", "--n-nodes", N)
        least = -(-budget.memory_for(2 * N) // 10**6)
        assert f"too little for 20,000 nodes; give at least {least}MB" in shown.stderr
    assert text.memory_for(2 * N) > plain.memory_for(2 * N)


def test_the_memory_grows_with_everything():
    least = Budget(n_nodes=1000, n_classes=2)
    more = [
        Budget(n_nodes=2000, n_classes=2),
        Budget(n_nodes=1000, n_classes=3),
        Budget(n_nodes=1000, n_classes=2, passes=3),
        Budget(n_nodes=1000, n_classes=2, id_length=20),
        Budget(n_nodes=1000, n_classes=2, has_page=True),
    ]
    assert all(other.memory_for(5000) > least.memory_for(5000) for other in more)
    assert least.memory_for(6000) > least.memory_for(5000)
    assert least.memory_for(least.edges_within("400MB")) <= 400e6
