"""
Which one to label next
=======================

Labels cost money. If you choose carefully which point to label next, you need fewer labels than
with random choices. New labels need no new pass over the edges: ``relabel`` solves again on the
edges that are kept.
"""

# %%
# The data are pictures of digits, with one label for each digit at the start. Later some digits
# have more labels than others, although all digits are about equally frequent. A uniform
# ``class_prior`` prevents the digits with many labels from dominating.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ohmlearn import HFSClassifier, knn_edges

X, truth = load_digits(return_X_y=True)
stream = knn_edges(X, n_neighbors=10, weights="gaussian")
n = len(X)


def start(seed):
    """Return a model with one label for each digit, these labels, and a generator."""
    rng = np.random.default_rng(seed)
    labels = {int(rng.choice(np.flatnonzero(truth == digit))): digit for digit in range(10)}
    model = HFSClassifier(normalization="cmn", class_prior=np.full(10, 0.1), random_state=0)
    return model.fit_edges(stream, labels), labels, rng


# %%
# We compare two ways to choose the next point: at random, or where the probabilities of the two
# most likely classes are closest.


def margin(model):
    """Return the difference between the two largest probabilities."""
    first, second = np.partition(model.label_distributions_, -2, axis=1)[:, :-3:-1].T
    return first - second


ways = {
    "at random": lambda model, rng: rng.random(n),
    "smallest margin": lambda model, rng: margin(model),
}

# %%
# We add sixty labels one after the other in each way, from five different starts.

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
