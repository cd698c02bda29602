"""Methods that add noise to activations."""
