"""
Which one to label next
=======================

Labels cost money. Asking for those that would tell most takes fewer of them than asking at random,
and other labels need no new reading of the edges: ``relabel`` solves again on what is kept.
"""

# %%
# Digits, one label of each to start with. Soon some digits will have more labels than others; all
# are about as frequent, and saying so keeps those with many labels from taking over.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ohmlearn import HFSClassifier, knn_edges

X, truth = load_digits(return_X_y=True)
stream = knn_edges(X, n_neighbors=10, weights="gaussian")
n = len(X)


def start(seed):
    """Return a model that knows one picture of each digit, and these labels."""
    rng = np.random.default_rng(seed)
    labels = {int(rng.choice(np.flatnonzero(truth == digit))): digit for digit in range(10)}
    model = HFSClassifier(normalization="cmn", class_prior=np.full(10, 0.1), random_state=0)
    return model.fit_edges(stream, labels), labels, rng


# %%
# Two ways to ask: at random, or where the two likeliest classes are closest.


def margin(model):
    """Return how far the likeliest class is ahead of the second."""
    first, second = np.partition(model.label_distributions_, -2, axis=1)[:, :-3:-1].T
    return first - second


ways = {
    "at random": lambda model, rng: rng.random(n),
    "where it is least clear": lambda model, rng: margin(model),
}

# %%
# Ask for sixty more labels, one after the other, in each way; five starts.

n_asked, n_starts = 60, 5
right = {name: np.empty((n_starts, n_asked + 1)) for name in ways}
for name, rank in ways.items():
    for seed in range(n_starts):
        model, labels, rng = start(seed)
        for asked in range(n_asked + 1):
            right[name][seed, asked] = np.mean(model.transduction_ == truth)
            cost = rank(model, rng)
            cost[list(labels)] = np.inf
            node = int(np.argmin(cost))
            labels[node] = int(truth[node])
            model.relabel(labels)
    print(f"{name:24} {right[name].mean(axis=0)[[0, 10, 20, 40, 60]].round(3)}")

# %%

figure, axes = plt.subplots(figsize=(7.5, 4.2))
for (name, values), style in zip(right.items(), ("--", "-"), strict=True):
    mean = values.mean(axis=0)
    line = axes.plot(10 + np.arange(n_asked + 1), mean, style, label=name)[0]
    low, high = values.min(axis=0), values.max(axis=0)
    axes.fill_between(10 + np.arange(n_asked + 1), low, high, color=line.get_color(), alpha=0.12)
axes.set(xlabel="labels", ylabel="share of all pictures labelled right")
axes.set_title("Mean of five starts, and their range")
axes.legend(loc="lower right")
plt.show()
