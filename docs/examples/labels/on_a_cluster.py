"""
A week of files on a Dask cluster
=================================

Edges lie in many files, more than one machine wants to read. Each file streams through a
sparsifier where it is, and the small sparsifiers are merged in a tree. Only they travel.
"""

# %%
# Seven days of messages, a Parquet file each. People of five circles write mostly to their own;
# some circles are silent at the weekend.

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
# A cluster of four workers within this process. For a real one, give ``Client`` the address of its
# scheduler; the files then have to be where all workers can read them.

from distributed import Client

import ohmlearn.dask
from ohmlearn import certify

client = Client(n_workers=4, threads_per_worker=1, processes=False, dashboard_address=":0")

# %%
# The sparsifier of all files. It depends on the files and the seed, not on how many workers there
# are or which one is first. The certificate reads the files again, on the workers.

found = ohmlearn.dask.sparsify(files, client, epsilon=0.8, partition_edges=150_000, random_state=0)
h = found.snapshot()
print(f"{found.sparsifier.n_edges_seen_:,} messages in {len(found.edges.sources)} partitions")
print(f"{h.n_edges:,} edges kept, {len(found.nodes):,} people")
print(certify(found.edges, found, eta=0.2, random_state=0))

with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as single:
    again = ohmlearn.dask.sparsify(
        files, single, epsilon=0.8, partition_edges=150_000, random_state=0
    )
print("the same from one worker:", again.snapshot() == h)

# %%
# Labels
# ------
# Two people of each circle are known. How good are the labels after each day?

known = {names[1000 * c + i]: f"circle {c}" for c in range(5) for i in (3, 4)}
truth = dict(zip(names, circle, strict=True))
right, kept, seen = [], [], []
for day in range(1, 8):
    answer = ohmlearn.dask.label(
        files[:day], known, client, partition_edges=150_000, random_state=0
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
left.set(ylabel="thousand", title="Files, and what travels")
left.legend(loc="upper left")
last.plot(days, right, "o-")
last.set(
    ylabel="share labelled right", title="Everyone's circle, from ten labels", ylim=(0.9, 1.005)
)
plt.show()
