"""Models on the disk: fit one from a file, save it, predict with it.

The file is a skops archive, which holds data and no code. On loading, only types of this library
and of NumPy and scikit-learn are accepted.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets import DataError, Table
from ..datasets._files import atomic_path
from ..datasets._table import Matrix
from ..datasets.arff import read_arff
from ..datasets.csv_table import read_csv
from ..datasets.libsvm import read_libsvm
from ..datasets.readers import format_of
from ..linear_model import ProportionRegressor, ProportionRegressorCV
from ..losses import get_loss
from ..preprocessing import label_proportions
from ..sets import Simplex

_OWN = "fitzpatrick."


@dataclass(frozen=True, eq=False)
class SavedModel:
    """An estimator with the names of its columns."""

    estimator: Any
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]


def fit(
    table: Table, file: Path, loss: str, alpha: float | None, *, intercept: bool, standardize: bool
) -> SavedModel:
    """Fit to all samples; without alpha, five-fold cross-validation chooses it."""
    X, Y = table.X, np.asarray(table.Y, dtype=np.float64)
    if isinstance(get_loss(loss).regularizer.domain, Simplex):
        rows = Y.sum(axis=1) > 0
        if not rows.any():
            raise DataError("no sample has a label", file)
        X, Y = X[rows], label_proportions(Y[rows])
    estimator = (
        ProportionRegressorCV(loss, fit_intercept=intercept, standardize=standardize)
        if alpha is None
        else ProportionRegressor(loss, alpha, fit_intercept=intercept, standardize=standardize)
    )
    try:
        estimator.fit(X, Y)
    except ValueError as error:
        raise DataError(" ".join(str(error).split()), file) from None
    return SavedModel(estimator, table.feature_names, table.target_names)


def save(model: SavedModel, path: Path) -> None:
    """Write the archive, all of it or nothing."""
    from skops import io as skops_io

    content = {
        "estimator": model.estimator,
        "feature_names": list(model.feature_names),
        "target_names": list(model.target_names),
    }
    with atomic_path(path) as temporary:
        skops_io.dump(content, temporary)


def load(path: Path) -> SavedModel:
    """Read an archive that :func:`save` wrote."""
    from skops import io as skops_io

    if not path.is_file():
        raise DataError("no such file", path)
    try:
        foreign = [
            name for name in skops_io.get_untrusted_types(file=path) if not name.startswith(_OWN)
        ]
        if foreign:
            raise DataError(f"holds objects of unknown type: {', '.join(foreign)}", path)
        content = skops_io.load(path, trusted=skops_io.get_untrusted_types(file=path))
        return SavedModel(
            content["estimator"], tuple(content["feature_names"]), tuple(content["target_names"])
        )
    except DataError:
        raise
    except Exception as error:  # whatever a damaged archive makes the loader raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"not a model that fitzpatrick saved ({reason})", path) from None


def read_features(model: SavedModel, path: Path, format: str | None) -> Matrix:  # noqa: A002
    """The columns that the model was fitted to, in their order; other columns are ignored."""
    names = model.feature_names
    match format or format_of(path):
        case "libsvm":
            return read_libsvm(path, n_features=len(names), need_labels=False).X
        case "arff":
            table = read_arff(path, targets=())
        case _:
            return read_csv(path, targets=None, features=names).X
    position = {name: i for i, name in enumerate(table.feature_names)}
    missing = [name for name in names if name not in position]
    if missing:
        raise DataError(f"no column is called {missing[0]!r}, which the model needs", path)
    return table.X[:, [position[name] for name in names]]


def predictions_csv(target_names: Sequence[str], predictions: np.ndarray) -> str:
    """A header with the targets' names and one line per sample."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(target_names)
    writer.writerows([f"{value:.9g}" for value in row] for row in predictions)
    return buffer.getvalue()
