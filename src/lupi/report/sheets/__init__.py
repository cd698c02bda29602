"""Plain pages without a script: what noise learned, bounds, plans."""
