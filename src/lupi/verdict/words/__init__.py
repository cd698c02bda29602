"""Verdicts in sentences."""
