"""
Certificate and refinement
==========================

How good is the sparsifier of one pass? ``certify`` measures it. If it is not good enough, each
further pass over the edges brings the answer closer to that of the full graph.
"""

# %%
# The graph is dense: 3,000 points, each connected to its 1,000 nearest neighbours.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from ohmlearn import Graph, StreamingSparsifier, certify, knn_edges, refine, solve_hfs

points, group = make_blobs(3000, centers=5, cluster_std=2.2, random_state=0)
stream = knn_edges(points, n_neighbors=1000, weights="uniform")
sparsifier = StreamingSparsifier(n_nodes=3000, epsilon=0.8, random_state=0)
for batch in stream:
    sparsifier.update(*batch)
h = sparsifier.snapshot()
print(f"{sparsifier.n_edges_seen_:,} edges seen, {h.n_edges:,} kept")

# %%
# The certificate
# ---------------
# ``epsilon=0.8`` sets how many edges are kept. ``certify`` reads the edges a few more times and
# measures the epsilon that was reached. It returns an estimate that is never too high, and a bound
# that holds with probability 0.999. With more passes the two come closer together.

print(certify(stream, h, random_state=0), end="\n\n")
numbers = np.array([1, 2, 4, 6, 7, 8, 10, 12, 14, 16])
found = [certify(stream, h, eta=1e-6, max_passes=int(p), random_state=0) for p in numbers]

# %%
# The refinement
# --------------
# Each group has one label. Each pass is a step of conjugate gradients on the full graph,
# preconditioned by the sparsifier. This graph is small enough to be stored, so the exact answer and
# the error can be computed. With ``step_ahead=False`` no step without a pass follows, so the
# residual and the error belong to the same scores.

labelled = [int(np.flatnonzero(group == g)[0]) for g in range(5)]
Y = np.eye(5)
exact = solve_hfs(Graph.from_batches(stream), labelled, Y, tol=1e-12, random_state=0).f
passes = np.arange(1, 13)
answers = [
    refine(stream, h, labelled, Y, passes=int(p), tol=1e-12, step_ahead=False, random_state=0)
    for p in passes
]
first = solve_hfs(h, labelled, Y, random_state=0).f
errors = [
    np.linalg.norm(f - exact) / np.linalg.norm(exact) for f in [first] + [a.f for a in answers]
]
wrong = [np.mean(f.argmax(1) != exact.argmax(1)) for f in [first] + [a.f for a in answers]]
print("labels that differ from the exact ones, pass by pass:")
print(" ".join(f"{share:.2%}" for share in wrong[:6]))

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.9))
left.fill_between(
    numbers,
    [c.epsilon for c in found],
    [min(c.epsilon_bound, 2) for c in found],
    color="C4",
    alpha=0.15,
)
left.plot(
    numbers,
    [c.epsilon_bound for c in found],
    "v--",
    color="C1",
    label="upper bound, with probability 0.999",
)
left.plot(numbers, [c.epsilon for c in found], "^-", color="C0", label="estimate, never too high")
left.axhline(0.8, color="C4", linestyle=":", label="requested")
left.set(xlabel="passes", ylabel="epsilon", ylim=(0, 2.2), title="The certificate")
left.legend(loc="upper right")
right.semilogy(np.arange(1, 14), errors, "o-", label="error of the scores")
right.semilogy(passes + 1, [a.residual.max() for a in answers], "s--", label="reported residual")
right.set(xlabel="passes, the first included", ylabel="relative", title="The refinement")
right.legend()
plt.show()
