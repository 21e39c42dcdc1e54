"""Prints checksums of results that pass through BLAS, for test_blas_threads.py."""

import dataclasses
import hashlib
import warnings

import numpy as np

from ohmlearn import (
    GraphFeatureClassifier,
    GraphFeatureRegressor,
    HFSClassifier,
    certify,
    gallery,
    refine,
)
from ohmlearn.paper import spectral_extremes
from ohmlearn.report.label_report import lay_out

N_NODES, N_EDGES, N_CLASSES = 3000, 40_000, 70


def checksum(*arrays: object) -> str:
    """Return a hash of the bytes of arrays."""
    return hashlib.sha256(b"".join(np.asarray(x).tobytes() for x in arrays)).hexdigest()


def main() -> None:
    """Label, refine, certify; then the other users of dense matrices."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, N_NODES, (2, N_EDGES))
    nodes = rng.choice(N_NODES, 2 * N_CLASSES, replace=False)
    classes = np.arange(len(nodes)) % N_CLASSES
    model = HFSClassifier(passes=3, epsilon=0.9, random_state=0)
    model.fit_edges([(u, v)], dict(zip(nodes, classes, strict=True)), n_nodes=N_NODES)
    print("labels", checksum(model.transduction_))
    print("label distributions", checksum(model.label_distributions_))
    h = model.graph_
    found = refine((u, v), h, nodes, np.eye(N_CLASSES)[classes], passes=3, random_state=0)
    print("refine", checksum(found.f, found.mu, found.residual, found.error))
    certificate = certify((u, v), h, max_passes=4, random_state=0)
    print("certificate", *dataclasses.astuple(certificate))
    print("eigenvalues", spectral_extremes(gallery.complete(400)))
    print("layout", checksum(*lay_out(h)))
    points = rng.standard_normal((600, 30))
    y = np.where(np.arange(600) < 40, np.arange(600) % 20, -1)
    model = HFSClassifier(affinity="rbf", random_state=0).fit(points, y)
    print("new points", checksum(model.predict_proba(rng.standard_normal((300, 30)))))
    classes = np.arange(1500) % 12
    X = np.eye(12, 120)[classes] + rng.standard_normal((1500, 120))
    y = np.where(rng.random(1500) < 0.5, classes, -1)
    u, v = rng.integers(0, 1500, (2, 6000))
    edges = (u, (u + 12 * v) % 1500)  # between nodes of the same class
    model = GraphFeatureClassifier(cv=2, gamma=3.0, random_state=0).fit_edges(edges, X, y)
    print("features", checksum(model.label_distributions_, model.predict_proba(X)))
    values = np.where(y < 0, np.nan, X @ rng.standard_normal(120))
    model = GraphFeatureRegressor(cv=2, gamma=3.0, random_state=0).fit_edges(edges, X, values)
    print("numbers", checksum(model.transduction_))


if __name__ == "__main__":
    main()
