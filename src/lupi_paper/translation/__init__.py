"""Translation: x* is a vector."""
