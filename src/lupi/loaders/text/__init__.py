"""Text: files, vocabularies and batches of sentences."""
