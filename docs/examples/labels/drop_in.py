"""
Replacing LabelSpreading
========================

``HFSClassifier`` has the interface of scikit-learn's ``LabelSpreading``: the same ``fit``, the same
``-1`` for unknown labels, and the same attributes ``transduction_`` and ``label_distributions_``.
"""

# %%
# The data are pictures of digits, with one to twenty labels for each digit.

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.semi_supervised import LabelSpreading

from ohmlearn import HFSClassifier

X, truth = load_digits(return_X_y=True)
models = {
    "HFSClassifier": HFSClassifier(n_neighbors=10, random_state=0),
    "LabelSpreading": LabelSpreading(kernel="knn", n_neighbors=11, max_iter=200),  # with itself
    "LabelSpreading, rbf kernel": LabelSpreading(kernel="rbf", gamma=0.001, max_iter=200),
}


def draw_labels(count, rng):
    """Keep `count` labels of each digit."""
    y = np.full(len(X), -1)
    for digit in range(10):
        some = rng.choice(np.flatnonzero(truth == digit), count, replace=False)
        y[some] = digit
    return y


# %%
# We draw the labels ten times for each number of labels. All models get the same labels.

warnings.simplefilter("ignore")  # scikit-learn divides by zero where no label reaches
counts = [1, 2, 3, 5, 10, 20]
right = {name: np.empty((len(counts), 10)) for name in models}
seconds = dict.fromkeys(models, 0.0)
for i, count in enumerate(counts):
    for draw in range(10):
        y = draw_labels(count, np.random.default_rng(draw))
        for name, model in models.items():
            start = time.process_time()
            model.fit(X, y)
            seconds[name] += time.process_time() - start
            right[name][i, draw] = np.mean(model.transduction_[y == -1] == truth[y == -1])
for name in models:
    print(f"{name:26} {right[name].mean(axis=1).round(3)}  {seconds[name]:5.1f} s in all")

# %%
# Pipelines, parameter searches and predictions for new pictures work as usual.

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

y = draw_labels(5, np.random.default_rng(0))
pipeline = make_pipeline(StandardScaler(), HFSClassifier(random_state=0))
pipeline.fit(X[:1500], y[:1500])
print(f"new pictures: {np.mean(pipeline.predict(X[1500:]) == truth[1500:]):.3f} right")

# %%

figure, axes = plt.subplots(figsize=(7, 4))
for (name, values), style in zip(right.items(), ("o-", "s--", "^:"), strict=True):
    mean, spread = values.mean(axis=1), values.std(axis=1)
    axes.errorbar(counts, mean, spread, fmt=style, capsize=3, label=name, markersize=6)
axes.set(xscale="log", xlabel="labels of each digit", ylabel="share of the others labelled right")
axes.set_xticks(counts, [str(count) for count in counts])
axes.set_xticks([], minor=True)
axes.set_title("1,797 digits, mean and standard deviation of ten draws")
axes.legend()
plt.show()
