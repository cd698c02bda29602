"""x* of rows: given values, controls, and the input of oracles."""
