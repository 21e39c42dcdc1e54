"""Defaults that Python, the command line and the server share; each is written only here."""

from typing import Final

EPSILON: Final = 0.5  # where the sparsifier is the result
LABEL_EPSILON: Final = 0.8  # where labels are: passes over the edges refine them
NEIGHBORS: Final = 10
WEIGHTS: Final = "gaussian"
KERNEL_GAMMA: Final = 8.0  # sharpness of these weights: docs/defaults.md
