"""The HTML page of a comparison, and what serves it."""
