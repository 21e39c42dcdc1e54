"""Estimators with the interface of scikit-learn, and advice on the number of neighbours."""

from ohmlearn import _attach_names

# Imported when first used, because the labelling job does not need scikit-learn.
__getattr__, __dir__, __all__ = _attach_names(__name__)
