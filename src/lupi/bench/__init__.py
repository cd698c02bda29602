"""Benchmarks: ratios of times, measured alternately in one process."""
