"""Where rows come from: sources, nested subsets, x* and its controls. Knows no method."""
