"""Arrays of parameters as the solvers see them, wherever they are kept: inner products and such."""

import numpy as np

from .._array import Array, is_numpy, namespace


def inner(a: Array, b: Array) -> float:
    """⟨a, b⟩ over all entries."""
    if is_numpy(a):
        return float(np.vdot(a, b))
    return float(namespace(a, b).vecdot(a.reshape(-1), b.reshape(-1)))


def norm(a: Array) -> float:
    """The Euclidean norm of all entries."""
    if is_numpy(a):
        return float(np.linalg.norm(a))
    return float(namespace(a).linalg.vector_norm(a))


def copy(a: Array) -> Array:
    """A copy, in the same order."""
    return namespace(a).asarray(a, copy=True)
