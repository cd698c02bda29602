"""Methods whose noise x* sets, or that noise alone makes."""
