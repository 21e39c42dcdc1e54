"""
False bridges between entities
==============================

Records of the same person were compared in pairs. A few wrong pairs join different persons. Which
ones, and what would connected components have made of them?
"""

# %%
# The pairs
# ---------
# 300 persons have one to eight records each. Nine in ten pairs of records of a person were found;
# 60 wrong pairs have good scores, too.

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ohmlearn.entities import EntityResolver

rng = np.random.default_rng(1)
person = np.repeat(np.arange(300), rng.integers(1, 9, 300))
n = len(person)
u, v = np.triu_indices(n, 1)
kept = (person[u] == person[v]) & (rng.random(len(u)) < 0.9)
wrong = rng.integers(n, size=(2, 60))
u, v = np.append(u[kept], wrong[0]), np.append(v[kept], wrong[1])
p = np.append(rng.beta(12, 1, kept.sum()), rng.beta(8, 2, 60))

# %%
# Entities
# --------
# A link joins two groups if the pairs between them, found or missing, are evidence for it.
# Connected components take every link.

found = EntityResolver().update((u, v, p))
entity = np.arange(n, 2 * n)  # records without any pair are alone
entity[found.nodes_.ids()] = found.nodes_.ids(found.entities_)
link = p >= found.threshold
component = connected_components(coo_array((p[link], (u[link], v[link])), (n, n)))[1]


def precision(cluster):
    """Return how many pairs of records of a cluster are of one person, and the largest size."""
    together = np.triu(cluster[:, None] == cluster, 1)
    right = (person[:, None] == person)[together].mean()
    return f"{right:.1%} of the pairs right, largest cluster {np.bincount(cluster).max()}"


print("entities:            ", precision(entity))
print("connected components:", precision(component))

# %%
# Weak links and false bridges
# ----------------------------
# The leverage of a link says how much depends on it: near 1, nothing else joins its two sides.
# Links of large leverage and modest probability deserve a look; those that the other pairs speak
# against are not joined.

links = found.links()
joined, right = links["joined"], person[links["left"]] == person[links["right"]]
figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
for chosen, colour, name in (
    (joined & right, "C0", "joined, the same person"),
    (joined & ~right, "C3", "joined, different persons"),
    (~joined & right, "C2", "not joined, the same person"),
    (~joined & ~right, "C1", "false bridges: different persons"),
):
    axes.plot(
        links["leverage"][chosen], links["probability"][chosen], "o", color=colour,
        ms=4, alpha=0.7, label=f"{name} ({chosen.sum():,})",
    )  # fmt: skip
axes.set(xlabel="leverage", ylabel="probability of a match")
axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()

# %%
# Reasons
# -------
# Why are the two persons of a bridge not one? The strongest path between their first records has a
# link that is not joined.

bridge = int(np.flatnonzero(~joined & ~right)[3])
ends = found.nodes_.find([links["left"][bridge], links["right"][bridge]])
path, together = found.explain(*found.nodes_.ids(found.entities_[ends]))  # the first records
for a, b, p, _, ok in zip(*path.values(), strict=True):
    print(f"{a} - {b}: {p:.2f}{'' if ok else ', not joined'}")
print(f"all paths together: {together:.2f}")
