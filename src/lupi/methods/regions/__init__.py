"""Methods for an x* that marks a region of x."""
