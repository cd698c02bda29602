"""Engines: who does the runs of a comparison. Results do not depend on it."""
