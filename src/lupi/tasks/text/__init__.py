"""Texts: x* is a rationale."""
