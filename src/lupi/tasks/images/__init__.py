"""Tasks over images: x* is a region."""
