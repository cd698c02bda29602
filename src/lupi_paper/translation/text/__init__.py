"""Parallel text, vocabularies, and vectors of sentences."""
