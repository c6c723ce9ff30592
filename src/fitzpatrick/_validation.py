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
    is_jax,
    is_numpy,
    is_torch,
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
    working = working_precision(theta)
    if working is theta and theta.ndim > 1:
        return theta, lambda out: out
    dtype = theta.dtype

    def restore(out: Array) -> Array:
        out = namespace(out).astype(out, dtype, copy=False)
        return out[()] if is_numpy(out) and out.ndim == 0 else out

    return working, restore


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
    theta, restore = as_scores(theta)
    if domain.n_axes > 1:
        raise TypeError(
            f"this is for points that are vectors, and those of {domain!r} are matrices; use "
            "fitzpatrick.sets.Flat with it"
        )
    y = as_targets_of(theta, y, domain)
    if sparse.issparse(y):
        y = y.toarray()
    if y.ndim < theta.ndim:
        y = class_indices(theta) == y[..., None]
    return namespace(theta).astype(y, theta.dtype, copy=False), theta, restore


def as_targets_of(theta: Array, y: Any, domain: ConvexSet) -> Array:
    """Targets in the library of the scores θ, checked by :func:`as_targets`."""
    if sparse.issparse(y):
        if not isinstance(theta, np.ndarray):
            raise TypeError(
                f"sparse targets go with NumPy scores, got theta of type {type(theta).__name__}"
            )
    elif isinstance(y, (int, list, tuple)):
        y = as_library(y, theta)
    else:
        y = as_array(y, "y")
        try:
            namespace(y, theta)
        except TypeError as error:
            raise TypeError(
                "y and theta must come from one array library, "
                f"got {type(y).__name__} and {type(theta).__name__}"
            ) from error
    return as_targets(y, tuple(theta.shape), domain)


def as_matrix_targets(y: Any, theta: Array) -> Array:
    """Targets of the shape of the scores θ, which are matrices, as an array."""
    if sparse.issparse(y):
        raise TypeError("sparse targets are rows, and these losses take matrices; use y.toarray()")
    y = as_library(y, theta) if isinstance(y, (list, tuple)) else as_array(y, "y")
    check_shape(y, tuple(theta.shape))
    return y


# Entries of dense or packed targets that are checked at once.
_CHECKED_AT_ONCE = 1 << 17


