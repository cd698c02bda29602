"""Noise, sites and networks. Knows no method and no data set."""
