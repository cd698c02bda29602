"""What the noise of a trained run looks like, and what it goes with."""
