"""Data for the tests of the estimators: small random problems and the paper's real ones."""

import os
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

import fitzpatrick as fp
from fitzpatrick.datasets import load_dataset
from fitzpatrick.linear_model._checks import FitSettings
from fitzpatrick.linear_model._path import PenaltyPath
from fitzpatrick.linear_model._sums import Data
from fitzpatrick.preprocessing import label_proportions
from tests.helpers import seeded


def real_problem(name: str) -> tuple[Any, Any]:
    """Standardised training features and label proportions; skips where scene's file is not."""
    if name != "yeast" and not os.environ.get("FITZPATRICK_DATA"):  # yeast is embedded
        pytest.skip(f"FITZPATRICK_DATA does not name the folder of {name}'s files")
    train = load_dataset(name).train
    X = train.X.toarray() if sparse.issparse(train.X) else train.X
    return StandardScaler().fit_transform(X), label_proportions(train.Y)


def penalty_path(X: Any, y: Any, loss: Any, weights: Any = None, **options: Any) -> PenaltyPath:
    """Fits of a loss to proportions (n, k) or labels (n,)."""
    settings = FitSettings(fp.get_loss(loss), **options)
    n_classes = y.max() + 1 if y.ndim == 1 else y.shape[1]
    return PenaltyPath(Data(X, y, n_classes, weights, binary=False).sums(settings), settings)


def features(n: int = 60, d: int = 5, seed: int = 0) -> Any:
    """Correlated features with means away from zero."""
    rng = seeded(seed)
    return rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + rng.uniform(-2, 2, d)


def targets(loss: str, X: Any, k: int = 4, seed: int = 1) -> Any:
    """Targets in the domain of a loss, near what a linear model predicts; no class is rare."""
    rng = seeded(seed)
    theta = 0.5 * X @ rng.standard_normal((X.shape[1], k)) + rng.standard_normal((len(X), k))
    theta = 1.5 * (theta - theta.mean(axis=0)) / theta.std(axis=0)
    link = fp.get_loss(loss).link(theta)
    domain = fp.get_loss(loss).regularizer.domain
    if isinstance(domain, fp.sets.Orthant):
        return rng.poisson(np.minimum(link, 20.0)).astype(float)
    return link


# Most tests of a folder are of these: sixty samples of five features and four classes.
X = features()
Y = targets("fitzpatrick_logistic", X)
LABELS = Y.argmax(axis=1)
WORDS = np.asarray(["ash", "birch", "cedar", "date"])[LABELS]
WEIGHTS = seeded(2).integers(0, 3, len(X)).astype(float)
