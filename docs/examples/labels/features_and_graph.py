"""
Features and graph together
===========================

Often there are edges between nodes, and columns about each node. ``GraphFeatureClassifier`` uses
both. This example compares it with the edges alone and with the columns alone.
"""

# %%
# The data are pictures of digits, cut in half. The upper halves make the graph: each picture is
# joined to the ten with the most similar upper halves. The pixels of the lower half are the
# columns. So neither the graph nor the columns know the whole picture.

import warnings
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from ohmlearn import Graph, GraphFeatureClassifier, GraphSmoother, HFSClassifier, knn_edges

pixels, truth = load_digits(return_X_y=True)
upper, X = pixels[:, :32], pixels[:, 32:]
graph = Graph.from_batches(knn_edges(upper, n_neighbors=10, weights="uniform"), n_nodes=len(X))
print(graph)

# %%
# What smoothing does
# -------------------
#
# ``GraphSmoother`` replaces the columns of a node by a mean over the nodes around it, the wider the
# larger ``gamma`` is. Below, only the lower halves are smoothed: each becomes a mixture of the
# lower halves of pictures whose upper halves are similar. With a very large ``gamma`` all pictures
# get nearly the same one.

gammas = (0, 1, 3, 9, 1000)
mean = X.mean(axis=0)
smoothed = [mean + GraphSmoother(graph, gamma=gamma).fit_transform(X - mean) for gamma in gammas]
shown = []
for digit in (1, 4, 7):
    members = np.flatnonzero(truth == digit)
    distance = np.linalg.norm(X[members] - X[members].mean(axis=0), axis=1)
    shown.append(members[np.argmax(distance)])

figure, axes = plt.subplots(len(shown), len(gammas), figsize=(7.5, 5))
for row, node in zip(axes, shown, strict=True):
    for cell, columns in zip(row, smoothed, strict=True):
        picture = np.concatenate([upper[node], columns[node]]).reshape(8, 8)
        cell.imshow(picture, cmap="gray_r", vmin=0, vmax=16)
        cell.axhline(3.5, color="tab:orange", linewidth=1.5)
        cell.set(xticks=[], yticks=[])
for cell, gamma in zip(axes[0], gammas, strict=True):
    cell.set_title("as it is" if gamma == 0 else f"gamma = {gamma}")
plt.show()

# %%
# For a classifier it matters that the digits move apart. The two main directions in which the lower
# halves of four digits differ, before and after smoothing:

from sklearn.decomposition import PCA

some = np.flatnonzero(np.isin(truth, (1, 4, 5, 9)))
figure, axes = plt.subplots(1, 2, figsize=(8.5, 4))
for cell, gamma in zip(axes, (0, 9), strict=True):
    plane = PCA(2).fit_transform(smoothed[gammas.index(gamma)][some])
    for digit in (1, 4, 5, 9):
        there = truth[some] == digit
        cell.plot(*plane[there].T, "o", markersize=3, alpha=0.6, label=str(digit))
    cell.set(xticks=[], yticks=[], title="as they are" if gamma == 0 else f"gamma = {gamma}")
axes[0].legend(markerscale=2)
plt.show()

# %%
# Labels
# ------
#
# We draw one to twenty labels of each digit, five times. The three methods get the same labels.


def draw_labels(count, rng):
    """Keep `count` labels of each digit."""
    y = np.full(len(X), -1)
    for digit in range(10):
        some = rng.choice(np.flatnonzero(truth == digit), count, replace=False)
        y[some] = digit
    return y


counts = [1, 2, 5, 10, 20]
n_draws = 5
right = {name: np.empty((len(counts), n_draws)) for name in ("columns", "graph", "both")}
for i, count in enumerate(counts):
    for draw in range(n_draws):
        y = draw_labels(count, np.random.default_rng(draw))
        known, rest = y != -1, y == -1
        columns = LogisticRegression(C=0.3, max_iter=1000).fit(X[known] / 5, y[known])
        by_edges = HFSClassifier(random_state=0).fit_edges(graph, y)
        both = GraphFeatureClassifier(graph=graph, random_state=0).fit(X, y)
        right["columns"][i, draw] = columns.score(X[rest] / 5, truth[rest])
        right["graph"][i, draw] = np.mean(by_edges.transduction_[rest] == truth[rest])
        right["both"][i, draw] = np.mean(both.transduction_[rest] == truth[rest])
for name, values in right.items():
    print(f"{name:8} {values.mean(axis=1).round(3)}")

# %%
# With few labels, both together are about as good as the graph alone. With more labels they are
# better than either.

figure, axes = plt.subplots(figsize=(7, 4))
styles = {"columns": "^:", "graph": "s--", "both": "o-"}
for name, values in right.items():
    mean, spread = values.mean(axis=1), values.std(axis=1)
    axes.errorbar(counts, mean, spread, fmt=styles[name], capsize=3, label=name, markersize=6)
axes.set(xscale="log", xlabel="labels of each digit", ylabel="share of the others labelled right")
axes.set_xticks(counts, [str(count) for count in counts])
axes.set_xticks([], minor=True)
axes.set_title("1,797 digits, mean and standard deviation of five draws")
axes.legend()
plt.show()

# %%
# Should I use the graph at all?
# ------------------------------
#
# ``graph_use_`` answers this from labels that are left out. If we shuffle the nodes of the graph,
# its edges mean nothing. This is noticed, and the answers are those of the columns alone.

print(fill(str(both.graph_use_), 88))

# %%

shuffled = np.random.default_rng(0).permutation(len(X))
u, v, w = graph.edges()
wrong = Graph.from_edges(shuffled[u], shuffled[v], w, n_nodes=len(X))
with warnings.catch_warnings(action="ignore"):  # a warning says the same
    alone = GraphFeatureClassifier(graph=wrong, random_state=0).fit(X, y)
print(fill(str(alone.graph_use_), 88))
print(f"{np.mean(alone.transduction_[rest] == truth[rest]):.3f} right")
