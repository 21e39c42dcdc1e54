"""The warning of a solver that did not reach its tolerance."""

from sklearn.exceptions import ConvergenceWarning

from ohmlearn.errors import OhmWarning


class UnconvergedWarning(OhmWarning, ConvergenceWarning):  # type: ignore[misc]
    """An answer is less accurate than was asked for."""
