"""Label distributions: ten-fold metrics of linear models with default settings.

    FITZPATRICK_DATA=DIR python benchmarks/label_distributions.py [name ...]

Reads DIR/label_distributions/NAME.csv.gz, with columns f1, … of features and d1, … of targets. The
numbers published for maximum-entropy models on yeast_alpha stand beside ours.
"""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.model_selection import KFold, cross_validate

from fitzpatrick import metrics
from fitzpatrick.linear_model import ProportionRegressor

METRICS = ("chebyshev", "clark", "canberra", "kullback_leibler", "cosine", "intersection")
PUBLISHED = {"yeast_alpha": (0.0135, 0.210, 0.68, 0.0055, 0.9946, 0.962)}
LOSSES = ("logistic", "fitzpatrick_logistic", "sparsemax", "fitzpatrick_sparsemax")


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    path = Path(os.environ["FITZPATRICK_DATA"], "label_distributions", f"{name}.csv.gz")
    table = np.genfromtxt(path, delimiter=",", names=True)
    columns = {
        kind: [name for name in table.dtype.names or () if name.startswith(kind)] for kind in "fd"
    }
    X, Y = (np.column_stack([table[name] for name in columns[kind]]) for kind in "fd")
    return X, Y


def ten_folds(X: np.ndarray, Y: np.ndarray, loss: str) -> dict[str, float]:
    """Mean of each metric over the folds."""
    scores = cross_validate(
        ProportionRegressor(loss),
        X,
        Y,
        cv=KFold(10, shuffle=True, random_state=0),
        scoring={name: metrics.get_scorer(name) for name in METRICS},
    )
    return {name: float(np.abs(scores[f"test_{name}"]).mean()) for name in METRICS}


def main(names: list[str]) -> None:
    for name in names or ["yeast_alpha"]:
        print(f"{name:24}" + "".join(f"{metric:>18}" for metric in METRICS))
        if name in PUBLISHED:
            print(f"{'published (maxent)':24}" + "".join(f"{x:18.4f}" for x in PUBLISHED[name]))
        X, Y = load(name)
        for loss in LOSSES:
            print(f"{loss:24}" + "".join(f"{x:18.4f}" for x in ten_folds(X, Y, loss).values()))


if __name__ == "__main__":
    main(sys.argv[1:])
