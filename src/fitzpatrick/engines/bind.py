"""Binds a regularizer and a tightness to targets, for callers that check them and for users."""

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from .._array import Array, as_library, dtype_name, is_numpy, is_torch, namespace
from .._validation import (
    Restore,
    as_matrix_targets,
    as_scores,
    as_targets,
    as_targets_of,
    as_tightness,
)
from ..regularizers import Regularizer
from . import rows
from .bound import BoundLoss, CoreLoss
from .rows import CoreKernel, RowBlocks, resolve_threads
from .table import MIN_COMPILED_SIZE, Engine, find_kernel, kernel_maker, numba_compiles
from .targets import NoTargets, TargetForm, wrap_targets
from .triton.specs import parse_kernel

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


def bind(
    omega: Regularizer,
    tightness: float,
    y: Any,
    n_classes: int,
    dtype: DTypeLike = np.float64,
    n_threads: int | None = None,
    engine: Engine | None = None,
) -> BoundLoss:
    """Check the targets once and prepare them for many evaluations.

    Args:
        omega: the regularizer Ω, one of the package or of your own.
        tightness: c.
        y: targets: dense (n, k), a SciPy sparse array of that shape, which is never densified as a
            whole, or (n,) integer labels, which are never one-hot encoded.
        n_classes: k.
        dtype: float32 or float64, the dtype of the scores to come.
        n_threads: how many threads to use, by default one per core that the process may use. The
            results do not depend on it.
        engine: ``"numba"`` asks for compiled rows and raises if there are none, ``"numpy"`` for
            rows in NumPy. By default large problems use Numba, if Ω has a compiled kernel.

    Example:
        >>> import fitzpatrick as fp
        >>> bound = bind(fp.regularizers.Tsallis(2.0), 0.0, np.asarray([[0.5, 0.5], [1, 0]]), 2)
        >>> bound.value(np.zeros((2, 2)))
        array([0.  , 0.25])
        >>> hessian = bound.hessian_operator(np.zeros((2, 2)))
        >>> hessian(np.asarray([[1.0, 0.0], [0.0, 0.0]]))
        array([[ 0.5, -0.5],
               [ 0. ,  0. ]])
    """
    dtype = np.dtype(dtype)
    if dtype not in _DTYPES:
        raise TypeError(f"scores must be float32 or float64 to bind a loss, got dtype {dtype}")
    if n_classes < 1:
        raise ValueError(f"n_classes must be at least 1, got {n_classes}")
    if not sparse.issparse(y) and not is_numpy(y):
        y = np.asarray(y)
    if y.ndim == 0:
        raise ValueError("y must have shape (n,) or (n, k), got a single number")
    shape = y.shape[0], n_classes
    targets = wrap_targets(as_targets(y, shape, omega.domain), shape, dtype)
    return bind_trusted(omega, as_tightness(tightness), targets, n_threads, engine)


def bind_trusted(
    omega: Regularizer,
    tightness: float,
    targets: TargetForm,
    n_threads: int | None = None,
    engine: Engine | None = None,
) -> BoundLoss:
    """Bind targets that need no check: on the simplex every row has a positive entry."""
    n_threads = resolve_threads(n_threads)
    make = kernel_maker(omega, targets, engine) if omega.is_row_wise or engine else CoreKernel
    if make is CoreKernel and not isinstance(targets, NoTargets):
        n, k = targets.shape
        is_one_block = n <= rows.block_rows(k, targets.dtype.itemsize, rows.CORE_BLOCK_BYTES)
        if is_one_block or not omega.is_row_wise:
            return CoreLoss(omega, tightness, targets.whole())
    return RowBlocks(make(omega, tightness, targets), n_threads)


