"""Engines execute the runs of a comparison. Results do not depend on the engine."""
