"""Loading, exporting and using trained students, without data, method or x*."""
