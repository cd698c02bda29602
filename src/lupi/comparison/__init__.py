"""Comparisons: from settings to runs, from runs to worker processes."""
