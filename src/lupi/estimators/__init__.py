"""Estimators in the sense of scikit-learn: `fit(X, y, xstar=XS)`, `predict(X)`."""
