"""Files of boosted models: lines of JSON, a description first, then trees as their library's text.

Nothing in a file is executed. Every field is checked before the library reads the trees, which are
checked themselves, and their shapes against the fields after that.
"""

import json
from collections.abc import Callable
from io import SEEK_END
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..datasets._files import write_atomically
from ..losses import Loss, get_loss, loss_names
from ._estimators import BoostedClassifier, BoostedModel, BoostedProportionRegressor
from ._libraries import LIBRARIES
from ._trees import MAX_TEXT_BYTES, MAX_TREES, expect

MAX_BYTES, MAX_PARTS = 1 << 30, 10_000
_ESTIMATORS = {cls.__name__: cls for cls in (BoostedClassifier, BoostedProportionRegressor)}
_DTYPES = {"str", "object", *(np.dtype(kind).name for kind in "?bBhHiIlLqQefd")}  # of classes


def _is_one_of(names: Any) -> Callable[[Any], bool]:
    return lambda value: type(value) is str and value in names


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and bool(value) and all(type(x) is kind for x in value)


def _is_names(value: Any) -> bool:
    return value is None or _is_list(value, str)


# field → True if a value may be there; those that end or begin with _ are attributes
_FIELDS: dict[str, Callable[[Any], bool]] = {
    "format": lambda value: value == "fitzpatrick-boosted-model",
    "version": lambda value: value == 3,
    "estimator": _is_one_of(_ESTIMATORS),
    "params": lambda value: isinstance(value, dict),
    "dtype": lambda value: value is None or _is_one_of(_DTYPES)(value),
    "library_": _is_one_of(LIBRARIES),
    "loss_": _is_one_of(loss_names()),
    "tightness_": lambda value: type(value) in (int, float),
    "n_features_in_": lambda value: type(value) is int and value > 0,
    "n_iter_": lambda value: type(value) is int,
    "feature_names_in_": _is_names,
    "_target_names": _is_names,
    "classes_": lambda value: value is None or isinstance(value, list),
    "_is_single": lambda value: value in (None, True, False),
    "start_": lambda value: _is_list(value, float) and bool(np.isfinite(value).all()),
}
_ATTRIBUTES = [name for name in _FIELDS if "_" in (name[0], name[-1])]


def save_model(model: BoostedModel, file: str | Path) -> None:
    """Write a fitted model of a named loss, whose classes are numbers or texts.

    Parameters are saved, too, with lists for tuples and arrays. A ValueError names what JSON cannot
    hold, such as a ``RandomState``.
    """
    if not isinstance(model, BoostedModel):
        raise TypeError(
            f"save_model is for boosted models, got {type(model).__name__}; save other estimators "
            "with skops or pickle"
        )
    write_atomically(Path(file), model_text(model))


def model_text(model: BoostedModel) -> str:
    check_is_fitted(model, "booster_")
    if not isinstance(model.loss_, str):
        raise ValueError(
            f"the loss {model.loss_!r} is not in the registry; only models of named losses are "
            "saved"
        )
    dtype = model.classes_.dtype.name if hasattr(model, "classes_") else None
    given = {
        "format": "fitzpatrick-boosted-model",
        "version": 3,
        "estimator": type(model).__name__,
        "params": model.get_params(),
        "dtype": "str" if dtype and dtype.startswith("str") else dtype,  # of any length
        **{name: getattr(model, name, None) for name in _ATTRIBUTES},
    }
    lines = [json.dumps(given, default=_plain)]
    _check(json.loads(lines[0]))
    lines += (json.dumps(LIBRARIES[model.library_].to_text(part)) for part in model.booster_)
    return "\n".join(lines) + "\n"


def _plain(value: Any) -> Any:
    """Arrays and numbers of NumPy as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise ValueError(
        f"a file cannot hold {value!r}; use numbers and texts as parameters and classes"
    )


def load_model(file: str | Path) -> BoostedClassifier | BoostedProportionRegressor:
    """Read a model that :func:`save_model` wrote; a ValueError says what is wrong with a file."""
    with Path(file).open("rb") as lines:
        try:
            return read_model(lines)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error.__cause__


def read_model(lines: BinaryIO) -> BoostedClassifier | BoostedProportionRegressor:
    try:
        expect(lines.seek(0, SEEK_END) <= MAX_BYTES, f"it is larger than {MAX_BYTES} bytes")
        lines.seek(0)
        given = json.loads(lines.readline(MAX_TEXT_BYTES))
        _check(given)
        return _restore(given, list(islice(lines, MAX_PARTS + 1)))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"not a boosted model that fitzpatrick saved ({error})") from error


def _check(given: Any) -> None:
    """Raise a ValueError unless a description has the right fields, and they fit each other."""
    expect(isinstance(given, dict) and given.keys() == _FIELDS.keys(), "it has other fields")
    for name, is_valid in _FIELDS.items():
        expect(is_valid(given[name]), f"its {name} cannot be {given[name]!r:.40}")
    # raises unless the tightness is one of the loss
    Loss(get_loss(given["loss_"]).regularizer, given["tightness_"])
    classes, k = given["classes_"], len(given["start_"])
    for name, size in (("feature_names_in_", given["n_features_in_"]), ("_target_names", k)):
        expect(given[name] is None or len(given[name]) == size, f"{name} do not fit")
    expect(not given["_is_single"] or k == 1, "_is_single does not fit the start")
    if given["estimator"] == "BoostedClassifier":
        dtype = given["dtype"]
        expect(dtype and np.asarray(classes, dtype).tolist() == classes, "classes have no dtype")
        expect(len(set(classes)) == len(classes) == k, "classes do not fit the start")


def _restore(
    given: dict[str, Any], texts: list[bytes]
) -> BoostedClassifier | BoostedProportionRegressor:
    model = _ESTIMATORS[given["estimator"]](**given["params"])
    dtypes = dict.fromkeys(("feature_names_in_", "_target_names"), object)
    dtypes |= {"start_": float, "classes_": given["dtype"]}
    for name in _ATTRIBUTES:
        if given[name] is not None:
            is_array, value = name in dtypes, given[name]
            setattr(model, name, np.asarray(value, dtypes[name]) if is_array else value)
    model.n_classes_in_ = len(model.start_)
    library, model.booster_, n_rounds = LIBRARIES[model.library_], [], 0
    expect(0 < len(texts) <= MAX_PARTS, "it has no trees, or too many parts")
    for text in texts:
        try:
            part, *shape = library.from_text(json.loads(text))
        except Exception as error:  # a library's parser may raise anything
            raise ValueError(f"{model.library_} cannot read its trees: {error}") from error
        expected = [model.n_features_in_, model.n_classes_in_]
        expect(shape == expected, f"trees have {shape} features and targets, not {expected}")
        model.booster_.append(part)
        n_rounds += library.rounds(part)
        expect(n_rounds * len(model.start_) <= MAX_TREES, f"more than {MAX_TREES} trees")
    expect(n_rounds == model.n_iter_, f"{n_rounds} rounds of trees, not {model.n_iter_}")
    return model
