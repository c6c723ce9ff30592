"""Models on the disk: fit one from a file, save it, predict with it.

The file is a skops archive, which holds data and no code. On loading, only types of this library
and of NumPy and scikit-learn are accepted.
"""

import csv
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from .. import metrics
from ..datasets import DataError, Table
from ..datasets._files import atomic_path
from ..datasets._table import Codes
from ..datasets.libsvm import feature_names as numbered_names
from ..linear_model import ProportionRegressor, ProportionRegressorCV
from ..losses import get_loss
from ..preprocessing import label_proportions
from ..sets import Simplex
from .progress import Bar, progress
from .protocol import ALPHAS, useful_columns

FOLDS = 5
MAX_COEFFICIENTS = 100_000_000  # 800 MB; they are dense
_OWN = "fitzpatrick."

Estimator = ProportionRegressor | ProportionRegressorCV


@dataclass(frozen=True, eq=False)
class SavedModel:
    """An estimator with the names of its columns.

    Attributes:
        estimator: fitted.
        feature_names: one per column of X.
        target_names: one per column of Y.
        kind: of the targets, as in :class:`fitzpatrick.datasets.Table`.
        codes: of the features whose values are words, as there.
    """

    estimator: Estimator
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    kind: str
    codes: Codes


@dataclass(frozen=True, eq=False)
class FileFit:
    """A model, the number of samples it was fitted to, and notes on how that went."""

    model: SavedModel
    samples: int
    notes: tuple[str, ...]


def has_classes(loss: str) -> bool:
    """Whether its predictions are proportions of classes, not numbers of their own."""
    return isinstance(get_loss(loss).regularizer.domain, Simplex)


def fit(
    table: Table,
    file: Path,
    loss: str,
    alpha: float | None,
    *,
    intercept: bool,
    standardize: bool,
) -> FileFit:
    """Fit to all samples; without alpha, cross-validation on five shuffled folds chooses it.

    Samples without a label are left out where the loss needs one. Features that are constant are
    left out too: their coefficients are zero.

    Args:
        table: the data.
        file: where they are from.
        loss: its name.
        alpha: strength of the penalty, or None.
        intercept: whether to learn one.
        standardize: whether the model sees standardised features.
    """
    if has_classes(loss):
        table = table.labelled(file)
        Y = label_proportions(table.Y)
    else:
        Y = np.asarray(table.Y, dtype=np.float64)
    notes = list(table.notes)
    width = table.X.shape[1]
    if width * Y.shape[1] > MAX_COEFFICIENTS:
        what = f"{width} features × {Y.shape[1]} targets"
        raise DataError(f"{what} are more than {MAX_COEFFICIENTS} coefficients", file)
    varies = useful_columns(table.X, centred=intercept or standardize)
    if varies.size == 0:
        raise DataError("every feature is constant", file)
    if varies.size < width:
        what = f"{width - varies.size} of {width} features"
        notes.append(f"{what} are constant and left out (coefficient 0; predict expects them)")
    options: dict[str, Any] = {"fit_intercept": intercept, "standardize": standardize}
    if alpha is None:
        folds = KFold(min(FOLDS, len(Y)), shuffle=True, random_state=0)
        estimator: Estimator = ProportionRegressorCV(loss, ALPHAS, cv=folds, **options)
    else:
        estimator = ProportionRegressor(loss, alpha, **options)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            _fit(estimator, table.X[:, varies], Y, file.name)
    except ValueError as error:
        raise DataError(" ".join(str(error).split()), file) from None
    notes += [_first_sentence(warning) for warning in caught]
    coef = np.zeros((Y.shape[1], width))
    coef[:, varies] = estimator.coef_
    estimator.coef_, estimator.n_features_in_ = coef, width
    if alpha is None and estimator.alpha_ in (min(ALPHAS), max(ALPHAS)):
        end = "weakest" if estimator.alpha_ == min(ALPHAS) else "strongest"
        notes.append(f"α = {estimator.alpha_:g} is the {end} penalty that was tried")
    model = SavedModel(estimator, table.feature_names, table.target_names, table.kind, table.codes)
    return FileFit(model, len(Y), tuple(notes))


