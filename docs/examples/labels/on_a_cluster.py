"""
A week of files on a Dask cluster
=================================

The edges are in many files, too many for one machine. Each worker reads some of the files and
sparsifies them. The small sparsifiers are merged in a tree. Only the sparsifiers are sent over the
network.
"""

# %%
# There is one Parquet file of messages for each of seven days. People in five circles write mostly
# to members of their own circle. Some circles do not write at the weekend.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
from pyarrow import parquet

rng = np.random.default_rng(0)
names = np.array([f"person-{i:04d}" for i in rng.permutation(5000)])
circle = np.repeat([f"circle {c}" for c in range(5)], 1000)
folder = Path(tempfile.mkdtemp())
days = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"]
for number, day in enumerate(days):
    n_messages = 150_000 if number < 5 else 60_000
    sender = rng.integers(5000 if number < 5 else 3000, size=n_messages)
    own = rng.random(n_messages) < 0.8
    to = np.where(own, sender // 1000 * 1000, 0) + rng.integers(np.where(own, 1000, 5000))
    table = pa.table({"from": names[sender], "to": names[to]})
    parquet.write_table(table, folder / f"{number}-{day}.parquet")
files = sorted(str(path) for path in folder.iterdir())

# %%
# The cluster has four workers within this process. For a real cluster, pass the address of its
# scheduler to ``Client`` and put the files where all workers can read them.

from distributed import Client

import ohmlearn.dask
from ohmlearn import certify

client = Client(n_workers=4, threads_per_worker=1, processes=False, dashboard_address=":0")

# %%
# We sparsify all files. The result depends on the files and the seed, but not on the number of
# workers or their order. For the certificate, the workers read the files again.

edges = ohmlearn.dask.ClusterEdges(files, client=client, partition_edges=150_000)
h = ohmlearn.dask.sparsify(edges, epsilon=0.8, random_state=0)
print(f"{edges.n_partitions} partitions, {len(h.nodes):,} people, {h.n_edges:,} edges kept")
print(certify(edges, h, eta=0.2, random_state=0))

with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as single:
    again = ohmlearn.dask.sparsify(
        files, client=single, epsilon=0.8, partition_edges=150_000, random_state=0
    )
print("same result with one worker:", again == h)

# %%
# Labels
# ------
# Two people in each circle have a label. How good are the labels after each day?

known = {names[1000 * c + i]: f"circle {c}" for c in range(5) for i in (3, 4)}
truth = dict(zip(names, circle, strict=True))
right, kept, seen = [], [], []
for day in range(1, 8):
    answer = ohmlearn.dask.label(
        files[:day], known, client=client, partition_edges=150_000, random_state=0
    )
    right.append(
        np.mean(
            [truth[name] == guess for name, guess in zip(answer.ids, answer.labels, strict=True)]
        )
    )
    kept.append(answer.model.sparsifier_.snapshot().n_edges)
    seen.append(answer.model.sparsifier_.n_edges_seen_)
client.close()
print(f"after one day {right[0]:.1%} right, after the week {right[-1]:.1%}")

# %%

figure, (left, last) = plt.subplots(1, 2, figsize=(10, 3.7))
left.bar(days, np.array(seen) / 1e3, color="C4", alpha=0.5, label="messages so far")
left.bar(days, np.array(kept) / 1e3, color="C0", label="edges kept of them")
left.set(ylabel="thousand", title="Messages and kept edges")
left.legend(loc="upper left")
last.plot(days, right, "o-")
last.set(
    ylabel="share labelled right", title="Everyone's circle, from ten labels", ylim=(0.9, 1.005)
)
plt.show()
