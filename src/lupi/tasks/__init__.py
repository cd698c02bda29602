"""Tasks: data, network, loss and metrics. They do not depend on methods."""
