"""Harmonic functions from a few labels, on a graph in memory or in passes over a stream."""

from ohmlearn.harmonic.solve_hfs import HFSResult, refine, solve_hfs

__all__ = ["HFSResult", "refine", "solve_hfs"]
