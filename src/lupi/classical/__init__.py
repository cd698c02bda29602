"""Classical models: scikit-learn's, and SVM+, the first method for privileged information."""
