"""A trained student, used and passed on: x to predictions, without data, method or x*."""