def as_targets(y: Any, shape: tuple[int, ...], domain: ConvexSet) -> Array:
    """Targets for scores of a shape, after the one check that every door shares.

    Returns:
        Integer labels, and dense arrays as they are, in their own dtype. Sparse arrays as CSR
        without duplicates or stored zeros; arrays of the caller are never changed.
    """
    if sparse.issparse(y):
        return _as_sparse_targets(y, shape, domain)
    y = as_array(y, "y")
    if y.ndim == len(shape) - 1 and is_integer(y):
        y = _comparable(y)
        check_labels(y, shape, domain)
        return y
    check_shape(y, shape)
    # in the precision that y was rounded to, which need not be the scores' own
    if not (is_numpy(y) and y.ndim == 2 and y.size > _CHECKED_AT_ONCE):
        check_membership(as_float(y, "y"), domain, "y")
        return y
    step = max(1, _CHECKED_AT_ONCE // shape[1])
    for start in range(0, shape[0], step):
        block = as_float(y[start : start + step], "y")
        check_membership(block, domain, "y", first_row=start)
    return y


def _comparable(labels: Array) -> Array:
    """Labels in a dtype that holds every class.

    PyTorch and JAX compare small integers with a number as small, and PyTorch compares no unsigned
    ones beyond 8 bits.
    """
    if is_numpy(labels) or (is_jax(labels) and labels.dtype.itemsize >= 4):
        return labels
    xp = namespace(labels)
    return xp.astype(labels, xp.int32 if is_jax(labels) else xp.int64, copy=False)


def _as_sparse_targets(y: Any, shape: tuple[int, ...], domain: ConvexSet) -> Any:
    check_shape(y, shape)
    check_sparse(y, "y")
    matrix = y.tocsr()
    if matrix is not y:  # a list of lists may hold columns that do not exist, too
        check_sparse(matrix, "y")
    dtype = as_float(matrix.data[:0], "y").dtype
    if not (_is_sorted(matrix) and matrix.data.all()):
        data = matrix.data.astype(np.result_type(matrix.dtype, np.int8))  # a sum of booleans is not
        # a new array, since SciPy caches whether indices are in order
        arrays = data, matrix.indices.copy(), matrix.indptr.copy()
        matrix = type(matrix)(arrays, shape=matrix.shape)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    n, k = shape
    counts = np.diff(matrix.indptr)
    # The stored entries and one zero decide whether a row is in a simplex or a product set. Other
    # sets see whole rows.
    width = k if domain.coordinates is None else min(int(counts.max(initial=0)) + 1, k)
    step = max(1, _CHECKED_AT_ONCE // width)
    for start in range(0, n, step):
        stop = min(start + step, n)
        if width == k:
            check_membership(matrix[start:stop].toarray().astype(dtype), domain, "y", start)
            continue
        packed = np.zeros((stop - start, width), dtype)
        stored = slice(matrix.indptr[start], matrix.indptr[stop])
        packed[np.arange(width) < counts[start:stop, None]] = matrix.data[stored]
        for row in start + np.flatnonzero(~domain.contains(packed)):
            y_row = matrix[[row]].toarray().astype(dtype)
            check_membership(y_row, domain, "y", first_row=int(row))
    return matrix


def _is_sorted(matrix: Any) -> bool:
    """True if the columns of every row increase; SciPy's cached answer may be out of date."""
    rises = np.diff(matrix.indices[: matrix.indptr[-1]]) > 0
    row_starts = matrix.indptr[1:-1]
    row_starts = row_starts[(row_starts > 0) & (row_starts <= len(rises))]
    rises[row_starts - 1] = True
    return bool(rises.all())


def check_sparse(x: Any, name: str) -> None:
    """Raise unless the index arrays of a SciPy sparse array fit its shape.

    SciPy takes them on trust: an index out of range is a read or write outside of an array. Arrays
    that are not sparse pass.
    """
    if not sparse.issparse(x):
        return
    if x.format == "coo":
        for axis, coordinates in enumerate(x.coords if hasattr(x, "coords") else (x.row, x.col)):
            _check_indices(coordinates, x.shape[axis], f"{name} is a broken COO array", axis)
            if len(coordinates) != len(x.data):
                raise ValueError(
                    f"{name} is a broken COO array: {len(x.data)} numbers and {len(coordinates)} "
                    "places"
                )
    if x.format not in ("csr", "csc", "bsr"):
        return
    what = f"{name} is a broken {x.format.upper()} array"
    block = x.blocksize if x.format == "bsr" else (1, 1)
    major, minor = (1, 0) if x.format == "csc" else (0, 1)
    n_major, n_minor = (x.shape[axis] // block[axis] for axis in (major, minor))
    indptr, indices = x.indptr, x.indices
    if len(indptr) != n_major + 1 or indptr[0] != 0 or not len(indices) == len(x.data):
        raise ValueError(
            f"{what}: its shape {x.shape} needs an indptr of {n_major + 1} numbers from 0 on, and "
            f"as many indices as numbers; got {len(indptr)} from {indptr[:1]} on, {len(indices)} "
            f"indices and {len(x.data)} numbers"
        )
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if len(falls) or indptr[-1] > len(indices):
        at = int(falls[0]) if len(falls) else n_major - 1
        raise ValueError(
            f"{what}: in {_AXES[major]} {at} indptr goes from {indptr[at]} to {indptr[at + 1]}, "
            f"but there are {len(indices)} entries"
        )
    _check_indices(indices[: indptr[-1]], n_minor, what, minor, indptr)


_AXES = ("row", "column")


def _check_indices(
    indices: Array, size: int, what: str, axis: int, indptr: Array | None = None
) -> None:
    """Raise with the first index along an axis that is not below the size, and its row."""
    if len(indices) == 0 or (indices.min() >= 0 and indices.max() < size):
        return
    at = int(np.flatnonzero((indices < 0) | (indices >= size))[0])
    place = f"entry {at}"
    if indptr is not None:
        place = f"{_AXES[1 - axis]} {int(np.searchsorted(indptr, at, side='right')) - 1}"
    raise ValueError(
        f"{what}: {place} has the {_AXES[axis]} {indices[at]}, but there are {size} "
        f"{_AXES[axis]}s, from 0 to {size - 1}"
    )


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


def read_number(x: Any, name: str, why_no_gradient: str = "") -> Any:
    """``x``, or the number that it holds if it is an array without axes on the host."""
    if isinstance(x, (int, float)):
        return x
    if not is_torch(x):
        is_scalar = (isinstance(x, np.ndarray) or is_jax(x)) and x.ndim == 0
        return x.item() if is_scalar else x
    if x.requires_grad:
        raise TypeError(
            f"{name} must not require a gradient{why_no_gradient}; pass {name}.detach()"
        )
    if x.ndim:
        raise TypeError(f"{name} must be a number, got a tensor of shape {tuple(x.shape)}")
    if x.device.type != "cpu":
        raise TypeError(
            f"{name} must be a number, got a tensor on {x.device}; float({name}) waits for it"
        )
    return x.item()


# The range that every engine can hold in both precisions, besides 0: below it, products with tiny
# targets underflow in float32, and above it losses have lost half of the digits of float32.
MIN_TIGHTNESS, MAX_TIGHTNESS = 1e-12, 1e6


def as_tightness(tightness: Any, limit: float = MAX_TIGHTNESS) -> float:
    """The tightness as a float; raise unless it is 0 or a number from 1e-12 to 1e6.

    Beyond ``limit`` the losses of a regularizer have several maximizers.
    """
    runs_away = ": the loss decreases in it, so that training would drive it to infinity"
    tightness = read_number(tightness, "tightness", runs_away)
    is_number = isinstance(tightness, (int, float, np.integer, np.floating))
    if isinstance(tightness, bool) or not is_number:
        raise TypeError(
            f"tightness must be a number, such as 0 (Fenchel-Young), 0.5 or 1 (Fitzpatrick), "
            f"got {tightness!r}; it cannot be learned, since the loss decreases in it: a gradient "
            "step would raise it without end"
        )
    if tightness != 0 and not MIN_TIGHTNESS <= tightness <= MAX_TIGHTNESS:
        raise ValueError(
            f"tightness must be 0 or between {MIN_TIGHTNESS:g} and {MAX_TIGHTNESS:g}, "
            f"got {tightness!r}"
        )
    if tightness > limit:
        raise ValueError(
            f"the losses of this regularizer are defined up to tightness={limit!r}, "
            f"got {tightness!r}"
        )
    return float(tightness)


def as_order(order: Any) -> float:
    """The order of a loss as a number; raise unless it is infinite or an integer from 2 on."""
    is_number = isinstance(order, (int, float, np.integer, np.floating))
    is_whole = is_number and (order == np.inf or float(order).is_integer())
    if isinstance(order, bool) or not is_whole:
        raise TypeError(f"order must be an integer or math.inf, got {order!r}")
    if order < 2:
        raise ValueError(f"order must be 2 (the Fitzpatrick loss) or more, got {order!r}")
    return float(order) if order == np.inf else int(order)


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


def check_membership(
    y: Array, domain: ConvexSet, name: str, first_row: int = 0, axis: int = -1
) -> None:
    """Raise with the first row that is not in the domain, and what is wrong with it.

    ``first_row`` is the number of the first, if ``y`` is a block of a larger array; the classes are
    along ``axis``.
    """
    if not is_concrete(y) or y.size == 0:
        return
    with eagerly(y):
        rows = y if axis in (-1, y.ndim - 1) else namespace(y).moveaxis(y, axis, -1)
        inside = domain.contains(rows)
        if bool(namespace(y).all(inside)):
            return
        at = _first(~inside)
        what = domain.violation(rows[at])
    if rows is y:
        raise ValueError(f"{name} is not in the domain {domain!r}: {_where(at, first_row)}{what}")
    axis %= y.ndim
    place = ", ".join([*map(str, at[:axis]), ":", *map(str, at[axis:])])
    what = what.replace("axis=-1", f"axis={axis}")  # a set knows rows, and says how to mend them
    raise ValueError(
        f"{name} is not in the domain {domain!r} along axis {axis}: at {name}[{place}] {what}"
    )


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
