"""Benchmarks: ratios against peers and against the raw compute, in one run."""
