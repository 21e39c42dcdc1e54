"""How far a sparsifier is from its graph."""

from ohmlearn.certificate.certify import Certificate, certify

__all__ = ["Certificate", "certify"]
