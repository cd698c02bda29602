"""Methods for x* that says how good a label is."""
