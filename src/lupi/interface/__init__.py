"""What `lupi.compare` does, and what the command shares with it: anything given to a verdict."""
