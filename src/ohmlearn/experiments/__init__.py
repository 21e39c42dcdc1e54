"""The demo, the paper's experiment, and a few short benchmarks."""
