"""Threads that share an object, and children forked while another thread works on it."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from solver_cases import grid

from ohmlearn import LaplacianSolver


def test_a_thread_sees_the_report_of_its_own_solve():
    solver = LaplacianSolver(grid(40), random_state=0)
    meeting = threading.Barrier(4)

    def solve(columns):
        b = np.random.default_rng(columns).standard_normal((1600, columns))
        reports = []
        for _ in range(20):
            solver.solve(b, tol=10.0 ** -(columns + 2))
            meeting.wait(60)  # all have solved; a shared report would now be the last thread's
            reports.append(solver.report_)
            meeting.wait(60)
        return reports

    with ThreadPoolExecutor(4) as pool:
        for columns, reports in zip((1, 2, 3, 4), pool.map(solve, (1, 2, 3, 4)), strict=True):
            assert {len(report.residual) for report in reports} == {columns}
            assert all(report.residual.max() <= 10.0 ** -(columns + 2) for report in reports)


def test_a_thread_that_has_not_solved_has_no_report():
    solver = LaplacianSolver(grid(3))
    with pytest.raises(
        AttributeError, match="set by the first solve in this thread; call solve first"
    ):
        solver.report_  # noqa: B018
    solver.solve(np.ones(9))
    with ThreadPoolExecutor(1) as pool:
        assert not pool.submit(hasattr, solver, "report_").result()
    assert hasattr(solver, "report_")


FORK = """
import os, sys, threading, time, warnings
import numpy as np
from ohmlearn import LaplacianSolver, StreamingSparsifier, gallery
from ohmlearn.nodes import NodeTable

warnings.simplefilter("ignore", DeprecationWarning)  # about a fork with threads
sys.setswitchinterval(100)  # between a look at the other thread and the fork it does not get on
rng = np.random.default_rng(0)


def is_busy(shared, changing):
    if shared._lock.acquire(blocking=False):
        shared._lock.release()
        return False
    return shared._in_change or not changing


def fork_while_busy(shared, work, look, changing=True):
    # Forks while another thread works on it; prints what `look` returns or raises in the child.
    stop = threading.Event()

    def run():
        while not stop.is_set():
            work()

    thread = threading.Thread(target=run)
    thread.start()
    reading, writing = os.pipe()
    while not is_busy(shared, changing):
        time.sleep(0)
    child = os.fork()
    if child == 0:
        try:
            said = str(look())
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    print(os.fdopen(reading).read())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    stop.set()
    thread.join()
"""

UPDATE = """
u, v = rng.integers(0, 3000, (2, 4_000_000), dtype=np.int32)
shared = StreamingSparsifier(n_nodes=3000, epsilon=0.9, random_state=0)
fork_while_busy(shared, lambda: shared.update(u, v), lambda: shared.n_rows_)
shared.update(u, v)  # the parent can continue
"""

MERGE = """
u, v = rng.integers(0, 3000, (2, 4_000_000), dtype=np.int32)
shared, other = (StreamingSparsifier(n_nodes=3000, epsilon=0.9, random_state=i) for i in (0, 1))
shared.update(u, v), other.update(u, v)
def look():
    assert other.snapshot().n_nodes == 3000  # it is only read
    return shared.snapshot()
fork_while_busy(shared, lambda: shared.merge(other), look)
"""

SNAPSHOT = """
u, v = rng.integers(0, 3000, (2, 2_000_000), dtype=np.int32)
shared = StreamingSparsifier(n_nodes=3000, epsilon=0.9, random_state=0).update(u, v)
expected = shared.snapshot()
def work():
    shared._snapshot = None  # which would be the answer
    shared.snapshot()
fork_while_busy(shared, work, lambda: shared.snapshot() == expected, changing=False)
"""

PAPER = """
u, v = rng.integers(0, 300, (2, 20_000), dtype=np.int32)
shared = StreamingSparsifier(n_nodes=300, epsilon=0.9, scheme="paper", random_state=0).update(u, v)
def look():
    assert shared.n_edges_seen_ % np.count_nonzero(u != v) == 0  # as before the call
    return shared.update(u, v).snapshot().n_nodes
fork_while_busy(shared, lambda: shared.update(u, v), look)
"""

SOLVE = """
graph = gallery.preferential_attachment(20_000, 4, random_state=0)
graph = gallery.log_uniform_weights(graph, 6, random_state=0)
b = rng.standard_normal((20_000, 8))
shared = LaplacianSolver(graph, random_state=0)
expected = shared.solve(b)
def look():
    return shared.solve(b).tobytes() == expected.tobytes(), shared.report_.method
fork_while_busy(shared, lambda: shared.solve(b), look)
"""

TABLE = """
ids = rng.integers(0, 2**60, 10_000_000)
shared = NodeTable()
fork_while_busy(shared, lambda: shared.add(ids), lambda: len(shared))
"""

INCOMPLETE = (
    "RuntimeError: another thread was changing this {} when the process was forked, so its state "
    "is incomplete in the child; use it in the parent, or fork while no call is at work on it"
)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param(UPDATE, INCOMPLETE.format("sparsifier"), id="update"),
        pytest.param(MERGE, INCOMPLETE.format("sparsifier"), id="merge"),
        pytest.param(SNAPSHOT, "True", id="snapshot"),
        pytest.param(PAPER, "300", id="paper"),
        pytest.param(SOLVE, "(True, 'cholesky')", id="solve"),
        pytest.param(TABLE, INCOMPLETE.format("table of nodes"), id="table"),
    ],
)
def test_a_child_forked_while_another_thread_is_at_work(script, said):
    done = subprocess.run(
        [sys.executable, "-c", FORK + script], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == said


WITHOUT = """
import os, sys
sys.modules["fcntl"] = sys.modules["resource"] = None  # so that an import fails
for name in ("fork", "register_at_fork", "sched_getaffinity", "chown", "fchmod"):
    if hasattr(os, name):
        delattr(os, name)
import numpy as np
import ohmlearn
from ohmlearn.cli import main
from ohmlearn.edge_log import LogError

u = np.arange(99)
model = ohmlearn.HFSClassifier(random_state=0).fit_edges((u, u + 1), {0: "a", 99: "b"})
assert model.transduction_[[1, 98]].tolist() == ["a", "b"]
model.save("model.npz")
try:
    ohmlearn.EdgeLog("log").append(u, u + 1)
except LogError as error:
    assert "on Windows" in str(error), error
else:
    raise AssertionError("a log was written without a lock")
np.savetxt("e.csv", np.stack([u, u + 1], 1), "%d", delimiter=",", header="u,v", comments="")
open("known.csv", "w").write("0,a\\n99,b\\n")
main(["label", "e.csv", "--labels", "known.csv", "-o", "labels.csv", "--quiet"])
"""


@pytest.mark.slow
def test_what_only_posix_has_is_not_needed(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == 101
