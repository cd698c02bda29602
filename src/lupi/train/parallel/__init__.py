"""One run in several processes, passes and precisions."""
