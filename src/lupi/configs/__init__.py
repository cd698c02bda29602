"""Settings files that come with lupi."""
