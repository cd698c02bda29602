"""Methods for x* that says where to look."""
