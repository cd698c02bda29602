"""A look at the data before the first run: what was read, and whether x* relates to anything."""
