"""The Sparse-HFS paper: its algorithms, its theorem and its experiment, under the paper's names.

D. Calandriello, A. Lazaric and M. Valko, "Large-scale semi-supervised learning with online spectral
graph sparsification", 2015.

    Algorithm 1    `SparseHFS`: an answer after each block of edges
    Algorithm 2    `KelnerLevin`: the sparsifier; also ``ohmlearn paper sparsify``
    Eq. (1), (2)   stable-HFS, `ohmlearn.solve_hfs`
    Theorem 1      `generalization_bound` and `stability_beta`, as printed and as repaired; also
                   ``ohmlearn paper bound``. `certified_bound` takes a fitted classifier.
    Experiment     ``ohmlearn paper run``

These files use the symbols of the paper:

    l, u       numbers of labelled and unlabelled nodes; the labelled set S is drawn uniformly
    k, c       |y| <= k; |f - y| <= c for the answer f of any draw of S
    lambda_1   second smallest eigenvalue of the Laplacian L_G, lambda_n the largest
    epsilon    all ratios x'L_H x / x'L_G x lie in [1 - epsilon, 1 + epsilon]
    R, R^      mean squared error on the unlabelled and on the labelled nodes
    f^, f~     stable-HFS on the graph G, and on its sparsifier H

docs/theory.md derives what is wrong in the printed form of Theorem 1 and why the repaired form
holds.
"""

from ohmlearn import _attach_names

# Imported when first used, because the jobs of the experiment need no estimators.
__getattr__, __dir__, __all__ = _attach_names(__name__)
