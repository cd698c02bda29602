"""Analysis of the noise of a trained run: its variance, and what the variance correlates with."""
