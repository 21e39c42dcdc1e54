"""Methods of PyTorch Geometric on the CPU: Correct and Smooth, APPNP and a graph convolution.

The settings are those of its own examples and benchmarks: 64 hidden units, dropout 0.5, Adam with
a rate of 0.01, weight decay 5e-4 and 200 epochs; APPNP with 10 steps and alpha 0.1; Correct and
Smooth with 50 steps each, alpha 1 and 0.8, and a scale of 20.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch_geometric.nn import APPNP, CorrectAndSmooth, GCNConv

from benchmarks.feature_methods import (
    DECAY,
    DROPOUT,
    EPOCHS,
    HIDDEN,
    RATE,
    Labels,
    NodeData,
    linear_model,
    scaled_rows,
)


@dataclass
class Tensors:
    """Features, both directions of all edges with their weights, and the data themselves."""

    data: NodeData
    x: torch.Tensor
    edge_index: torch.Tensor
    edge_weight: torch.Tensor


def to_tensors(data: NodeData) -> Tensors:
    """Convert the data."""
    X = scaled_rows(data)
    X = X.toarray() if sp.issparse(X) else X
    A = sp.coo_array(data.graph.to_scipy())
    return Tensors(
        data,
        torch.from_numpy(np.asarray(X, dtype=np.float32)),
        torch.from_numpy(np.stack(A.coords).astype(np.int64)),
        torch.from_numpy(A.data.astype(np.float32)),
    )


class Mlp(torch.nn.Module):
    """Two layers on the features alone."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.first = torch.nn.Linear(n_features, HIDDEN)
        self.second = torch.nn.Linear(HIDDEN, n_classes)

    def forward(self, given: Tensors) -> torch.Tensor:
        """Return one row of scores per node."""
        x = F.dropout(given.x, DROPOUT, self.training)
        x = F.dropout(F.relu(self.first(x)), DROPOUT, self.training)
        return self.second(x)


class Appnp(Mlp):
    """The same two layers, with their scores propagated."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__(n_features, n_classes)
        self.propagate = APPNP(K=10, alpha=0.1)

    def forward(self, given: Tensors) -> torch.Tensor:
        """Return one row of scores per node."""
        return self.propagate(super().forward(given), given.edge_index, given.edge_weight)


class Gcn(torch.nn.Module):
    """Two graph convolutions."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.first = GCNConv(n_features, HIDDEN)
        self.second = GCNConv(HIDDEN, n_classes)

    def forward(self, given: Tensors) -> torch.Tensor:
        """Return one row of scores per node."""
        edges = given.edge_index, given.edge_weight
        x = F.dropout(given.x, DROPOUT, self.training)
        x = F.dropout(F.relu(self.first(x, *edges)), DROPOUT, self.training)
        return self.second(x, *edges)


def train(make: Callable[[int, int], Any], given: Tensors, y: Labels, seed: int) -> torch.Tensor:
    """Train on the labels for all epochs and return the probabilities of all nodes."""
    torch.manual_seed(seed)
    known, classes = _known(y)
    model = make(given.x.shape[1], given.data.n_classes)
    whole = given
    if make is Mlp:  # uses no edges: the labelled rows are enough to train it
        given, known = replace(given, x=given.x[known]), torch.arange(len(known))
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, weight_decay=DECAY)
    model.train()
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        F.cross_entropy(model(given)[known], classes).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return model(whole).softmax(dim=1)


def appnp(given: Tensors, y: Labels, seed: int) -> Labels:
    """Label by APPNP."""
    return train(Appnp, given, y, seed).argmax(dim=1).numpy()


def gcn(given: Tensors, y: Labels, seed: int) -> Labels:
    """Label by a graph convolutional network."""
    return train(Gcn, given, y, seed).argmax(dim=1).numpy()


def correct_mlp(given: Tensors, y: Labels, seed: int) -> Labels:
    """Label by Correct and Smooth on a small network."""
    return correct_and_smooth(given, train(Mlp, given, y, seed), y)


def correct_linear(given: Tensors, y: Labels, seed: int) -> Labels:
    """Label by Correct and Smooth on logistic regression."""
    X, known = given.data.X, y >= 0
    model = linear_model(X, sp.issparse(X)).fit(X[known], y[known])
    found = np.zeros((len(y), given.data.n_classes), dtype=np.float32)
    found[:, model.classes_] = model.predict_proba(X)
    return correct_and_smooth(given, torch.from_numpy(found), y)


def correct_and_smooth(given: Tensors, found: torch.Tensor, y: Labels, **options: Any) -> Labels:
    """Correct and smooth probabilities: D^-1/2 A D^-1/2 corrects, D^-1 A smooths."""
    known, classes = _known(y)
    rows, columns = given.edge_index
    degrees = torch.zeros(len(y)).index_add_(0, rows, given.edge_weight)
    root = degrees.pow(-0.5).nan_to_num(posinf=0.0)
    settings: dict[str, Any]
    settings = {"correction_alpha": 1.0, "smoothing_alpha": 0.8, "autoscale": False, "scale": 20.0}
    post = CorrectAndSmooth(
        num_correction_layers=50, num_smoothing_layers=50, **(settings | options)
    )
    symmetric = root[rows] * given.edge_weight * root[columns]
    mean = root[rows] ** 2 * given.edge_weight
    # PyG sends along edge_index from its first row to its second: rows are the receivers here.
    edges = torch.stack([columns, rows])
    corrected = post.correct(found, classes, known, edges, symmetric)
    return post.smooth(corrected, classes, known, edges, mean).argmax(dim=1).numpy()


def _known(y: Labels) -> tuple[torch.Tensor, torch.Tensor]:
    known = np.flatnonzero(y >= 0)
    return torch.from_numpy(known), torch.from_numpy(y[known].astype(np.int64))
