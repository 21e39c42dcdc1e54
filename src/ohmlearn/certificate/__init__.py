"""How far a sparsifier is from its graph."""

from ohmlearn.certificate.certificate import Certificate, certify

__all__ = ["Certificate", "certify"]
