"""Checks of the data before the first run: facts, and whether x* relates to y."""
