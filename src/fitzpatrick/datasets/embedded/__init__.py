"""Data inside the package, so that everything works without a network."""
