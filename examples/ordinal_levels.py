"""Ordinal labels: levels of disease progression, with predictions that respect their order.

A level j is j ones followed by zeros, a vertex of the order simplex. The link of its losses is
monotone: the probability of being above a level does not increase with the level.

Run: python examples/ordinal_levels.py
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import fitzpatrick as fp
from fitzpatrick.linear_model import FitzpatrickClassifier, ProportionRegressor

N_LEVELS = 6


def main() -> None:
    """Compare the order simplex with classes without an order, by the mean error in levels."""
    X, progression = load_diabetes(return_X_y=True)
    edges = np.quantile(progression, np.linspace(0, 1, N_LEVELS + 1)[1:-1])
    levels = np.searchsorted(edges, progression)
    thermometer = (levels[:, None] > np.arange(N_LEVELS - 1)).astype(float)
    train, test = train_test_split(np.arange(len(X)), random_state=0)

    omega = fp.regularizers.SquaredNorm(fp.sets.OrderSimplex())
    ordinal = ProportionRegressor(fp.FitzpatrickLoss(omega), alpha=1.0, standardize=True)
    above = ordinal.fit(X[train], thermometer[train]).predict(X[test])
    assert np.all(np.diff(above, axis=1) <= 1e-9)
    error = np.abs(above.sum(axis=1) - levels[test]).mean()
    print(f"order simplex: mean error {error:.2f} levels")

    classes = FitzpatrickClassifier(alpha=1.0, standardize=True).fit(X[train], levels[train])
    error = np.abs(classes.predict(X[test]) - levels[test]).mean()
    print(f"classes without an order: mean error {error:.2f} levels")


if __name__ == "__main__":
    main()
