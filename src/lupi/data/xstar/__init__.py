"""x* of rows: what people give, what controls make of it, what an oracle sees."""
