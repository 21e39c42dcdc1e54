"""
One state, five windows
=======================

How does the network look over the last three days, the last week, the last month? A sparsifier with
a horizon answers for every window, from one state and one pass over the stream.
"""

# %%
# The stream
# ----------
# 400 people in four groups send 5,000 messages per day for 60 days, seven in ten of them within
# their group. Every day one person in fifty moves to another group.

import matplotlib.pyplot as plt
import numpy as np

from ohmlearn import StreamingSparsifier, certify

rng = np.random.default_rng(0)
n, n_groups, n_days, per_day = 400, 4, 60, 5_000
group = np.arange(n) % n_groups
stream = []
for day in range(n_days):
    moving = rng.random(n) < 0.02
    group = np.where(moving, rng.integers(n_groups, size=n), group)
    sender, receiver = rng.integers(n, size=(2, per_day))
    for name in range(n_groups):
        inside = (group[sender] == name) & (rng.random(per_day) < 0.7)
        receiver[inside] = rng.choice(np.flatnonzero(group == name), inside.sum())
    stream.append((sender, receiver, None, day + np.sort(rng.random(per_day))))

# %%
# One pass
# --------
# The sparsifier keeps few messages with their times, more of the recent ones than of the old ones.
# ``snapshot(since=...)`` returns a sparsifier of the messages since then. To check it, ``certify``
# reads the stream again and measures how close the snapshot is to the messages of its window.

sparsifier = StreamingSparsifier(n_nodes=n, epsilon=0.5, horizon=60.0, random_state=0)
sparsifier.update(stream)
print(f"{sparsifier.n_edges_seen_:,} messages seen, {sparsifier.n_rows_:,} held")

windows = (3, 7, 14, 30, 60)
snapshots = []
for days in windows:
    h = sparsifier.snapshot(since=n_days - days)
    measured = certify(stream, h, random_state=0).epsilon
    print(f"last {days:2} days: {h.n_edges:6,} edges, epsilon {measured:.2f}")
    snapshots.append(h)

# %%
# The pictures show how much people write to each other: people are sorted by their present group,
# and dark means many messages. The upper row is computed from all messages of the window, the lower
# row from the snapshots. In the last three days the groups are clear. The longer the window, the
# more messages are from people who have moved since.

order = np.argsort(group, kind="stable")
place = np.empty(n, dtype=int)
place[order] = np.arange(n)
cell = 10  # people in a row of the picture


def picture(u, v, w):
    """Return the weight between blocks of people."""
    image = np.zeros((n // cell, n // cell))
    np.add.at(image, (place[u] // cell, place[v] // cell), w)
    return (image + image.T) / w.sum()


u, v, t = (np.concatenate([batch[column] for batch in stream]) for column in (0, 1, 3))
figure, panels = plt.subplots(2, len(windows), figsize=(11, 4.8))
for column, (days, h) in enumerate(zip(windows, snapshots, strict=True)):
    inside = (t >= n_days - days) & (u != v)
    exact, sampled = picture(u[inside], v[inside], np.ones(inside.sum())), picture(*h.edges())
    for panel, image in zip(panels[:, column], (exact, sampled), strict=True):
        panel.imshow(image, cmap="Blues", vmin=0, vmax=exact.max())
        panel.set(xticks=[], yticks=[])
        panel.grid(False)
    panels[0, column].set_title(f"last {days} days")
panels[0, 0].set_ylabel("all messages")
panels[1, 0].set_ylabel("from one state")
plt.show()
