"""Model files: pure data, in which nothing can be executed.

A file is in the safetensors format: the coefficients and the intercepts as float64, or boosted
trees as the bytes of their own file, and as metadata a checksum and a description in JSON. The
description must have exactly the keys below, each once, with values exactly of the type and in the
range that the table of fields says. No name in a file is imported or called, and whatever
:func:`save` would not write is refused with the reason, before memory is taken for it.
"""

import hashlib
import io
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
from ..datasets._files import atomic_path
from ..datasets._table import MAX_FEATURES, Matrix, counted
from ..linear_model import FittedModel, ProportionRegressor, Status
from ..losses import loss_names
from .learners import NEEDS_LIBRARY, can_boost
from .protocol import LossChoice

FORMAT, VERSION = "fitzpatrick-model", 1
KINDS = ("indicators", "proportions", "labels", "numbers")
MAX_COEFFICIENTS = 100_000_000  # 800 MB; they are dense
# objects parsed from JSON take up to 25 times its bytes: no more than 800 MB
MAX_TEXT_BYTES = 32 << 20
# the arrays of each model, and their types
_ARRAYS = {"linear": {"coef": "F64", "intercept": "F64"}, "boosted": {"trees": "U8"}}
# of a linear model, what it was fitted with and how that ended
_PARAMETERS = ("tightness", "alpha", "fit_intercept", "standardize")
_RESULTS = ("objective", "gradient_norm", "n_iter")
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
        cv_score: mean score over the folds of the cross-validation that chose alpha or the rounds;
            None if they were given.
    """

    estimator: Any  # ProportionRegressor or BoostedProportionRegressor
    columns: Columns
    target_names: tuple[str, ...]
    kind: str
    cv_score: float | None = None

    @property
    def model(self) -> str:
        """``"linear"`` or ``"boosted"``."""
        return "linear" if isinstance(self.estimator, ProportionRegressor) else "boosted"

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
                loss = LossChoice.of(self.estimator.loss_, self.estimator.tightness_)
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
    fields = {
        "format": FORMAT,
        "version": VERSION,
        "library": __version__,
        "model": model.model,
        "kind": model.kind,
        "columns": model.columns.to_json(),
        "target_names": list(model.target_names),
        "cv_score": model.cv_score,
    }
    if model.model == "linear":
        arrays = {name: getattr(estimator, f"{name}_") for name in _ARRAYS["linear"]}
        arrays = {name: np.ascontiguousarray(one, dtype=float) for name, one in arrays.items()}
        fields["loss"] = estimator.loss_
        fields |= {name: getattr(estimator, name) for name in _PARAMETERS}
        fields |= {name: getattr(estimator, f"{name}_") for name in _RESULTS}
        fields["status"] = estimator.status_.name
    else:
        from ..boosting._files import model_text

        arrays = {"trees": np.frombuffer(model_text(estimator).encode(), dtype=np.uint8)}
    text = json.dumps(fields, ensure_ascii=False, default=str)
    with atomic_path(path) as written:
        written.write_bytes(pack(arrays, {_METADATA: _checksum(text, arrays) + text}))
        try:
            if written.is_file():  # not a device
                _read(written)
        except ValueError as error:
            raise DataError(f"the model cannot be saved ({error})", path) from None


def _boosted_model(trees: np.ndarray, n_targets: int, width: int) -> Any:
    """The model of the bytes of a file of its own, which the boosting package checks."""
    from ..boosting import BoostedProportionRegressor
    from ..boosting._files import read_model

    model = read_model(io.BytesIO(trees.data))
    shape = model.n_classes_in_, model.n_features_in_
    if not isinstance(model, BoostedProportionRegressor) or shape != (n_targets, width):
        raise ValueError(
            f"trees of a {type(model).__name__} for {shape[0]} targets and {shape[1]} features, "
            f"expected {n_targets} and {width}"
        )
    return model


def load(path: Path) -> SavedModel:
    """Read a file that :func:`save` wrote.

    Raises:
        DataError: for any other file, with the reason.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise DataError("a folder; expected a model file", path)
        if not stat.S_ISREG(mode):
            raise DataError("not a regular file; expected a model file", path)
        return _read(path)
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None
    except Exception as error:  # of any type that safetensors or a recipe raises
        reason = " ".join(str(error).split())[:_MAX_REASON] or type(error).__name__
        raise DataError(f"not a model that fitzpatrick saved ({reason})", path) from None


