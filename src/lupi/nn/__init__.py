"""Noise, sites and networks, independent of methods and datasets."""
