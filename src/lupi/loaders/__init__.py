"""Data: sources of rows, nested subsets, x* and its controls. Independent of methods."""
