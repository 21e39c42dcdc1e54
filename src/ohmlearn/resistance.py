"""Effective resistances."""
