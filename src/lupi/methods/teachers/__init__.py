"""Methods whose student imitates what x* gives."""
