"""Comparisons: settings to runs, runs to worker processes, results to records."""
