"""Arrays of parameters as the solvers see them, wherever they are kept: inner products and such."""

from typing import Any

import numpy as np
from scipy import sparse

from .._array import Array, is_numpy, is_torch, namespace


def entries(X: Array) -> Array:
    """The numbers that a dense or a sparse array stores."""
    return X.data if sparse.issparse(X) else X


def inner(a: Array, b: Array) -> float:
    """⟨a, b⟩ over all entries."""
    if is_numpy(a):
        return float(np.vdot(a, b))
    return float(namespace(a, b).vecdot(flat(a), flat(b)))


def norm(a: Array) -> float:
    """The Euclidean norm of all entries."""
    if is_numpy(a):
        return float(np.linalg.norm(a))
    return float(namespace(a).linalg.vector_norm(a))


def flat(a: Array) -> Array:
    """All entries in one row."""
    return namespace(a).reshape(a, (-1,))


def cast(a: Array, dtype: Any) -> Array:
    """An array in another dtype; a copy only where it differs."""
    return a if a.dtype == dtype else namespace(a).astype(a, dtype)


def copy(a: Array) -> Array:
    """A copy, in the same order."""
    return namespace(a).asarray(a, copy=True)


def matmul(a: Array, b: Array, out: Array) -> Array:
    """A B, in ``out``."""
    if is_numpy(out) or is_torch(out):
        return namespace(out).matmul(a, b, out=out)
    out[...] = a @ b  # the standard has no ``out``
    return out
