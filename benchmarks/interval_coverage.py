"""Do 95 % intervals of coefficients contain the true value in 95 % of the cases?

    python benchmarks/interval_coverage.py [--fits 2000] [--samples 1000]

Labels of three classes are drawn from the probabilities of linear scores of three features, at
tightness 0 and 1. The classifier with this tightness estimates the scores. Each fit gives intervals
for six coefficients (sandwich errors, HC0). The script prints how often they contain the true
value, with the standard error of the simulation. The output is in
``results/interval_coverage.txt``.
"""

import argparse

import numpy as np

import fitzpatrick as fp
from fitzpatrick.linear_model import FitzpatrickClassifier

W = np.asarray([[0.0, 0.0, 0.0], [1.0, -1.0, 0.5], [0.5, 0.5, -1.0]])


def covered(tightness: float, fits: int, samples: int) -> np.ndarray:
    """True where the interval of a fit (row) contains the coefficient (column)."""
    rng = np.random.default_rng(0)
    loss = fp.get_loss("fitzpatrick_logistic", tightness=tightness)
    truth, found = W[1:].ravel(), []
    for _ in range(fits):
        X = rng.normal(size=(samples, 3))
        q = np.cumsum(loss.probabilities(X @ W.T), axis=1)
        y = (rng.random((samples, 1)) > q).sum(axis=1).clip(max=2)
        model = FitzpatrickClassifier(loss, alpha=0.0, fit_intercept=False).fit(X, y)
        table = model.summary(X, y).coefficients
        found.append((table["low"] <= truth) & (truth <= table["high"]))
    return np.asarray(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=2000)
    parser.add_argument("--samples", type=int, default=1000)
    given = parser.parse_args()
    print(f"{given.fits} fits to {given.samples} samples, three classes, three features")
    for tightness in (0.0, 1.0):
        found = covered(tightness, given.fits, given.samples)
        each, error = found.mean(axis=0), found.mean(axis=1).std() / np.sqrt(given.fits)
        print(
            f"tightness {tightness:g}: 95 % intervals contain the true value in {found.mean():.2%} "
            f"(± {error:.2%}), by coefficient {each.min():.2%} to {each.max():.2%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
