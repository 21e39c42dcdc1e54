"""
The paper's figure
==================

There are four clusters, with two labels in the first and two in the last. If each point has few
neighbours, no label reaches the inner clusters. If it has many, the clusters are no longer
separated. In between, all labels are right, but the graph is too large to store. This is where a
sparsifier helps.
"""

# %%
# This is the Sparse-HFS experiment of Calandriello, Lazaric and Valko (2015) at a quarter of its
# size: 3,025 points instead of 12,100, and a quarter of the neighbours. ``ohmlearn paper run``
# repeats it at full size; :doc:`/paper` has the figures.

import matplotlib.pyplot as plt
import numpy as np

from ohmlearn import HFSClassifier, gallery, knn_edges

points = gallery.paper_points(3025)
height = points[:, 1]
upper = height > np.median(height)
labelled = np.array([5, 500, 2500, 3000])
names = {int(i): "upper" if upper[i] else "lower" for i in labelled}


def share_right(model):
    """Return the share of correct labels; a node that no label reaches counts one half."""
    right = model.transduction_ == np.where(upper, "upper", "lower")
    return np.where(model.reached_, right, 0.5).mean()


# %%
# For each number of neighbours we compute three answers: the exact one (``epsilon=None``, which is
# stable-HFS and stores the graph), the one of a single pass (``passes=1``, which is Sparse-HFS),
# and the one of four passes. The sparsifier keeps about 18 edges per point, for any number of
# edges.

import warnings

warnings.simplefilter("ignore", UserWarning)  # clusters without a label are expected here

neighbours = np.array([25, 250, 500, 1000, 1125, 1250, 1500, 2000, 2500, 3000])
edges, kept, wrong = [], [], {"exact": [], "one pass": [], "four passes": []}
for k in neighbours:
    stream = knn_edges(points, n_neighbors=int(k), weights="uniform")
    exact = HFSClassifier(epsilon=None, gamma=1.0, random_state=0).fit_edges(stream, names)
    model = HFSClassifier(gamma=1.0, epsilon=0.8, passes=1, random_state=0)
    wrong["exact"].append(1 - share_right(exact))
    wrong["one pass"].append(1 - share_right(model.fit_edges(stream, names)))
    wrong["four passes"].append(1 - share_right(model.refine(stream, passes=3)))
    edges.append(exact.graph_.n_edges)
    kept.append(model.sparsifier_.snapshot().n_edges)
    print(f"k = {k:4}: {edges[-1]:9,} edges, {kept[-1] / edges[-1]:6.1%} kept")

# %%

figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(11, 3.8), gridspec_kw={"width_ratios": [0.8, 2.2, 2.2]}
)
left.scatter(*points[~upper].T, s=1, color="C0")
left.scatter(*points[upper].T, s=1, color="C1")
left.scatter(*points[labelled].T, s=60, marker="*", color="k", zorder=3)
left.set(xticks=[], yticks=[], title="Points, four labels")
left.grid(False)
left.spines[:].set_visible(False)
styles = (("exact", "o-", "C4"), ("one pass", "s:", "C1"), ("four passes", "^--", "C0"))
for name, style, colour in styles:
    middle.plot(neighbours, wrong[name], style, color=colour, label=name, markersize=6)
middle.set(xlabel="neighbours of a point", ylabel="share labelled wrong", title="Labels")
middle.legend()
right.plot(neighbours, np.array(edges), "o-", color="C4", label="all edges")
right.plot(neighbours, np.array(kept), "s-", color="C0", label="edges kept")
right.set(xlabel="neighbours of a point", yscale="log", title="Edges")
right.legend()
plt.show()
