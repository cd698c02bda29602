"""Methods whose student imitates a network that sees x*."""