def bind_like(
    omega: Regularizer,
    tightness: float,
    y: Any,
    n_classes: int,
    like: Array,
    n_threads: int | None = None,
) -> BoundLoss:
    """Bind targets of the host to scores of any array library, by a GPU kernel or by the core.

    Args:
        omega: the regularizer Ω.
        tightness: c.
        y: targets as :func:`bind` takes them; on a device sparse ones become dense.
        n_classes: k.
        like: an array of the library, device and dtype of the scores.
        n_threads: as in :func:`bind`, for NumPy.
    """
    if is_numpy(like):
        return bind(omega, tightness, y, n_classes, like.dtype, n_threads)
    y = y if sparse.issparse(y) else np.asarray(y)
    shape, dtype = (y.shape[0], n_classes), np.dtype(dtype_name(like))
    y = wrap_targets(as_targets(y, shape, omega.domain), shape, dtype).whole()
    tightness, kernel = as_tightness(tightness), None
    if is_torch(like) and like.device.type == "cuda" and find_spec("triton") is not None:
        kernel = find_kernel("triton", omega) if omega.is_coupled else None
    if kernel is None or not parse_kernel(kernel)[0].takes_rows:
        return CoreLoss(omega, tightness, as_library(y, like))
    if y.ndim == 1:
        y = (y[:, None] == np.arange(n_classes)).astype(dtype)
    from .triton.bound import KernelLoss  # which loads triton

    return KernelLoss(omega, tightness, as_library(y, like), kernel)


def bind_pair(
    omega: Regularizer, tightness: float, y: Any, theta: Any, n_threads: int | None
) -> tuple[BoundLoss, Array, Restore]:
    """Bind the targets of a user's pair (y, θ).

    Returns:
        The bound loss, the scores in working precision, and the cast of results back to the
        dtype of θ.
    """
    theta, restore = as_scores(theta)
    if omega.domain.n_axes > 1:
        y = as_matrix_targets(y, theta)
        omega, theta, restore = omega.on_vectors(theta, restore)
        y = namespace(y).reshape(y, tuple(theta.shape))
    y = as_targets_of(theta, y, omega.domain)
    if type(theta) is np.ndarray and theta.ndim == 2:
        targets = wrap_targets(y, theta.shape, theta.dtype)
        return bind_trusted(omega, tightness, targets, n_threads), theta, restore
    if y.ndim == theta.ndim:
        y = namespace(theta).astype(y, theta.dtype, copy=False)
    return CoreLoss(omega, tightness, y), theta, restore


def check_buffer(out: Any, name: str, shape: tuple[int, ...], theta: Array, y: Any) -> None:
    """Raise unless the results for y and θ can be written into ``out``."""
    if not (is_numpy(theta) and isinstance(out, np.ndarray)):
        raise TypeError(
            f"{name} must be a NumPy array, to go with NumPy scores, "
            f"got {type(out).__name__} and {type(theta).__name__}"
        )
    if out.shape != shape or out.dtype != theta.dtype:
        raise ValueError(
            f"{name} must have shape {shape} and dtype {theta.dtype}, "
            f"got {out.shape} and {out.dtype}"
        )
    if not out.flags.writeable:
        raise ValueError(f"{name} is read-only; give an array that can be written to")
    y = getattr(y, "data", None) if sparse.issparse(y) else y  # DOK has none
    for given, needed in (("theta", theta), ("y", y)):
        if isinstance(needed, np.ndarray) and np.may_share_memory(out, needed):
            raise ValueError(
                f"{name} overlaps {given}, which is still needed; give a separate array"
            )


def link(omega: Regularizer, theta: Any, n_threads: int | None = None) -> Array:
    """ŷ(θ) for scores of a user, which are checked here."""
    omega, theta, restore = omega.on_vectors(*as_scores(theta))
    if type(theta) is np.ndarray and theta.ndim == 2 and omega.is_row_wise:
        no_targets = NoTargets(theta.shape, theta.dtype)
        return restore(bind_trusted(omega, 0.0, no_targets, n_threads).y_star(theta))
    return restore(omega.solve_link(theta))


def probabilities(
    omega: Regularizer, tightness: float, theta: Any, n_threads: int | None = None
) -> Array:
    """The class probabilities that belong to scores of a user, which are checked here."""
    theta, restore = as_scores(theta)
    is_large = type(theta) is np.ndarray and theta.ndim == 2 and theta.size >= MIN_COMPILED_SIZE
    if is_large and tightness > 0 and omega.entmax_alpha == 1 and numba_compiles():
        from .compiled import probabilities as compiled  # which loads Numba

        if tightness <= compiled.MAX_TIGHTNESS:
            threads = resolve_threads(n_threads)
            return restore(compiled.fill_probabilities(theta, tightness, threads))
    return restore(omega.solve_probabilities(theta, tightness))
