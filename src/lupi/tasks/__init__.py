"""Tasks bind data, networks, loss and metrics; they know no method."""
