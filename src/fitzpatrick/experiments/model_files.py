"""Model files: pure data, in which nothing can be executed.

A file is a NumPy archive (:mod:`.model_archive`) of the coefficients, the intercepts and a
description in JSON (:mod:`.model_description`). No name in it is imported or called, and whatever
is not exactly as :func:`save` writes it is refused with the reason.
"""

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..datasets import DataError
from ..datasets._files import write_atomically
from ..datasets._table import MAX_FEATURES, Codes
from ..datasets.libsvm import feature_names as numbered_names
from ..linear_model import FittedModel, ProportionRegressor, Status
from .model_archive import OldFormatError, open_archive, pack
from .model_description import Description, from_text, to_text

MAX_COEFFICIENTS = 100_000_000  # 800 MB; they are dense
_COEF, _INTERCEPT = "coef", "intercept"
_SHOWN = 200


@dataclass(frozen=True, eq=False)
class SavedModel:
    """An estimator with the names of its columns.

    Attributes:
        estimator: fitted, in float64.
        feature_names: one per column of X.
        target_names: one per column of Y.
        kind: of the targets, as in :class:`fitzpatrick.datasets.Table`.
        codes: of the features whose values are words, as there.
        cv_score: mean score of the estimator's alpha over the folds of the cross-validation that
            chose it, or None where alpha was given.
    """

    estimator: ProportionRegressor
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    kind: str
    codes: Codes
    cv_score: float | None = None


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
    names = description.feature_names
    if names is None:
        names = numbered_names(shape[1])
    unknown = description.codes.keys() - set(names)
    if unknown:
        raise ValueError(f"codes of {min(unknown)!r}, which is not a feature")
    coef, intercept = archive.array(_COEF), archive.array(_INTERCEPT)
    _check_finite(coef, intercept)
    return SavedModel(
        _regressor(description, coef, intercept),
        names,
        description.target_names,
        description.kind,
        description.codes,
        description.cv_score,
    )


def _describe(model: SavedModel) -> Description:
    estimator, names = model.estimator, model.feature_names
    return Description(
        loss=estimator.loss_,
        alpha=float(estimator.alpha),
        fit_intercept=bool(estimator.fit_intercept),
        standardize=bool(estimator.standardize),
        kind=model.kind,
        feature_names=None if names == numbered_names(len(names)) else names,
        target_names=model.target_names,
        codes={name: dict(words) for name, words in model.codes.items()},
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
    """Both shapes must be those that the names ask for, within the bounds of what is fitted."""
    n_targets, names = len(description.target_names), description.feature_names
    if len(coef) != 2 or coef[0] != n_targets or (names is not None and coef[1] != len(names)):
        width = "any number of" if names is None else len(names)
        raise ValueError(f"coefficients {coef} for {n_targets} targets and {width} features")
    if intercept != (n_targets,):
        raise ValueError(f"intercepts {intercept} for {n_targets} targets")
    if coef[1] > MAX_FEATURES or coef[0] * coef[1] > MAX_COEFFICIENTS:
        raise ValueError(f"coefficients {coef} are more than {MAX_COEFFICIENTS}")


def _check_finite(coef: np.ndarray, intercept: np.ndarray) -> None:
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("not all of its coefficients are finite")
