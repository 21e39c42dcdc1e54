"""
Types and fates of single cells
===============================

A few cells of a branching process have a known type. ``label_cells`` finds the types of all, with
probabilities, and ``find_fates`` where each cell is going.
"""

# %%
# The cells
# ---------
# 3,000 cells lie on a trunk with three branches, in 10 dimensions, as principal components would.

import matplotlib.pyplot as plt
import numpy as np
from anndata import AnnData

from ohmlearn.anndata import find_fates, label_cells

rng = np.random.default_rng(4)
time, branch = rng.random(3000), rng.integers(3, size=3000)
angle = 2 * np.pi * branch / 3
out = np.maximum(0, time - 0.3)
points = np.c_[out * np.cos(angle), out * np.sin(angle), time, rng.normal(0, 0.03, (3000, 7))]
points[:, :3] += rng.normal(0, 0.04, (3000, 3))
truth = np.where(time < 0.35, "stem", np.array(["B", "T", "NK"])[branch])
adata = AnnData(np.zeros((3000, 1)), obsm={"X_pca": points})

# %%
# Types
# -----
# 2% of the cells are annotated. Cells whose most likely type has a probability below 0.9 get none.

adata.obs["known"] = np.where(rng.random(3000) < 0.02, truth, None)
model = label_cells(adata, "known", abstain=0.9)
label, unsure = adata.obs["ohmlearn_label"], adata.obs["ohmlearn_abstains"]
print(f"{(label == truth)[~unsure].mean():.1%} right, {unsure.mean():.1%} of the cells abstain")
print(model.explain(adata.obs_names[int(np.argmax(unsure))]).text(changes=False))

# %%
# Fates
# -----
# The last cells of the branches are the terminal states. The fate of a cell is the probability that
# a random walk from it ends in each.

adata.obs["end"] = np.where(time > 0.97, truth, None)
fates = find_fates(adata, "end")
early = fates[time < 0.1].mean()
print("the earliest cells:", ", ".join(f"{name} {p:.2f}" for name, p in early.items()))

# %%

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
plots = {
    "known types": None,
    "uncertainty of the type": adata.obs["ohmlearn_uncertainty"],
    "fate B": fates["B"],
}
for ax, (title, values) in zip(axes, plots.items(), strict=True):
    if values is None:
        ax.scatter(points[:, 0], points[:, 1], c="0.85", s=3)
        for number, name in enumerate(label.cat.categories):
            of = adata.obs["known"] == name
            ax.scatter(points[of, 0], points[of, 1], color=f"C{number}", s=12, label=name)
        ax.legend(loc="upper right")
    else:
        drawn = ax.scatter(points[:, 0], points[:, 1], c=values, s=3)
        figure.colorbar(drawn, ax=ax)
    ax.set(title=title, xticks=[], yticks=[])
plt.show()
