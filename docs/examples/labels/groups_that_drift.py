"""
Labels while groups drift
=========================

People write messages, mostly within their group, and sometimes move to another group. Old messages
then tell the wrong story. We compare three ways to see the stream: all edges, a half-life, and a
window of the last days.
"""

# %%
# The stream
# ----------
# A thousand people in five groups send 10,000 messages per day, half of them within the group. The
# first 30 days are calm. From day 30 to day 50 there is a reorganisation: each day one person in
# twenty moves to another group. Then it is calm again.

import matplotlib.pyplot as plt
import numpy as np

from ohmlearn import HFSClassifier, StreamingSparsifier

rng = np.random.default_rng(0)
n, n_groups, n_days, per_day = 1000, 5, 90, 10_000
group = np.arange(n) % n_groups


def messages(day):
    """Return the messages of a day, with times in days."""
    sender = rng.integers(n, size=per_day)
    receiver = rng.integers(n, size=per_day)
    for name in range(n_groups):  # half of the messages stay within the group
        inside = (group[sender] == name) & (rng.random(per_day) < 0.5)
        receiver[inside] = rng.choice(np.flatnonzero(group == name), inside.sum())
    return sender, receiver, None, day + np.sort(rng.random(per_day))


# %%
# Three sparsifiers
# -----------------
# All three read the same messages once and keep few of them. The first one never forgets. The
# second one halves the weight of a message every three days. The third one keeps the times of the
# last 30 days and can answer for any window within them; we ask for the last seven days.
#
# Each evening we know the group of twenty people in each group, and ask for everyone else's.

options = {"n_nodes": n, "epsilon": 0.8, "random_state": 0}
everything = StreamingSparsifier(**options)
fading = StreamingSparsifier(**options, half_life=3.0)
recent = StreamingSparsifier(**options, horizon=30.0)


def accuracy(graph):
    """Return the share of people whose group is found, from twenty labels in each group."""
    drawn = [rng.choice(np.flatnonzero(group == name), 20, replace=False) for name in range(5)]
    known = {int(person): int(group[person]) for person in np.concatenate(drawn)}
    model = HFSClassifier(epsilon=None, calibration=None, random_state=0)
    found = model.fit_edges(graph, known).transduction_
    asked = np.setdiff1d(np.arange(n), list(known))
    return np.mean(found[asked] == group[asked])


rows, kept = [], []
for day in range(n_days):
    moving = rng.random(n) < (0.05 if 30 <= day < 50 else 0.0)
    group = np.where(moving, rng.integers(n_groups, size=n), group)
    batch = messages(day)
    everything.update(batch)
    fading.update(batch)
    recent.update(batch)
    evening = day + 1.0
    graphs = (
        everything.snapshot(),
        fading.snapshot(at=evening),
        recent.snapshot(since=evening - 7),
    )
    rows.append([accuracy(graph) for graph in graphs])
    kept.append([everything.n_rows_, fading.n_rows_, recent.n_rows_])
rows, kept = np.array(rows), np.array(kept)

names = ("all edges", "half-life of 3 days", "last 7 days")
print(f"{'':20}  day 30  day 50  day 60  day 90")
for name, right in zip(names, rows.T, strict=True):
    print(f"{name:20}", *(f"{right[day - 1]:7.0%}" for day in (30, 50, 60, 90)))

# %%
# Before the reorganisation all three are about equally good. After it, all edges are wrong for a
# long time, because the old messages are still there. The window has recovered when it contains no
# message from before day 50, and the half-life recovers gradually.
#
# A half-life needs no more memory. A horizon needs about twice as much, because one state answers
# for all windows. The number of edges in memory grows until the sparsifier drops some again.

figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 5.4), sharex=True, height_ratios=[1.6, 1])
for right, held, name, style in zip(rows.T, kept.T, names, ("-", "-", "--"), strict=True):
    top.plot(np.arange(n_days) + 1, right, style, label=name)
    bottom.plot(np.arange(n_days) + 1, held / 1e3, style)
for panel in (top, bottom):
    panel.axvspan(30, 50, color="C4", alpha=0.15, linewidth=0)
top.set(ylabel="groups found", ylim=(0, 1.03), title="Reorganisation from day 30 to day 50")
top.legend(loc="lower left")
bottom.set(xlabel="day", ylabel="thousand edges", title="Edges held in memory")
bottom.set_ylim(bottom=0)
plt.show()
