"""Runs that show the library at work: the demo, the paper's experiment, a few benchmarks."""
