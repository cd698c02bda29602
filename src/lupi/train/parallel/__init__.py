"""One run in several processes, or in another precision."""
