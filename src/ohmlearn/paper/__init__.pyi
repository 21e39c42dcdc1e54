# The public names of ohmlearn.paper: `import ohmlearn.paper` reads this list.
from ohmlearn.paper.bounds import BoundTerms as BoundTerms
from ohmlearn.paper.bounds import GeneralizationBound as GeneralizationBound
from ohmlearn.paper.bounds import Stability as Stability
from ohmlearn.paper.bounds import generalization_bound as generalization_bound
from ohmlearn.paper.bounds import stability_beta as stability_beta
from ohmlearn.paper.certified_bounds import CertifiedBound as CertifiedBound
from ohmlearn.paper.certified_bounds import SpectralExtremes as SpectralExtremes
from ohmlearn.paper.certified_bounds import certified_bound as certified_bound
from ohmlearn.paper.certified_bounds import spectral_extremes as spectral_extremes
from ohmlearn.paper.sparse_hfs import BlockAnswer as BlockAnswer
from ohmlearn.paper.sparse_hfs import SparseHFS as SparseHFS
from ohmlearn.sparsifier.kelner_levin import KelnerLevin as KelnerLevin
