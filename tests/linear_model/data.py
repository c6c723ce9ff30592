"""Data for the tests of the estimators: small random problems and the paper's real ones."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import StandardScaler

import fitzpatrick as fp
from fitzpatrick.preprocessing import label_proportions

_SHAPES = {"scene": (294, 6), "yeast": (103, 14)}


def real_problem(name: str) -> tuple[Any, Any]:
    """Standardised training features and label proportions; skips where the files are not."""
    folder = os.environ.get("FITZPATRICK_DATA")
    if folder is None:
        pytest.skip("FITZPATRICK_DATA does not name the folder of the svm files")
    path = Path(folder) / f"{name}_train.svm.gz"
    if not path.exists():
        pytest.skip(f"{path} does not exist")
    n_features, n_classes = _SHAPES[name]
    X, labels = load_svmlight_file(
        str(path), multilabel=True, zero_based=False, n_features=n_features
    )
    Y = np.zeros((len(labels), n_classes))
    for row, of_row in zip(Y, labels, strict=True):
        row[[int(label) for label in of_row]] = 1
    return StandardScaler().fit_transform(X.toarray()), label_proportions(Y)


def features(n: int = 60, d: int = 5, seed: int = 0) -> Any:
    """Correlated features with means away from zero."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + rng.uniform(-2, 2, d)


def targets(loss: str, X: Any, k: int = 4, seed: int = 1) -> Any:
    """Targets in the domain of a loss, near what a linear model predicts."""
    rng = np.random.default_rng(seed)
    theta = 0.5 * X @ rng.standard_normal((X.shape[1], k)) + rng.standard_normal((len(X), k))
    link = fp.get_loss(loss).link(theta)
    domain = fp.get_loss(loss).regularizer.domain
    if isinstance(domain, fp.sets.Orthant):
        return rng.poisson(np.minimum(link, 20.0)).astype(float)
    return link
