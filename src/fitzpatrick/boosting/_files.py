"""Files of boosted models: one JSON object with the trees in the library's own text format.

Nothing in a file is executed. Every field is checked before the library reads the trees, and their
shapes against the fields after that.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..losses import loss_names
from ._estimators import BoostedClassifier, BoostedModel, BoostedProportionRegressor
from ._libraries import LIBRARIES

FORMAT, VERSION = "fitzpatrick-boosted-model", 1
MAX_BYTES = 1 << 30
_ESTIMATORS = {cls.__name__: cls for cls in (BoostedClassifier, BoostedProportionRegressor)}
_FIELDS = {
    "format", "version", "estimator", "library", "loss", "tightness", "n_features",
    "feature_names", "classes", "is_single", "start", "trees",
}  # fmt: skip


def save_model(model: BoostedModel, file: str | Path) -> None:
    """Write a fitted model; its loss must be one of the names of :func:`fitzpatrick.loss_names`."""
    check_is_fitted(model, "booster_")
    if not isinstance(model.loss_, str):
        raise ValueError(
            f"the loss {model.loss_!r} is not in the registry; only models of named losses are "
            "saved"
        )
    classes = getattr(model, "classes_", None)
    names = getattr(model, "feature_names_in_", None)
    description = {
        "format": FORMAT,
        "version": VERSION,
        "estimator": type(model).__name__,
        "library": model.booster_.name,
        "loss": model.loss_,
        "tightness": model.tightness_,
        "n_features": model.n_features_in_,
        "feature_names": None if names is None else [str(name) for name in names],
        "classes": None if classes is None else classes.tolist(),
        "is_single": bool(getattr(model, "_is_single", False)),
        "start": model.start_.tolist(),
        "trees": [model.booster_.to_text(part) for part in model.booster_.parts],
    }
    part = Path(f"{file}.part")
    part.write_text(json.dumps(description), encoding="utf-8")
    part.replace(file)


def load_model(file: str | Path) -> BoostedClassifier | BoostedProportionRegressor:
    """Read a model that :func:`save_model` wrote; a ValueError says what is wrong with a file."""
    path = Path(file)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES} bytes")
        given = json.loads(path.read_text(encoding="utf-8"))
        return _restore(given)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a boosted model that fitzpatrick saved ({error})") from error


def _restore(given: Any) -> BoostedClassifier | BoostedProportionRegressor:
    _expect(isinstance(given, dict) and given.keys() == _FIELDS, "its fields are not the expected")
    _expect(given["format"] == FORMAT and given["version"] == VERSION, "another format or version")
    _expect(given["estimator"] in _ESTIMATORS, f"unknown estimator {given['estimator']!r:.40}")
    _expect(given["library"] in LIBRARIES, f"unknown library {given['library']!r:.40}")
    _expect(given["loss"] in loss_names(), f"unknown loss {given['loss']!r:.40}")
    start, trees = given["start"], given["trees"]
    _expect(_is_list(start, float) and all(map(math.isfinite, start)), "start holds no numbers")
    _expect(_is_list(trees, str), "trees are no texts")
    d, k = given["n_features"], len(start)
    _expect(type(d) is int and d > 0, "n_features is no positive integer")
    names, classes = given["feature_names"], given["classes"]
    _expect(names is None or (_is_list(names, str) and len(names) == d), "feature_names do not fit")
    is_classifier = given["estimator"] == "BoostedClassifier"
    _expect((classes is not None) == is_classifier, "classes do not fit the estimator")
    _expect(type(given["is_single"]) is bool, "is_single is no boolean")
    tightness = given["tightness"]
    _expect(type(tightness) in (int, float) and tightness >= 0, "tightness is no number")
    model = _ESTIMATORS[given["estimator"]](given["loss"], library=given["library"])
    model.loss_, model.tightness_ = given["loss"], float(tightness)
    model._fitted_loss()  # which checks the tightness
    if is_classifier:
        kinds = {type(label) for label in classes} if isinstance(classes, list) else set()
        _expect(len(kinds) == 1 and kinds <= {int, float, str, bool}, "classes are of no one kind")
        _expect(len(classes) == k and len(set(classes)) == k, "classes do not fit the start")
        model.classes_ = np.asarray(classes)
    else:
        model._is_single = given["is_single"]
        _expect(not model._is_single or k == 1, "is_single does not fit the start")
    if names is not None:
        model.feature_names_in_ = np.asarray(names, dtype=object)
    model.start_, model.n_features_in_, model.n_classes_in_ = np.asarray(start), d, k
    model.booster_ = LIBRARIES[given["library"]].from_texts(trees, d, k)
    model.n_iter_ = sum(map(model.booster_.rounds, model.booster_.parts))
    return model


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and bool(value) and all(type(x) is kind for x in value)


def _expect(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)
