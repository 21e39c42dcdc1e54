"""
Regression from a few numbers
=============================

``HFSRegressor`` estimates heights along a rolled-up sheet from thirty measurements.
"""

# %%
# The points lie on a roll in space. The height depends on the position along the sheet, so points
# that are close in space can have different heights if they lie on different layers of the roll.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_swiss_roll
from sklearn.neighbors import KNeighborsRegressor

from ohmlearn import HFSRegressor

points, along = make_swiss_roll(4000, noise=0.25, random_state=0)
height = np.sin(along / 1.6) + 0.03 * points[:, 1]
rng = np.random.default_rng(4)
measured = rng.choice(len(points), 30, replace=False)
y = np.full(len(points), np.nan)
y[measured] = height[measured] + rng.normal(0, 0.05, len(measured))

# %%
# ``gamma`` is the weight of smoothness against the fit to the measurements. With ``"auto"`` the
# answer is close to interpolation.

model = HFSRegressor(n_neighbors=10, random_state=0).fit(points, y)
nearest = KNeighborsRegressor(1).fit(points[measured], y[measured]).predict(points)
for name, found in (("along the graph", model.transduction_), ("nearest measured point", nearest)):
    print(f"{name:23} root mean square error {np.sqrt(np.mean((found - height) ** 2)):.3f}")
print(f"gamma {model.gamma_:.2e}")

# %%

figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), sharex=True, sharey=True)
titles = (
    "True heights and measured points",
    "From 30 measurements, along the graph",
    "Nearest measured point",
)
for panel, values, title in zip(axes, (height, model.transduction_, nearest), titles, strict=True):
    image = panel.scatter(
        points[:, 0], points[:, 2], c=values, s=4, cmap="cividis", vmin=-1.2, vmax=1.8
    )
    panel.set(title=title, xticks=[], yticks=[], aspect="equal")
    panel.grid(False)
    panel.spines[:].set_visible(False)
axes[0].plot(
    points[measured, 0], points[measured, 2], "o", color="white", markeredgecolor="k", markersize=6
)
figure.colorbar(image, ax=axes, shrink=0.7, label="height")
plt.show()
