"""Benchmarks: ratios of times, measured in turns in one process."""
