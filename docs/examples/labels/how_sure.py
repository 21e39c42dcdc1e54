"""
Are the probabilities right?
============================

A probability is useful if it means what it says: of all nodes with the probability 0.8, about 80%
should be right. By default ``HFSClassifier`` calibrates its probabilities with the given labels. It
also estimates from them how many of its answers are right. Neither needs a test set.
"""

# %%
# The data are pictures of digits. We draw forty labels at random, fifteen times. The edges are read
# only once, because ``relabel`` needs no edge again.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ohmlearn import HFSClassifier, knn_edges

X, truth = load_digits(return_X_y=True)
stream = knn_edges(X, n_neighbors=10, weights="gaussian")
models = {
    "before": HFSClassifier(calibration=None, random_state=0).update(stream),
    "after": HFSClassifier(random_state=0).update(stream),
}

n_labels, n_draws = 40, 15
sure = {name: [] for name in models}  # probability of each answer
right = {name: [] for name in models}  # whether it is right
estimates, accuracies = [], []
for seed in range(n_draws):
    chosen = np.random.default_rng(seed).choice(len(X), n_labels, replace=False)
    rest = np.setdiff1d(np.arange(len(X)), chosen)
    for name, model in models.items():
        model.relabel({int(node): int(truth[node]) for node in chosen})
        sure[name].append(model.label_distributions_[rest].max(axis=1))
        right[name].append((model.transduction_ == truth)[rest])
    estimates.append(models["after"].accuracy_estimate_)
    accuracies.append(right["after"][-1].mean())
print(estimates[0])

# %%
# The reliability diagram shows how often answers are right, for each level of probability. On the
# diagonal, the probabilities are right. Before calibration they are far too low. The expected
# calibration error is the mean distance from the diagonal.


def reliability(p, correct, n_bins=15):
    """Return mean probability, share of right answers and number of nodes of each bin."""
    bins = np.minimum((p * n_bins).astype(int), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    used = count > 20  # the others are too few for a share
    means = [np.bincount(bins, values, n_bins)[used] / count[used] for values in (p, correct)]
    return *means, count[used]


figure, axes = plt.subplots(figsize=(5.2, 4.8))
axes.plot([0, 1], [0, 1], ":", color="gray", label="as they should be")
for name, style in zip(models, ("s--", "o-"), strict=True):
    p, share, count = reliability(np.concatenate(sure[name]), np.concatenate(right[name]))
    error = np.average(np.abs(p - share), weights=count)
    axes.plot(p, share, style, label=f"{name} calibration (error {error:.2f})", markersize=5)
axes.set(xlabel="probability of the answer", ylabel="share of right answers")
axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
axes.set_title("1,797 digits, fifteen draws of forty labels")
axes.legend(loc="lower right")
plt.show()

# %%
# ``accuracy_estimate_`` has an interval, which should contain the share of right answers for most
# draws.

low, value, high = np.array([(e.low, e.value, e.high) for e in estimates]).T
inside = (low <= accuracies) & (accuracies <= high)
print(f"{inside.sum()} of {n_draws} intervals contain the share of right answers")

# %%

figure, axes = plt.subplots(figsize=(7.5, 3.6))
draws = np.arange(1, n_draws + 1)
axes.errorbar(draws, value, [value - low, high - value], fmt="o", capsize=3, label="estimate")
axes.plot(draws, accuracies, "_", ms=14, markeredgewidth=2.5, label="share of right answers")
axes.set(xlabel="draw of forty labels", ylabel="accuracy", ylim=(0.4, 1.02), xticks=draws)
axes.set_title("Accuracy, estimated from the labels and measured on all other pictures")
axes.legend(loc="lower right", ncols=2)
plt.show()
