"""Files of boosted models: one JSON object with the trees in the library's own text format.

Nothing in a file is executed. Every field is checked before the library reads the trees, which are
checked themselves, and their shapes against the fields after that.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..datasets._files import write_atomically
from ..losses import Loss, get_loss, loss_names
from ._estimators import BoostedClassifier, BoostedModel, BoostedProportionRegressor
from ._libraries import LIBRARIES
from ._trees import MAX_TEXT_BYTES, MAX_TREES, expect

MAX_BYTES, MAX_PARTS = 1 << 30, 10_000
# Texts of JSON; long ones, such as trees, take no more memory than bytes.
_TEXTS, _LONG = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL), 1024
_ESTIMATORS = {cls.__name__: cls for cls in (BoostedClassifier, BoostedProportionRegressor)}
# dtype of classes → what JSON has for them
_LABELS: dict[str, type] = {"bool": bool, "str": str, "object": str}
_LABELS |= {np.dtype(kind).name: int for kind in "bBhHiIlLqQ"}
_LABELS |= {np.dtype(kind).name: float for kind in "efd"}


def _is_one_of(names: Any) -> Callable[[Any], bool]:
    return lambda value: type(value) is str and value in names


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and bool(value) and all(type(x) is kind for x in value)


# field → True if a value may be there
_FIELDS: dict[str, Callable[[Any], bool]] = {
    "format": lambda value: value == "fitzpatrick-boosted-model",
    "version": lambda value: value == 2,
    "estimator": _is_one_of(_ESTIMATORS),
    "library": _is_one_of(LIBRARIES),
    "loss": _is_one_of(loss_names()),
    "tightness": lambda value: type(value) in (int, float),
    "n_features": lambda value: type(value) is int and value > 0,
    "feature_names": lambda value: value is None or _is_list(value, str),
    "classes": lambda value: value is None or isinstance(value, list),
    "dtype": lambda value: value is None or _is_one_of(_LABELS)(value),
    "is_single": lambda value: type(value) is bool,
    "start": lambda value: _is_list(value, float) and bool(np.isfinite(value).all()),
    "trees": lambda value: _is_list(value, str) and len(value) <= MAX_PARTS,
}


def save_model(model: BoostedModel, file: str | Path) -> None:
    """Write a fitted model of a named loss, whose classes are numbers or texts."""
    check_is_fitted(model, "booster_")
    if not isinstance(model.loss_, str):
        raise ValueError(
            f"the loss {model.loss_!r} is not in the registry; only models of named losses are "
            "saved"
        )
    classes: Any = getattr(model, "classes_", None)
    dtype = None if classes is None else classes.dtype.name
    dtype = "str" if dtype and dtype.startswith("str") else dtype  # whatever its length
    names = getattr(model, "feature_names_in_", None)
    given = {
        "format": "fitzpatrick-boosted-model",
        "version": 2,
        "estimator": type(model).__name__,
        "library": model.library_,
        "loss": model.loss_,
        "tightness": model.tightness_,
        "n_features": model.n_features_in_,
        "feature_names": None if names is None else [str(name) for name in names],
        "classes": None if classes is None else classes.tolist(),
        "dtype": dtype,
        "is_single": bool(getattr(model, "_is_single", False)),
        "start": model.start_.tolist(),
        "trees": list(map(LIBRARIES[model.library_].to_text, model.booster_)),
    }
    _check(given)
    write_atomically(Path(file), json.dumps(given))


def load_model(file: str | Path) -> BoostedClassifier | BoostedProportionRegressor:
    """Read a model that :func:`save_model` wrote; a ValueError says what is wrong with a file."""
    path = Path(file)
    try:
        expect(path.stat().st_size <= MAX_BYTES, f"it is larger than {MAX_BYTES} bytes")
        content = path.read_bytes()
        lengths = (len(found[0]) for found in _TEXTS.finditer(content))
        other_bytes = len(content) - sum(length for length in lengths if length >= _LONG)
        expect(other_bytes <= MAX_TEXT_BYTES, f"it has {other_bytes} bytes besides the trees")
        given = json.loads(content)
        _check(given)
        return _restore(given)
    except (ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path}: not a boosted model that fitzpatrick saved ({error})") from error


def _check(given: Any) -> None:
    """Raise a ValueError unless a description has the right fields, and they fit each other."""
    expect(isinstance(given, dict) and given.keys() == _FIELDS.keys(), "it has other fields")
    for name, is_valid in _FIELDS.items():
        expect(is_valid(given[name]), f"its {name} cannot be {given[name]!r:.40}")
    # raises unless the tightness is one of the loss
    Loss(get_loss(given["loss"]).regularizer, given["tightness"])
    names, classes, k = given["feature_names"], given["classes"], len(given["start"])
    expect(names is None or len(names) == given["n_features"], "feature_names do not fit")
    expect(not given["is_single"] or k == 1, "is_single does not fit the start")
    if given["estimator"] == "BoostedClassifier":
        expect(_is_list(classes, _LABELS.get(given["dtype"], type(None))), "classes have no dtype")
        expect(len(set(classes)) == len(classes) == k, "classes do not fit the start")


def _restore(given: dict[str, Any]) -> BoostedClassifier | BoostedProportionRegressor:
    model = _ESTIMATORS[given["estimator"]](given["loss"], library=given["library"])
    model.loss_, model.tightness_ = given["loss"], float(given["tightness"])
    model.library_, model.start_ = given["library"], np.asarray(given["start"])
    model.n_features_in_, model.n_classes_in_ = given["n_features"], len(model.start_)
    if given["feature_names"] is not None:
        model.feature_names_in_ = np.asarray(given["feature_names"], dtype=object)
    if isinstance(model, BoostedClassifier):
        model.classes_ = np.asarray(given["classes"], given["dtype"])
    else:
        model._is_single = given["is_single"]
    library, model.booster_, model.n_iter_ = LIBRARIES[given["library"]], [], 0
    for text in given["trees"]:
        try:
            part, *shape = library.from_text(text)
        except Exception as error:  # the libraries raise whatever their parsers met
            raise ValueError(f"{given['library']} cannot read its trees: {error}") from error
        expected = [model.n_features_in_, model.n_classes_in_]
        expect(shape == expected, f"trees have {shape} features and targets, not {expected}")
        model.booster_.append(part)
        model.n_iter_ += library.rounds(part)
        expect(model.n_iter_ * len(model.start_) <= MAX_TREES, f"more than {MAX_TREES} trees")
    return model
