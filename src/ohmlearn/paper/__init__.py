"""Bounds on the error of labels from a sparsifier: Theorem 1 of the paper and its correction.

The paper is Calandriello, Lazaric and Valko, "Large-scale semi-supervised learning with online
spectral graph sparsification" (2015), on Sparse-HFS. "Printed" means as in the paper, "repaired"
the corrected form. These files use the symbols of the paper:

    l, u       numbers of labelled and unlabelled nodes; the labelled set S is drawn uniformly
    k, c       |y| <= k; |f - y| <= c for the answer f of any draw of S
    lambda_1   second smallest eigenvalue of the Laplacian L_G, lambda_n the largest
    epsilon    all ratios x'L_H x / x'L_G x lie in [1 - epsilon, 1 + epsilon]
    R, R^      mean squared error on the unlabelled and on the labelled nodes
    f^, f~     stable-HFS on the graph G, and on its sparsifier H

docs/theory.md derives what is wrong in the printed form and why the repaired form holds.
"""

from ohmlearn import _attach_names

# Imported when first used, because the jobs of the experiment need no estimators.
__getattr__, __dir__, __all__ = _attach_names(__name__)
