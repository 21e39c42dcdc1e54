"""Style of the figures in the gallery, readable on light and dark pages."""

from typing import Any

import matplotlib
from cycler import cycler

from ohmlearn.report.html_page import COLOURS, INK


def reset(gallery_conf: Any, fname: str) -> None:
    """Set matplotlib up before each example, so that examples contain no style settings."""
    matplotlib.use("agg")
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=COLOURS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "axes.titlecolor": INK,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": INK,
            "grid.alpha": 0.12,
            "xtick.color": INK,
            "ytick.color": INK,
            "legend.frameon": False,
            "figure.constrained_layout.use": True,
            "figure.dpi": 100,
            "lines.linewidth": 2,
        }
    )
