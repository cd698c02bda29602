"""Figures: numbers in, drawings out, for pages and papers."""