def _read(path: Path) -> SavedModel:
    """The model; everything small is checked before the arrays are read."""
    with path.open("rb") as start:
        length, size = int.from_bytes(start.read(8), "little"), path.stat().st_size
    if size < 8 or length > size - 8:
        raise ValueError("not a safetensors file, or cut short")
    if length > 2 * MAX_TEXT_BYTES:  # JSON within JSON escapes each quotation mark
        raise ValueError(f"its header takes {length} bytes")
    with safe_open(path, "numpy") as file:
        metadata = file.metadata() or {}
        if metadata.keys() != {_METADATA}:
            raise ValueError(f"its metadata are {_short(sorted(metadata))}, expected {_METADATA}")
        checksum, text = metadata[_METADATA][:_DIGEST], metadata[_METADATA][_DIGEST:]
        if len(text.encode()) > MAX_TEXT_BYTES:
            raise ValueError(f"its names take more than {MAX_TEXT_BYTES >> 20} MiB")
        fields = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
        _check_fields(fields)
        if fields["model"] == "boosted" and not can_boost():
            raise DataError(f"the model is of boosted trees: {NEEDS_LIBRARY}", path)
        expected = _ARRAYS[fields["model"]]
        if sorted(file.keys()) != sorted(expected):
            names = _short(sorted(file.keys()))
            raise ValueError(f"it holds {names}, expected {', '.join(expected)}")
        columns, targets = Columns.from_json(fields["columns"]), tuple(fields["target_names"])
        for name, kind in expected.items():
            one = file.get_slice(name)
            if one.get_dtype() != kind:
                raise ValueError(f"{name} is of type {one.get_dtype()}, expected {kind}")
            _check_shape(name, tuple(one.get_shape()), len(targets), columns.n_features)
        # the tensors of safetensors are views of the file
        arrays = {name: np.array(file.get_tensor(name)) for name in expected}
    if checksum != _checksum(text, arrays):
        raise ValueError("not the content that its checksum is of")
    if fields["model"] == "boosted":
        estimator = _boosted_model(arrays["trees"], len(targets), columns.n_features)
    else:
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError("not all of its coefficients are finite")
        results = {**arrays, **{name: fields[name] for name in ("alpha", *_RESULTS)}}
        fitted = FittedModel(**results, status=Status[fields["status"]])
        options = {name: fields[name] for name in _PARAMETERS if name != "alpha"}
        estimator = ProportionRegressor.from_model(fitted, fields["loss"], **options)
    return SavedModel(estimator, columns, targets, fields["kind"], fields["cv_score"])


def _checksum(text: str, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(arrays[name].data)
    return digest.hexdigest()


def _is_number(value: Any, least: float = -math.inf) -> bool:
    return type(value) is float and math.isfinite(value) and value >= least


def _are_names(value: Any) -> bool:
    is_list = type(value) is list and all(type(name) is str for name in value)
    return is_list and 0 < len(value) == len(set(value))


def _is_one_of(names: Any) -> Callable[[Any], bool]:
    return lambda value: type(value) is str and value in names


Field = tuple[str, Callable[[Any], bool]]  # what a value must be, in words and as a test
_TRUTH: Field = "true or false", lambda value: type(value) is bool
_COMMON: dict[str, Field] = {
    "format": (FORMAT, _is_one_of((FORMAT,))),
    "version": (f"{VERSION}", lambda value: type(value) is int and value == VERSION),
    "library": ("a version", lambda value: type(value) is str),
    "model": (" or ".join(_ARRAYS), _is_one_of(_ARRAYS)),
    "kind": (" or ".join(KINDS), _is_one_of(KINDS)),
    "columns": ("the recipe of the columns", lambda value: type(value) is dict),
    "target_names": ("different names", _are_names),
    "cv_score": ("null or a number", lambda value: value is None or _is_number(value)),
}
_FIELDS: dict[str, dict[str, Field]] = {
    "boosted": _COMMON,
    "linear": {
        **_COMMON,
        "loss": ("the name of a loss", _is_one_of(loss_names())),
        "tightness": (
            "null or a number of at least 0",
            lambda value: value is None or _is_number(value, 0),
        ),
        "alpha": ("a positive number", lambda value: _is_number(value) and value > 0),
        "fit_intercept": _TRUTH,
        "standardize": _TRUTH,
        "objective": ("a number", _is_number),
        "gradient_norm": ("a number of at least 0", lambda value: _is_number(value, 0)),
        "n_iter": ("a whole number of at least 0", lambda value: type(value) is int and value >= 0),
        "status": (" or ".join(Status.__members__), _is_one_of(Status.__members__)),
    },
}


def _check_fields(fields: Any) -> None:
    if type(fields) is not dict:
        raise ValueError("its JSON does not describe a model")
    model = fields.get("model")
    expected = _FIELDS["boosted" if model == "boosted" else "linear"]
    if missing := [key for key in expected if key not in fields]:
        raise ValueError(f"{missing[0]} is missing")
    if unknown := fields.keys() - expected.keys():
        raise ValueError(f"{_short(min(unknown))} is not known")
    for key, (words, accepts) in expected.items():
        if not accepts(fields[key]):
            raise ValueError(f"{key} is {_short(fields[key])}, expected {words}")


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


def _check_shape(name: str, shape: tuple[int, ...], n_targets: int, width: int) -> None:
    """Raise unless it is what names and recipe ask for, within the bounds of a fit."""
    targets, features = counted(n_targets, "target"), counted(width, "feature")
    expected = {"coef": (n_targets, width), "intercept": (n_targets,), "trees": shape[:1]}[name]
    if shape != expected:
        raise ValueError(f"{name} has the shape {shape} for {targets} and {features}")
    if width > MAX_FEATURES:
        raise ValueError(f"{features} are more than {MAX_FEATURES}")
    if name == "coef" and n_targets * width > MAX_COEFFICIENTS:
        raise ValueError(f"coefficients {shape} are more than {MAX_COEFFICIENTS}")
