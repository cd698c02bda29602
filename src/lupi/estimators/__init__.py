"""scikit-learn estimators: `fit(X, y, xstar=XS)`, `predict(X)`."""
