"""Methods for noisy labels, with or without an x* about label quality."""
