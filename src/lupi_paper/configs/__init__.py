"""Settings files of the paper's experiments."""