def _fit(estimator: Estimator, X: Any, Y: np.ndarray, title: str) -> None:
    """Fit; the progress of a cross-validation is shown."""
    if isinstance(estimator, ProportionRegressor):
        estimator.fit(X, Y)
        return
    with progress(title, estimator.cv.n_splits * len(estimator.alphas)) as report:
        report(0)
        estimator.set_params(scoring=_reporting(report)).fit(X, Y)
    estimator.set_params(cv=None, scoring=None)  # a model file holds no functions and splitters


def _reporting(report: Bar) -> Callable[..., float]:
    """The scorer of the cross-validation, which says how often it was asked."""
    scorer = metrics.get_scorer("squared_error")
    fits = count(1)

    def score(*args: Any, **kwargs: Any) -> float:
        value = float(scorer(*args, **kwargs))
        report(next(fits))
        return value

    return score


def _first_sentence(warning: warnings.WarningMessage) -> str:
    """What happened; the advice that follows is for those who write Python."""
    return str(warning.message).partition(": ")[2].partition(". ")[0]


def save(model: SavedModel, path: Path) -> None:
    """Write the archive, all of it or nothing."""
    from skops import io as skops_io

    names = model.feature_names
    content = {
        "estimator": model.estimator,
        "feature_names": None if names == numbered_names(len(names)) else list(names),
        "target_names": list(model.target_names),
        "kind": model.kind,
        "codes": {name: dict(values) for name, values in model.codes.items()},
    }
    with atomic_path(path) as temporary:
        temporary.write_bytes(skops_io.dumps(content))


def load(path: Path) -> SavedModel:
    """Read an archive that :func:`save` wrote."""
    from skops import io as skops_io

    if not path.is_file():
        raise DataError("no such file", path)
    try:
        types = skops_io.get_untrusted_types(file=path)
        foreign = [name for name in types if not name.startswith(_OWN)]
        if foreign:
            raise DataError(f"holds objects of unknown type: {', '.join(foreign)}", path)
        content = skops_io.load(path, trusted=types)
        estimator, names = content["estimator"], content["feature_names"]
        model = SavedModel(
            estimator,
            numbered_names(estimator.coef_.shape[1]) if names is None else tuple(names),
            tuple(content["target_names"]),
            content["kind"],
            # models of earlier versions have none: words are refused then
            {
                name: {value: float(code) for value, code in values.items()}
                for name, values in content.get("codes", {}).items()
            },
        )
        if not isinstance(model.estimator, Estimator):
            raise ValueError(f"it holds a {type(model.estimator).__name__}")
        shape = len(model.target_names), len(model.feature_names)
        if model.estimator.coef_.shape != shape:
            raise ValueError(f"coefficients {model.estimator.coef_.shape} and names {shape}")
        if np.shape(estimator.intercept_) != shape[:1]:
            raise ValueError(f"intercepts {np.shape(estimator.intercept_)} for {shape[0]} targets")
        if not (np.isfinite(estimator.coef_).all() and np.isfinite(estimator.intercept_).all()):
            raise ValueError("not all of its coefficients are finite")
    except DataError:
        raise
    except Exception as error:  # whatever a damaged archive makes the loader raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"not a model that fitzpatrick saved ({reason})", path) from None
    return model


def predictions_csv(model: SavedModel, X: Any) -> str:
    """A header with the targets' names and one line per sample, in the order of X.

    Models of class labels have a last column, the class of the largest proportion.
    """
    predictions = np.asarray(model.estimator.predict(X))
    header, rows = list(model.target_names), [[f"{p:.9g}" for p in row] for row in predictions]
    if model.kind == "labels":
        column = "class"
        while column in header:
            column += "_"
        header.append(column)
        for row, best in zip(rows, predictions.argmax(axis=1), strict=True):
            row.append(model.target_names[best])
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([header, *rows])
    return buffer.getvalue()
