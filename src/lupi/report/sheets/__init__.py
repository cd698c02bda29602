"""Static pages without scripts: analyses of noise, bounds, plans."""
