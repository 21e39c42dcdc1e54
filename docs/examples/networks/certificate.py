"""
Certificate and refinement
==========================

How good is what one pass has kept? That is measured, not hoped for. And if it is not good enough:
each further pass over the edges brings the answer closer to that of the full graph.
"""

# %%
# A dense graph: 3,000 points, each joined to its 1,000 nearest.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from ohmlearn import Graph, StreamingSparsifier, certify, knn_edges, refine, solve_hfs

points, group = make_blobs(3000, centers=5, cluster_std=2.2, random_state=0)
stream = knn_edges(points, n_neighbors=1000)
sparsifier = StreamingSparsifier(n_nodes=3000, epsilon=0.8, random_state=0)
for batch in stream:
    sparsifier.update(*batch)
h = sparsifier.snapshot()
print(f"{sparsifier.n_edges_seen_:,} edges seen, {h.n_edges:,} kept")

# %%
# The certificate
# ---------------
# ``epsilon=0.8`` sets how much is kept. What came out is measured by reading the edges a few more
# times: an estimate of epsilon that is never too high, and a bound that holds with probability
# 0.999. More passes bring the two together.

print(certify(stream, h, random_state=0), end="\n\n")
numbers = np.array([1, 2, 4, 6, 7, 8, 10, 12, 14, 16])
found = [certify(stream, h, eta=1e-6, max_passes=int(p), random_state=0) for p in numbers]

# %%
# The refinement
# --------------
# One label in each group. Each pass is a step of conjugate gradients on the full graph, with what
# was kept as preconditioner. The residual is that before the last step, which reads no edge. Here
# the graph is small enough to be stored, so that the error can be computed.

labelled = [int(np.flatnonzero(group == g)[0]) for g in range(5)]
Y = np.eye(5)
exact = solve_hfs(Graph.from_batches(stream), labelled, Y, tol=1e-12).f
passes = np.arange(1, 13)
answers = [
    refine(stream, h, labelled, Y, passes=int(p), tol=1e-12, step_ahead=False) for p in passes
]
first = solve_hfs(h, labelled, Y).f
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
    label="not above, with probability 0.999",
)
left.plot(numbers, [c.epsilon for c in found], "^-", color="C0", label="not below")
left.axhline(0.8, color="C4", linestyle=":", label="asked for")
left.set(xlabel="passes", ylabel="epsilon", ylim=(0, 2.2), title="The certificate")
left.legend(loc="upper right")
right.semilogy(np.arange(1, 14), errors, "o-", label="error of the scores")
right.semilogy(
    passes + 1, [a.residual.max() for a in answers], "s--", label="residual, as reported"
)
right.set(xlabel="passes, the first included", ylabel="relative", title="The refinement")
right.legend()
plt.show()
