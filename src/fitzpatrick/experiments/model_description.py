"""What a saved model says of itself: a flat JSON object, checked key by key.

The keys must be exactly those below, each of them once, and their values exactly of the type and in
the range that the table of fields says. Numbers are finite.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import __version__
from ..datasets._table import Codes
from ..linear_model import Status
from ..losses import loss_names

FORMAT = "fitzpatrick-model"
VERSION = 1
KINDS = ("indicators", "proportions", "labels", "numbers")
_SHOWN = 40


@dataclass(frozen=True, eq=False)
class Description:
    """Everything but the coefficients.

    Attributes:
        loss: its name.
        alpha: strength of the penalty.
        fit_intercept: as in the estimator.
        standardize: as in the estimator.
        kind: of the targets, as in :class:`fitzpatrick.datasets.Table`.
        feature_names: one per feature, or None where features are numbered.
        target_names: one per target.
        codes: of the features whose values are words.
        cv_score: of alpha in the cross-validation that chose it, or None where it was given.
        objective: at the end of the fit.
        gradient_norm: norm of its gradient there.
        n_iter: iterations of the solver.
        status: the name of a :class:`fitzpatrick.linear_model.Status`.
        tightness: of the loss, where it is not that of its name; the link does not depend on it.
    """

    loss: str
    alpha: float
    fit_intercept: bool
    standardize: bool
    kind: str
    feature_names: tuple[str, ...] | None
    target_names: tuple[str, ...]
    codes: Codes
    cv_score: float | None
    objective: float
    gradient_norm: float
    n_iter: int
    status: str
    tightness: float | None = None


@dataclass(frozen=True)
class _Field:
    """What a value must be, in words and as a test."""

    expected: str
    accepts: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


def _are_names(value: Any) -> bool:
    return (
        type(value) is list
        and len(value) > 0
        and all(type(name) is str for name in value)
        and len(set(value)) == len(value)
    )


def _are_codes(value: Any) -> bool:
    return type(value) is dict and all(
        type(words) is dict and all(map(_is_number, words.values())) for words in value.values()
    )


_TRUTH = _Field("true or false", lambda value: type(value) is bool)
_NUMBER = _Field("a number", _is_number)
_NOT_NEGATIVE = _Field("a number of at least 0", lambda value: _is_number(value) and value >= 0)
_FIELDS = {
    "library": _Field("a version", lambda value: type(value) is str),
    "loss": _Field(
        "the name of a loss", lambda value: type(value) is str and value in loss_names()
    ),
    "alpha": _Field("a positive number", lambda value: _is_number(value) and value > 0),
    "fit_intercept": _TRUTH,
    "standardize": _TRUTH,
    "kind": _Field(" or ".join(KINDS), lambda value: type(value) is str and value in KINDS),
    "feature_names": _Field(
        "null or different names", lambda value: value is None or _are_names(value)
    ),
    "target_names": _Field("different names", _are_names),
    "codes": _Field("for some features, the numbers of words", _are_codes),
    "cv_score": _Field("null or a number", lambda value: value is None or _is_number(value)),
    "objective": _NUMBER,
    "gradient_norm": _NOT_NEGATIVE,
    "n_iter": _Field(
        "a whole number of at least 0", lambda value: type(value) is int and value >= 0
    ),
    "status": _Field(
        " or ".join(Status.__members__),
        lambda value: type(value) is str and value in Status.__members__,
    ),
}
_OPTIONAL = {"tightness": _NOT_NEGATIVE}


def to_text(description: Description) -> str:
    """The JSON object; raises a ValueError for what :func:`from_text` would refuse."""
    fields = {"library": __version__, **vars(description)}
    for key in ("feature_names", "target_names"):
        fields[key] = None if fields[key] is None else list(fields[key])
    for key in _OPTIONAL:
        if fields[key] is None:
            del fields[key]
    _check(fields)
    content = {"format": FORMAT, "version": VERSION, **fields}
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)


def from_text(text: str) -> Description:
    """Parse and check; raises a ValueError with the reason, or a RecursionError."""
    content = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    if type(content) is not dict or content.pop("format", None) != FORMAT:
        raise ValueError("its JSON does not describe a model")
    version = content.pop("version", None)
    if type(version) is not int or version != VERSION:
        problem = f"its format has the version {_short(version)}"
        raise ValueError(f"{problem}; fitzpatrick {__version__} reads {VERSION}")
    _check(content)
    del content["library"]
    for key in ("feature_names", "target_names"):
        content[key] = None if content[key] is None else tuple(content[key])
    return Description(**content)


def _check(fields: dict[str, Any]) -> None:
    missing = _FIELDS.keys() - fields.keys()
    if missing:
        raise ValueError(f"{min(missing)} is missing")
    known = _FIELDS | _OPTIONAL
    unknown = fields.keys() - known.keys()
    if unknown:
        raise ValueError(f"{_short(min(unknown))} is not known")
    for key, value in fields.items():
        if not known[key].accepts(value):
            raise ValueError(f"{key} is {_short(value)}, expected {known[key].expected}")


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
