"""
Choosing epsilon
================

Epsilon sets how many edges are kept: about 1.6 n ln(n) / epsilon² of them. What does a smaller one
buy?
"""

# %%
# 2,000 points of four groups, joined all to all by a Gaussian kernel: two million edges, made as
# they are read.

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
# For each epsilon: the edges kept, the epsilon measured, and the labels after one pass and after
# three. Three seeds.

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
        f"{one[i].mean():.1%} and {three[i].mean():.1%} as all edges say"
    )

# %%
# Edges grow as 1 / epsilon², accuracy much more slowly: a second and third pass do more than ten
# times the edges. Hence the defaults ``epsilon=0.8, passes=3``. Where edges can be read only once,
# take the smallest epsilon that fits into memory, or say how much there is with ``max_edges``.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.6))
left.loglog(asked, kept.mean(axis=1) / 1e3, "o-", label="edges kept")
left.loglog(asked, 1.6 * n * np.log(n) / asked**2 / 1e3, ":", color="C4", label="1.6 n ln(n) / ε²")
left.set(xlabel="ε asked for", ylabel="thousand edges", title="Edges kept")
left.set_xticks(asked, [f"{e:.1f}" for e in asked])
left.set_yticks(ticks := [25, 50, 100, 200], [str(tick) for tick in ticks])
left.minorticks_off()
left.legend()
middle.plot(asked, asked, ":", color="C4", label="as asked for")
middle.errorbar(asked, measured.mean(axis=1), measured.std(axis=1), fmt="o-", color="C0", capsize=3)
middle.set(xlabel="ε asked for", ylabel="ε measured", title="Accuracy", ylim=(0, 1))
middle.legend()
for found, name, style in ((one, "one pass", "o-"), (three, "three passes", "s--")):
    right.semilogx(kept.mean(axis=1) / 1e3, 1 - found.mean(axis=1), style, label=name)
right.set(xlabel="thousand edges kept", ylabel="labels not those of all edges", title="Labels")
right.set_xticks(ticks, [str(tick) for tick in ticks])
right.minorticks_off()
right.legend()
plt.show()
