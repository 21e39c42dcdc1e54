"""
Labels while edges arrive
=========================

A network grows, and we want the labels after each batch of edges. They are computed again from the
few edges that are kept. No edge is read twice.
"""

# %%
# The edges are messages between 6,000 people in six circles, which appear one after the other.
# Seven in ten messages stay within a circle; the others go to random people.

import time

import matplotlib.pyplot as plt
import numpy as np

from ohmlearn import HFSClassifier

rng = np.random.default_rng(0)
n_circles, size, n_batches, batch = 6, 1000, 60, 50_000
circle = np.repeat(np.arange(n_circles), size)


def messages(at):
    """Return batch number `at`, with messages between the circles that exist by then."""
    there = min(n_circles, 2 + at // 10)
    u = rng.integers(there * size, size=batch)
    v = u // size * size + rng.integers(size, size=batch)
    stranger = rng.random(batch) < 0.3
    v[stranger] = rng.integers(there * size, size=stranger.sum())
    return u, v


# %%
# A circle gets its two labels only some batches after it appears. Until then its members get the
# labels of other circles.

labels = {}
model = HFSClassifier(max_edges=100_000, random_state=0)
rows = []
for at in range(n_batches):
    u, v = messages(at)
    model.update((u[u != v], v[u != v]), solve=False)
    known = 2 if at == 0 else max(0, min(n_circles, 2 + (at - 4) // 10))
    for name in range(known):
        labels |= {name * size + i: f"circle {name}" for i in (7, 8)}
    start = time.process_time()
    model.relabel(labels)
    found = model.transduction_
    seconds = time.process_time() - start
    right = found == np.char.add("circle ", circle[: len(found)].astype(str))
    sparsifier = model.sparsifier_
    rows.append((sparsifier.n_edges_seen_, sparsifier.n_rows_, seconds, right.mean()))
seen, held, seconds, right = zip(*rows, strict=True)
print(f"{seen[-1]:,} messages seen, {held[-1]:,} edges held, {right[-1]:.1%} labelled right")
print(f"labels of everyone in {np.median(seconds) * 1000:.0f} ms (median)")

# %%
# The share of correct labels drops when a circle appears without labels and recovers when it gets
# them.

figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 5.4), sharex=True, height_ratios=[1.3, 1])
millions = np.array(seen) / 1e6
top.plot(millions, right, color="C0")
for name in range(2, n_circles):
    top.axvline(millions[10 * (name - 1)], color="C1", linestyle="--", linewidth=1)
    top.axvline(millions[10 * (name - 1) + 4], color="C2", linestyle=":", linewidth=1.5)
top.plot([], [], "--", color="C1", linewidth=1, label="a circle appears")
top.plot([], [], ":", color="C2", linewidth=1.5, label="it gets two labels")
top.set(ylabel="labelled right", ylim=(0, 1.03), title="Labels of everyone after each batch")
top.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
bottom.plot(millions, np.array(held) / 1e3, color="C0")
bottom.set(xlabel="messages seen, millions", ylabel="thousand edges", title="Edges held in memory")
bottom.set_ylim(bottom=0)
plt.show()
