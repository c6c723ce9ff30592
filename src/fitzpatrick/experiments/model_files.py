"""Model files: pure data, in which nothing can be executed.

A file is in the safetensors format: the coefficients and the intercepts as float64, and as metadata
a checksum and a description in JSON. The description must have exactly the keys below, each once,
with values exactly of the type and in the range that the table of fields says. No name in a file is
imported or called, and whatever :func:`save` would not write is refused with the reason, before
memory is taken for it.
"""

import hashlib
import json
import math
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save as pack
from scipy import sparse

from .. import __version__
from ..datasets import Columns, DataError, frame_features, read_inputs
from ..datasets._files import write_atomically
from ..datasets._table import MAX_FEATURES, Matrix, counted
from ..linear_model import FittedModel, ProportionRegressor, Status
from ..losses import loss_names
from .protocol import LossChoice

FORMAT, VERSION = "fitzpatrick-model", 1
KINDS = ("indicators", "proportions", "labels", "numbers")
MAX_COEFFICIENTS = 100_000_000  # 800 MB; they are dense
# objects parsed from JSON take up to 25 times its bytes: no more than 800 MB
MAX_TEXT_BYTES = 32 << 20
_ARRAYS = ["coef", "intercept"]
_METADATA = "model"
_DIGEST = 64  # characters of the checksum
_SHOWN, _MAX_REASON = 40, 200


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
            chose it; None if alpha was given.
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
        """Predictions for features as the estimator takes them; probabilities of class labels."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.kind == "labels":
                loss = LossChoice.of(self.estimator.loss_, self.estimator.tightness)
                predictions = loss.probabilities(self.estimator.predict_scores(X))
            else:
                predictions = np.asarray(self.estimator.predict(X))
        if not np.isfinite(predictions).all():
            row = int((~np.isfinite(predictions)).any(axis=1).argmax())
            raise ScoreOverflowError(row)
        return predictions


def save(model: SavedModel, path: Path) -> None:
    """Write the file, all of it or nothing; the same model is the same bytes."""
    estimator = model.estimator
    coef, intercept = (
        np.ascontiguousarray(array, dtype=np.float64)
        for array in (estimator.coef_, estimator.intercept_)
    )
    tightness = estimator.tightness
    fields = {
        "format": FORMAT,
        "version": VERSION,
        "library": __version__,
        "loss": estimator.loss_,
        "tightness": None if tightness is None else float(tightness),
        "alpha": float(estimator.alpha),
        "fit_intercept": bool(estimator.fit_intercept),
        "standardize": bool(estimator.standardize),
        "kind": model.kind,
        "columns": model.columns.to_json(),
        "target_names": list(model.target_names),
        "cv_score": model.cv_score,
        "objective": float(estimator.objective_),
        "gradient_norm": float(estimator.gradient_norm_),
        "n_iter": int(estimator.n_iter_),
        "status": estimator.status_.name,
    }
    try:
        _check_fields(fields)
        columns = Columns.from_json(fields["columns"])
        _check_shapes(len(model.target_names), columns.n_features, coef.shape, intercept.shape)
        _check_finite(coef, intercept)
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False)
        if len(text.encode()) > MAX_TEXT_BYTES:
            raise ValueError(f"its names take more than {MAX_TEXT_BYTES >> 20} MiB")
    except ValueError as error:
        raise DataError(f"the model cannot be saved ({error})", path) from None
    metadata = {_METADATA: _checksum(text, coef, intercept) + text}
    write_atomically(path, pack({"coef": coef, "intercept": intercept}, metadata))


def load(path: Path) -> SavedModel:
    """Read a file that :func:`save` wrote.

    Raises:
        DataError: for any other file, with the reason.
    """
    try:
        mode, size = path.stat().st_mode, path.stat().st_size
        if stat.S_ISDIR(mode):
            raise DataError("a folder; expected a model file", path)
        if not stat.S_ISREG(mode):
            raise DataError("not a regular file; expected a model file", path)
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path) from None
    try:
        if size < 8 or length > size - 8:
            raise ValueError("not a safetensors file, or cut short")
        if length > 2 * MAX_TEXT_BYTES:  # JSON within JSON escapes each quotation mark
            raise ValueError(f"its header takes {length} bytes")
        return _read(path)
    except Exception as error:  # of any type that safetensors or a recipe raises
        reason = " ".join(str(error).split())[:_MAX_REASON] or type(error).__name__
        raise DataError(f"not a model that fitzpatrick saved ({reason})", path) from None


def _read(path: Path) -> SavedModel:
    """Everything small is checked before the coefficients are read."""
    with safe_open(path, "numpy") as file:
        if sorted(file.keys()) != _ARRAYS:
            raise ValueError(f"it holds {_short(sorted(file.keys()))}, expected coef, intercept")
        metadata = file.metadata() or {}
        if metadata.keys() != {_METADATA}:
            raise ValueError(f"its metadata are {_short(sorted(metadata))}, expected {_METADATA}")
        checksum, text = metadata[_METADATA][:_DIGEST], metadata[_METADATA][_DIGEST:]
        fields = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
        _check_fields(fields)
        columns = Columns.from_json(fields["columns"])
        slices = [file.get_slice(name) for name in _ARRAYS]
        for name, one in zip(_ARRAYS, slices, strict=True):
            if one.get_dtype() != "F64":
                raise ValueError(f"{name} is of type {one.get_dtype()}, expected F64")
        shapes = [tuple(one.get_shape()) for one in slices]
        _check_shapes(len(fields["target_names"]), columns.n_features, *shapes)
        # the tensors of safetensors are views of the file
        coef, intercept = (np.array(file.get_tensor(name)) for name in _ARRAYS)
    if checksum != _checksum(text, coef, intercept):
        raise ValueError("not the content that its checksum is of")
    _check_finite(coef, intercept)
    model = FittedModel(
        fields["alpha"],
        coef,
        intercept,
        fields["objective"],
        fields["gradient_norm"],
        fields["n_iter"],
        Status[fields["status"]],
    )
    estimator = ProportionRegressor.from_model(
        model,
        fields["loss"],
        tightness=fields["tightness"],
        fit_intercept=fields["fit_intercept"],
        standardize=fields["standardize"],
    )
    names = tuple(fields["target_names"])
    return SavedModel(estimator, columns, names, fields["kind"], fields["cv_score"])


def _checksum(text: str, coef: np.ndarray, intercept: np.ndarray) -> str:
    digest = hashlib.sha256(text.encode())
    digest.update(coef.data)
    digest.update(intercept.data)
    return digest.hexdigest()


def _is_number(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


def _is_not_negative(value: Any) -> bool:
    return _is_number(value) and value >= 0


def _are_names(value: Any) -> bool:
    return (
        type(value) is list
        and len(value) > 0
        and all(type(name) is str for name in value)
        and len(set(value)) == len(value)
    )


def _is_one_of(names: Any) -> Callable[[Any], bool]:
    return lambda value: type(value) is str and value in names


_TRUTH = "true or false", lambda value: type(value) is bool
# what each value must be, in words and as a test
_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "format": (FORMAT, _is_one_of((FORMAT,))),
    "version": (f"{VERSION}", lambda value: type(value) is int and value == VERSION),
    "library": ("a version", lambda value: type(value) is str),
    "loss": ("the name of a loss", _is_one_of(loss_names())),
    "tightness": (
        "null or a number of at least 0",
        lambda value: value is None or _is_not_negative(value),
    ),
    "alpha": ("a positive number", lambda value: _is_number(value) and value > 0),
    "fit_intercept": _TRUTH,
    "standardize": _TRUTH,
    "kind": (" or ".join(KINDS), _is_one_of(KINDS)),
    "columns": ("the recipe of the columns", lambda value: type(value) is dict),
    "target_names": ("different names", _are_names),
    "cv_score": ("null or a number", lambda value: value is None or _is_number(value)),
    "objective": ("a number", _is_number),
    "gradient_norm": ("a number of at least 0", _is_not_negative),
    "n_iter": ("a whole number of at least 0", lambda value: type(value) is int and value >= 0),
    "status": (" or ".join(Status.__members__), _is_one_of(Status.__members__)),
}


def _check_fields(fields: Any) -> None:
    if type(fields) is not dict:
        raise ValueError("its JSON does not describe a model")
    if missing := [key for key in _FIELDS if key not in fields]:
        raise ValueError(f"{missing[0]} is missing")
    if unknown := fields.keys() - _FIELDS.keys():
        raise ValueError(f"{_short(min(unknown))} is not known")
    for key, (expected, accepts) in _FIELDS.items():
        if not accepts(fields[key]):
            raise ValueError(f"{key} is {_short(fields[key])}, expected {expected}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys are different."""
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key of its JSON occurs twice")
    return content


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"its JSON holds {name}, which is not a number")


def _short(value: Any) -> str:
    """As JSON, a few characters of it."""
    text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _check_shapes(
    n_targets: int, width: int, coef: tuple[int, ...], intercept: tuple[int, ...]
) -> None:
    """Both shapes must be those that names and recipe ask for, within the bounds of a fit."""
    targets, features = counted(n_targets, "target"), counted(width, "feature")
    if coef != (n_targets, width):
        raise ValueError(f"coefficients {coef} for {targets} and {features}")
    if intercept != (n_targets,):
        raise ValueError(f"intercepts {intercept} for {targets}")
    if width > MAX_FEATURES or n_targets * width > MAX_COEFFICIENTS:
        raise ValueError(f"coefficients {coef} are more than {MAX_COEFFICIENTS}")


def _check_finite(coef: np.ndarray, intercept: np.ndarray) -> None:
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("not all of its coefficients are finite")
