"""
Choosing epsilon
================

A sparsifier keeps about 1.6 n ln(n) / epsilon² edges. What do we gain from a smaller epsilon?
"""

# %%
# A Gaussian kernel connects all pairs of 2,000 points in four groups. These two million edges are
# computed while they are read.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from ohmlearn import HFSClassifier, certify, kernel_edges

n = 2000
points, group = make_blobs(n, centers=4, n_features=6, cluster_std=3.2, random_state=2)
stream = kernel_edges(points, gamma=0.02)
labels = {int(np.flatnonzero(group == g)[i]): g for g in range(4) for i in range(3)}
full = HFSClassifier(passes=40, tol=1e-9, random_state=0).fit_edges(stream, labels)
print(f"all {n * (n - 1) // 2:,} edges: {np.mean(full.transduction_ == group):.1%} right")

# %%
# For each epsilon and three seeds, we record the number of edges kept, the measured epsilon, and
# the labels after one pass and after three passes.

asked = np.array([0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
kept, measured, one, three = np.empty((4, len(asked), 3))
for i, epsilon in enumerate(asked):
    for seed in range(3):
        model = HFSClassifier(epsilon=epsilon, passes=1, random_state=seed)
        model.fit_edges(stream, labels)
        h = model.sparsifier_.snapshot()
        kept[i, seed] = h.n_edges
        one[i, seed] = np.mean(model.transduction_ == full.transduction_)
        model.refine(stream, passes=2)
        three[i, seed] = np.mean(model.transduction_ == full.transduction_)
        measured[i, seed] = certify(stream, h, eta=0.2, random_state=0).epsilon
    print(
        f"epsilon {epsilon:.1f}: {kept[i].mean():8,.0f} kept, measured {measured[i].mean():.2f}, "
        f"{one[i].mean():.1%} and {three[i].mean():.1%} of labels agree with all edges"
    )

# %%
# The number of edges grows as 1 / epsilon², and the accuracy grows much more slowly. A second and
# third pass help more than ten times as many edges. This is why the defaults are ``epsilon=0.8``
# and ``passes=3``. If the edges can be read only once, use the smallest epsilon that fits into
# memory, or set the number of edges with ``max_edges``.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.6))
left.loglog(asked, kept.mean(axis=1) / 1e3, "o-", label="edges kept")
left.loglog(asked, 1.6 * n * np.log(n) / asked**2 / 1e3, ":", color="C4", label="1.6 n ln(n) / ε²")
left.set(xlabel="requested ε", ylabel="thousand edges", title="Edges kept")
left.set_xticks(asked, [f"{e:.1f}" for e in asked])
left.set_yticks(ticks := [25, 50, 100, 200], [str(tick) for tick in ticks])
left.minorticks_off()
left.legend()
middle.plot(asked, asked, ":", color="C4", label="as requested")
middle.errorbar(asked, measured.mean(axis=1), measured.std(axis=1), fmt="o-", color="C0", capsize=3)
middle.set(xlabel="requested ε", ylabel="measured ε", title="Accuracy", ylim=(0, 1))
middle.legend()
for found, name, style in ((one, "one pass", "o-"), (three, "three passes", "s--")):
    right.semilogx(kept.mean(axis=1) / 1e3, 1 - found.mean(axis=1), style, label=name)
right.set(xlabel="thousand edges kept", ylabel="labels that differ from all edges", title="Labels")
right.set_xticks(ticks, [str(tick) for tick in ticks])
right.minorticks_off()
right.legend()
plt.show()
