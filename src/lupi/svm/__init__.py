"""SVM+, the classical method for privileged information."""
