"""
Voltages on a grid
==================

We model a square sheet of metal with holes as a grid of a quarter of a million nodes connected by
resistors. A current flows in at one corner and out at the opposite corner. The voltages are the
solution of a Laplacian system, L x = b.
"""

# %%
# The sheet
# ---------

import time

import matplotlib.pyplot as plt
import numpy as np

from ohmlearn import Graph, LaplacianSolver, gallery

side = 500
u, v, _ = gallery.grid2d(side, side).edges()
y, x = np.divmod(np.arange(side * side), side)
rng = np.random.default_rng(3)
solid = np.ones(side * side, dtype=bool)
for cx, cy, radius in np.column_stack(
    [rng.uniform(60, side - 60, (26, 2)), rng.uniform(14, 46, 26)]
):
    solid &= (x - cx) ** 2 + (y - cy) ** 2 > radius**2
inside = solid[u] & solid[v]
sheet = Graph.from_edges(u[inside], v[inside], n_nodes=side * side)
print(sheet, sheet.components()[0], "components: the sheet, and each node of a hole")

# %%
# One ampere from corner to corner
# --------------------------------
# Each node in a hole is a separate component. It need not be removed: its voltage is 0, because no
# current flows into it.

b = np.zeros(side * side)
b[0], b[-1] = 1.0, -1.0
solver = LaplacianSolver(sheet, random_state=0)
start = time.process_time()
voltage = solver.solve(b)
ours = time.process_time() - start
report = solver.report_
print(f"{report.method}: {report.reason}")
print(f"{report.iterations[0]} iterations, true residual {report.residual[0]:.1e}")
print(f"resistance of the sheet from corner to corner: {voltage[0] - voltage[-1]:.4f} ohms")

# %%
# For comparison, the direct solver of scipy needs the holes removed and one node grounded.

from scipy.sparse.linalg import spsolve

nodes = np.flatnonzero(sheet.components()[1] == 0)[1:]
start = time.process_time()
direct = np.zeros(side * side)
direct[nodes] = spsolve(sheet.laplacian()[nodes][:, nodes].tocsc(), b[nodes])
scipys = time.process_time() - start
difference = (direct[0] - direct[-1]) / (voltage[0] - voltage[-1]) - 1
print(f"ohmlearn {ours:.1f} s, scipy {scipys:.1f} s; they differ by {abs(difference):.0e}")

# %%
# Sixteen more currents
# ---------------------
# The solver keeps its set-up and solves many right-hand sides as one block.

many = np.zeros((side * side, 16))
ends = rng.choice(nodes, (2, 16), replace=False)
many[ends[0], np.arange(16)], many[ends[1], np.arange(16)] = 1.0, -1.0
start = time.process_time()
solver.solve(many)
print(f"16 right-hand sides: {time.process_time() - start:.1f} s")

# %%
# The picture
# -----------
# Colours show voltages, and lines connect points of equal voltage. The current is strong where the
# lines are close together.

figure, axes = plt.subplots(figsize=(7, 5.6))
picture = np.ma.array(voltage, mask=~solid).reshape(side, side)
limit = 2.2
image = axes.imshow(picture, cmap="PuOr", vmin=-limit, vmax=limit)
levels = np.linspace(-limit, limit, 45)
axes.contour(picture, levels, colors="k", linewidths=0.5, linestyles="solid", alpha=0.5)
axes.set(
    xticks=[], yticks=[], title="Voltages of a sheet with holes, one ampere from corner to corner"
)
axes.set_facecolor("#b4bac0")
axes.grid(False)
axes.spines[:].set_visible(False)
figure.colorbar(image, label="volts", extend="both", shrink=0.8)
plt.show()
