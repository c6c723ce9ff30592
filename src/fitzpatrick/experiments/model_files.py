"""Model files: pure data, in which nothing can be executed.

A file is a NumPy archive (:mod:`.model_archive`) of the coefficients, the intercepts and a
description in JSON (:mod:`.model_description`). No name in it is imported or called, and whatever
is not exactly as :func:`save` writes it is refused with the reason.
"""

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from ..datasets import Columns, DataError, frame_features, read_inputs
from ..datasets._files import write_atomically
from ..datasets._table import MAX_FEATURES, Matrix, counted
from ..linear_model import FittedModel, ProportionRegressor, Status
from .model_archive import OldFormatError, open_archive, pack
from .model_description import Description, from_text, to_text

MAX_COEFFICIENTS = 100_000_000  # 800 MB; they are dense
_COEF, _INTERCEPT = "coef", "intercept"
_SHOWN = 200


class ScoreOverflowError(ValueError):
    """Scores that are not finite, and the first row of them, counted from 0."""

    problem = "the scores overflow: the features or the coefficients of the model are too large"

    def __init__(self, row: int) -> None:
        super().__init__(f"row {row}: {self.problem}")
        self.row = row


@dataclass(frozen=True, eq=False)
class SavedModel:
    """An estimator, and what it takes to use it on a file.

    Attributes:
        estimator: fitted, in float64.
        columns: the recipe that makes the features of a file.
        target_names: one per column of Y.
        kind: of the targets, as in :class:`fitzpatrick.datasets.Table`.
        cv_score: mean score of the estimator's alpha over the folds of the cross-validation that
            chose it, or None where alpha was given.
    """

    estimator: ProportionRegressor
    columns: Columns
    target_names: tuple[str, ...]
    kind: str
    cv_score: float | None = None

    def predict(self, data: Any) -> np.ndarray:
        """Predictions, one row per sample and one column per name in ``target_names``.

        Args:
            data: the path of a file; a data frame, or a mapping, with the columns of the training
                file by name; or an array of features as the estimator takes them.

        Raises:
            DataError: for a file that does not go with the model.
            ValueError: for other data that do not.
            ScoreOverflowError: where the product of features and coefficients is not finite.
        """
        if isinstance(data, str | Path):
            X = read_inputs(Path(data), self.columns).X
        elif isinstance(data, np.ndarray) or sparse.issparse(data):
            X = data
        else:
            X = frame_features(data, self.columns)
        return self.predict_features(X)

    def predict_features(self, X: Matrix) -> np.ndarray:
        """The same for features."""
        with np.errstate(over="ignore", invalid="ignore"):
            predictions = np.asarray(self.estimator.predict(X))
        if not np.isfinite(predictions).all():
            row = int((~np.isfinite(predictions)).any(axis=1).argmax())
            raise ScoreOverflowError(row)
        return predictions


def save(model: SavedModel, path: Path) -> None:
    """Write the file, all of it or nothing; the same model is the same bytes."""
    estimator = model.estimator
    try:
        description = _describe(model)
        _check_shapes(description, estimator.coef_.shape, estimator.intercept_.shape)
        _check_finite(estimator.coef_, estimator.intercept_)
        arrays = {_COEF: estimator.coef_, _INTERCEPT: estimator.intercept_}
        content = pack(to_text(description), arrays)
    except ValueError as error:
        raise DataError(f"the model cannot be saved ({error})", path) from None
    write_atomically(path, content)


def load(path: Path) -> SavedModel:
    """Read a file that :func:`save` wrote.

    Raises:
        DataError: for any other file, with the reason.
    """
    with _open(path) as file:
        try:
            return _read(file)
        except OldFormatError:
            problem = "a skops archive, which is no longer read: models of earlier versions must be"
            raise DataError(f"{problem} fitted again with 'fitzpatrick fit'", path) from None
        except Exception as error:  # of any type, where zipfile or NumPy meets what it never wrote
            reason = " ".join(str(error).split())[:_SHOWN] or type(error).__name__
            problem = f"not a model that fitzpatrick saved ({reason})"
            raise DataError(problem, path) from None


def _open(path: Path) -> BinaryIO:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise DataError("a folder; expected a model file", path)
        if not stat.S_ISREG(mode):
            raise DataError("not a regular file; expected a model file", path)
        return path.open("rb")
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path) from None


def _read(file: BinaryIO) -> SavedModel:
    """All that is small is checked before the coefficients are read."""
    archive = open_archive(file, (_COEF, _INTERCEPT))
    description = from_text(archive.text())
    shape = archive.shape(_COEF)
    _check_shapes(description, shape, archive.shape(_INTERCEPT))
    coef, intercept = archive.array(_COEF), archive.array(_INTERCEPT)
    _check_finite(coef, intercept)
    return SavedModel(
        _regressor(description, coef, intercept),
        description.columns,
        description.target_names,
        description.kind,
        description.cv_score,
    )


def _describe(model: SavedModel) -> Description:
    estimator = model.estimator
    return Description(
        loss=estimator.loss_,
        alpha=float(estimator.alpha),
        fit_intercept=bool(estimator.fit_intercept),
        standardize=bool(estimator.standardize),
        kind=model.kind,
        columns=model.columns,
        target_names=model.target_names,
        cv_score=model.cv_score,
        objective=float(estimator.objective_),
        gradient_norm=float(estimator.gradient_norm_),
        n_iter=int(estimator.n_iter_),
        status=estimator.status_.name,
        tightness=None if estimator.tightness is None else float(estimator.tightness),
    )


def _regressor(
    description: Description, coef: np.ndarray, intercept: np.ndarray
) -> ProportionRegressor:
    model = FittedModel(
        description.alpha,
        coef,
        intercept,
        description.objective,
        description.gradient_norm,
        description.n_iter,
        Status[description.status],
    )
    return ProportionRegressor.from_model(
        model,
        description.loss,
        tightness=description.tightness,
        fit_intercept=description.fit_intercept,
        standardize=description.standardize,
    )


def _check_shapes(
    description: Description, coef: tuple[int, ...], intercept: tuple[int, ...]
) -> None:
    """Both shapes must be those that names and recipe ask for, within the bounds of a fit."""
    n_targets, width = len(description.target_names), description.columns.n_features
    targets, features = counted(n_targets, "target"), counted(width, "feature")
    if len(coef) != 2 or coef[0] != n_targets or coef[1] != width:
        raise ValueError(f"coefficients {coef} for {targets} and {features}")
    if intercept != (n_targets,):
        raise ValueError(f"intercepts {intercept} for {targets}")
    if coef[1] > MAX_FEATURES or coef[0] * coef[1] > MAX_COEFFICIENTS:
        raise ValueError(f"coefficients {coef} are more than {MAX_COEFFICIENTS}")


def _check_finite(coef: np.ndarray, intercept: np.ndarray) -> None:
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("not all of its coefficients are finite")
