"""Checks at the public edge: what comes in, in which form, and what to say when it is wrong.

The formulas behind the edge trust their inputs: floating-point arrays of one library, dtype and
shape (…, k), with targets in the domain. Values are looked at only where that is possible, which
it is not while a compiler traces the call.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from ._array import (
    Array,
    as_array,
    as_float,
    as_library,
    as_real,
    class_indices,
    eagerly,
    is_concrete,
    is_integer,
    is_numpy,
    namespace,
    working_precision,
)
from .sets import ConvexSet

Restore = Callable[[Array], Array]


def as_scores(theta: Any, name: str = "theta") -> tuple[Array, Restore]:
    """Scores in working precision, and the cast back to their own dtype."""
    theta = as_real(theta, name)
    if theta.ndim == 0 or theta.shape[-1] == 0:
        raise ValueError(
            f"{name} must have shape (k,) or (n, k) with k >= 1, got {tuple(theta.shape)}"
        )
    dtype = theta.dtype

    def restore(out: Array) -> Array:
        out = namespace(out).astype(out, dtype, copy=False)
        return out[()] if is_numpy(out) and out.ndim == 0 else out

    return working_precision(theta), restore


def as_points(y: Any, domain: ConvexSet, name: str) -> tuple[Array, Restore]:
    """Points of a set in working precision, checked, and the cast back."""
    y = as_real(y, name)
    checked, restore = as_scores(y, name)
    check_membership(y, domain, name)
    return checked, restore


def as_pair(y: Any, theta: Any, domain: ConvexSet) -> tuple[Array, Array, Restore]:
    """Targets and scores as two arrays of one shape, library, device and dtype.

    Targets come as dense rows, as a SciPy sparse array, or, on the simplex, as integer labels.
    """
    y, theta, restore = as_targets_and_scores(y, theta, domain)
    if y.ndim < theta.ndim:
        y = namespace(theta).astype(class_indices(theta) == y[..., None], theta.dtype)
    return y, theta, restore


def as_targets_and_scores(y: Any, theta: Any, domain: ConvexSet) -> tuple[Array, Array, Restore]:
    """The same, but integer labels stay what they are, with one axis less than the scores."""
    theta, restore = as_scores(theta)
    if sparse.issparse(y):
        if not isinstance(theta, np.ndarray):
            raise TypeError(
                f"sparse targets go with NumPy scores, got theta of type {type(theta).__name__}"
            )
        y = y.toarray()
    if isinstance(y, (int, list, tuple)):
        y = as_library(y, theta)
    y = as_array(y, "y")
    try:
        xp = namespace(y, theta)
    except TypeError as error:
        raise TypeError(
            "y and theta must come from one array library, "
            f"got {type(y).__name__} and {type(theta).__name__}"
        ) from error
    if y.ndim == theta.ndim - 1 and is_integer(y):
        check_labels(y, tuple(theta.shape), domain)
        return y, theta, restore
    check_shape(y, tuple(theta.shape))
    y = as_float(y, "y")
    check_membership(y, domain, "y")  # in the precision that y was rounded to
    return xp.astype(y, theta.dtype, copy=False), theta, restore


def check_shape(y: Array, shape: tuple[int, ...]) -> None:
    """Raise unless the dense or sparse targets ``y`` have the shape of the scores."""
    if tuple(y.shape) == shape:
        return
    hint = ""
    if not sparse.issparse(y):
        if is_integer(y):
            hint = "; integer labels have the shape of theta without its last axis"
        elif tuple(y.shape) == shape[:-1]:
            hint = f"; if these are labels, make them integers (they have dtype {y.dtype})"
    raise ValueError(
        f"y and theta must have the same shape, got {tuple(y.shape)} and {shape}{hint}"
    )


def check_order(alpha: Any) -> float:
    """The order α of a Tsallis entropy as a float; raise unless it is a number from 1 to 2."""
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float, np.integer, np.floating)):
        raise TypeError(f"alpha must be a number from 1 to 2, got {alpha!r}")
    if not 1 <= alpha <= 2:
        raise ValueError(f"alpha must be between 1 and 2, got {alpha}")
    return float(alpha)


def as_tightness(tightness: Any) -> float:
    """The tightness as a float; raise unless it is a finite number that is not negative."""
    is_number = isinstance(tightness, (int, float, np.integer, np.floating))
    if isinstance(tightness, bool) or not is_number:
        raise TypeError(
            f"tightness must be a number, such as 0 (Fenchel-Young), 0.5 or 1 (Fitzpatrick), "
            f"got {tightness!r}"
        )
    if not 0 <= tightness < np.inf:
        raise ValueError(f"tightness must be finite and not negative, got {tightness!r}")
    return float(tightness)


def check_label_domain(domain: ConvexSet) -> None:
    """Raise unless a class stands for a point of the domain."""
    if not domain.has_labels:
        raise ValueError(
            f"integer labels are for losses on the simplex, this one has the domain {domain!r}; "
            "give y with the shape of theta"
        )


def check_labels(labels: Array, shape: tuple[int, ...], domain: ConvexSet) -> None:
    """Raise unless ``labels`` are classes of scores of that shape, on the simplex."""
    check_label_domain(domain)
    if tuple(labels.shape) != shape[:-1]:
        raise ValueError(
            f"labels must have shape {shape[:-1]} to go with theta of shape {shape}, "
            f"got {tuple(labels.shape)}"
        )
    if not is_concrete(labels):
        return
    k = shape[-1]
    with eagerly(labels):
        outside = (labels < 0) | (labels >= k)
        if bool(namespace(labels).any(outside)):
            at = _first(outside)
            value = int(labels[at])
            raise ValueError(f"label {value} {_where(at)}is out of range: theta has {k} classes")


def check_membership(y: Array, domain: ConvexSet, name: str, first_row: int = 0) -> None:
    """Raise with the first row that is not in the domain, and what is wrong with it.

    Where ``y`` is a block of rows of a larger array, ``first_row`` is the number of its first row.
    """
    if not is_concrete(y) or y.size == 0:
        return
    with eagerly(y):
        inside = domain.contains(y)
        if bool(namespace(y).all(inside)):
            return
        at = _first(~inside)
        what = domain.violation(y[at])
    raise ValueError(f"{name} is not in the domain {domain!r}: {_where(at, first_row)}{what}")


def _first(mask: Array) -> tuple[int, ...]:
    """Index of the first true entry."""
    flat = namespace(mask).reshape(mask, (-1,))
    position = int(namespace(mask).argmax(namespace(mask).astype(flat, namespace(mask).int8)))
    return tuple(int(i) for i in np.unravel_index(position, tuple(mask.shape)))


def _where(at: tuple[int, ...], first_row: int = 0) -> str:
    if not at:
        return ""
    at = (first_row + at[0], *at[1:])
    return f"in row {at[0] if len(at) == 1 else at} "
