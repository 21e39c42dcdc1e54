"""
Which ones to label next
========================

Labels cost money. ``suggest_labels`` says which nodes are worth a label. With its suggestions you
need far fewer labels than with random ones.
"""

# %%
# The data are pictures of digits, each connected to its ten nearest neighbours. The edges are read
# once. At the start there are no labels at all.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ohmlearn import HFSClassifier, knn_edges

X, truth = load_digits(return_X_y=True)
stream = knn_edges(X, n_neighbors=10, weights="gaussian")
model = HFSClassifier(random_state=0).update(stream)
for suggestion in model.suggest_labels(5):
    print(suggestion.node, suggestion.reason)

# %%
# The first suggestions cover regions without a label. Later suggestions, when all classes have some
# labels, are nodes between two classes.

labels = {node: int(truth[node]) for node in range(60)}
for suggestion in model.relabel(labels).suggest_labels(5):
    print(suggestion.node, suggestion.reason)

# %%
# We label eighty pictures, ten at a time: as suggested, or at random. New labels need no new
# pass over the edges: ``relabel`` solves again on the edges that are kept.

n_batches, size, n_runs = 8, 10, 3


def suggest(model, labels, rng):
    """Return the nodes that the model suggests."""
    return [suggestion.node for suggestion in model.suggest_labels(size)]


def draw(model, labels, rng):
    """Return random nodes without a label."""
    unlabelled = np.setdiff1d(np.arange(len(X)), list(labels))
    return rng.choice(unlabelled, size, replace=False).tolist()


def label_in_batches(choose, seed):
    """Return the share of right labels after each batch."""
    rng = np.random.default_rng(seed)
    model, labels, right = HFSClassifier(random_state=seed).update(stream), {}, []
    for _ in range(n_batches):
        labels |= {node: int(truth[node]) for node in choose(model, labels, rng)}
        right.append(np.mean(model.relabel(labels).transduction_ == truth))
    return right


ways = {"suggested": suggest, "at random": draw}
right = {
    name: np.array([label_in_batches(choose, seed) for seed in range(n_runs)])
    for name, choose in ways.items()
}
for name, values in right.items():
    print(f"{name:10} {values.mean(axis=0).round(3)}")

# %%
# Thirty suggested labels are better here than eighty random ones.

figure, axes = plt.subplots(figsize=(7.5, 4.2))
counts = size * np.arange(1, n_batches + 1)
for (name, values), style in zip(right.items(), ("o-", "s--"), strict=True):
    line = axes.plot(counts, values.mean(axis=0), style, label=name, markersize=5)[0]
    low, high = values.min(axis=0), values.max(axis=0)
    axes.fill_between(counts, low, high, color=line.get_color(), alpha=0.12)
axes.set(xlabel="labels", ylabel="share of all pictures labelled right")
axes.set_title("1,797 digits, mean and range of three runs")
axes.legend(loc="lower right")
plt.show()
