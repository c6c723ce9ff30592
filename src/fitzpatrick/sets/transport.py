"""Matrices with given row and column sums: assignments and transport plans."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from .._array import (
    Array,
    NumpyArray,
    as_library,
    as_real,
    namespace,
    on_host,
    quiet,
    with_derivative,
    working_precision,
)
from ._base import ConvexSet, membership_tolerance
from .potentials import Entries, solve_potentials, tangent
from .simplex import Simplex


class PositivePart(Entries):
    """p = (s)₊, the projection."""

    has_path: ClassVar[bool] = False

    def point(self, s: Array) -> tuple[Array, Array]:
        xp = namespace(s)
        return xp.clip(s, 0), xp.astype(s > 0, s.dtype)

    def dual(self, p: Array) -> Array:
        return p * p / 2

    def row_potential(self, s: Array, a: Array) -> Array:
        xp, a = namespace(s), a[:, None]
        p = a * Simplex().project(s / a)
        top = xp.argmax(s, axis=-1, keepdims=True)  # is positive
        highest = xp.take_along_axis(s, top, axis=-1) - xp.take_along_axis(p, top, axis=-1)
        return highest[..., 0]


@dataclass(frozen=True)
class MarginalSet(ConvexSet):
    """Non-negative matrices with given row and column sums, along the last two axes."""

    has_interior: ClassVar[bool] = False
    n_axes: ClassVar[int] = 2

    @abstractmethod
    def sums(self, shape: tuple[int, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The row and column sums of points of a shape; raises if there are no such points."""

    def marginals(self, x: Array) -> tuple[Array, Array]:
        """The row and column sums as arrays that go with x."""
        xp = namespace(x)
        a, b = (as_library(sums, x) for sums in self.sums(tuple(x.shape)))
        return xp.astype(a, x.dtype), xp.astype(b, x.dtype)

    def _as_matrices(self, x: Any, name: str) -> Array:
        x = as_real(x, name)
        self.sums(tuple(x.shape))
        return x

    @quiet
    def project(self, x: Array) -> Array:
        x = self._as_matrices(x, "x")
        xp, working = namespace(x), working_precision(x)
        s = solve_potentials(PositivePart(), working, *self.marginals(working))
        p, d = PositivePart().point(s)
        p = with_derivative(xp.where(xp.isnan(s), s, p), working, lambda v: tangent(d, v))
        return xp.astype(p, x.dtype, copy=False)

    def project_derivative(self, x: Array, v: Array) -> Array:
        s = solve_potentials(PositivePart(), x, *self.marginals(x))
        return tangent(PositivePart().point(s)[1], v)

    def maximize(self, theta: Array) -> Array:
        theta = self._as_matrices(theta, "theta")
        return on_host(self._maximize, theta)

    def _maximize(self, theta: NumpyArray) -> NumpyArray:
        out = np.full(theta.shape, np.nan)
        a, b = (np.asarray(sums) for sums in self.sums(theta.shape))
        for at in np.ndindex(theta.shape[:-2]):
            if not np.isnan(theta[at]).any():
                out[at] = _best_plan(theta[at].astype(np.float64), a, b)
        return out

    def contains(self, x: Array) -> Array:
        x = self._as_matrices(x, "x")
        xp = namespace(x)
        a, b = self.marginals(x)
        slack = membership_tolerance(x)
        rows = xp.all(xp.abs(xp.sum(x, axis=-1) - a) <= slack * a, axis=-1)
        columns = xp.all(xp.abs(xp.sum(x, axis=-2) - b) <= slack * b, axis=-1)
        return xp.all(x >= 0, axis=(-2, -1)) & rows & columns

    def same_face(self, y: Array, z: Array) -> Array:
        return namespace(y).all((z > 0) | (y == 0), axis=(-2, -1))

    def violation(self, row: Array) -> str:
        xp = namespace(row)
        if not bool(xp.all(row >= 0)):
            return "it has entries that are negative or NaN"
        for axis, name, sums in zip((1, 0), ("row", "column"), self.marginals(row), strict=True):
            found = xp.sum(row, axis=axis)
            worst = int(xp.argmax(xp.abs(found - sums) / sums))
            if abs(float(found[worst] - sums[worst])) > membership_tolerance(row) * sums[worst]:
                return (
                    f"{name} {worst} sums to {float(found[worst]):.10g}, "
                    f"not {float(sums[worst]):.10g}"
                )
        return "it is valid"


def _best_plan(theta: NumpyArray, a: NumpyArray, b: NumpyArray) -> NumpyArray:
    """A vertex of the transport polytope that maximizes ⟨P, θ⟩."""
    from scipy.optimize import linear_sum_assignment, linprog  # which take long to load

    n, m = theta.shape
    if n == m and np.all(a == a[0]) and np.all(b == a[0]):
        plan = np.zeros_like(theta)
        plan[linear_sum_assignment(theta, maximize=True)] = a[0]
        return plan
    rows = sparse.kron(sparse.eye_array(n), np.ones((1, m)))
    columns = sparse.kron(np.ones((1, n)), sparse.eye_array(m))
    size = np.abs(theta).max() or 1.0
    result = linprog(
        -theta.ravel() / size,
        A_eq=sparse.vstack([rows, columns]),
        b_eq=np.concatenate([a, b]),
        method="highs-ds",
    )
    if result.status != 0:
        raise RuntimeError(f"SciPy's linear program of the transport failed: {result.message}")
    found: NumpyArray = np.clip(result.x, 0, None).reshape(n, m)
    return found


@dataclass(frozen=True)
class Birkhoff(MarginalSet):
    r"""Doubly stochastic matrices, :math:`P \ge 0,\ P 1 = 1,\ P^\top 1 = 1`.

    Its vertices are the permutation matrices: assignments, matchings, and orders of items. A point
    is the last two axes of an array, (…, n, n); :class:`Flat` takes rows of n² entries.

    Example:
        >>> import numpy as np
        >>> x = np.asarray([[3.0, 0.5, 0.0], [0.3, 1.0, 0.1], [0.6, 0.0, 0.2]])
        >>> Birkhoff().project(x).round(3)
        array([[1.   , 0.   , 0.   ],
               [0.   , 0.775, 0.225],
               [0.   , 0.225, 0.775]])
        >>> Birkhoff().maximize(x)
        array([[1., 0., 0.],
               [0., 1., 0.],
               [0., 0., 1.]])
    """

    def sums(self, shape: tuple[int, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
        if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] == 0:
            raise ValueError(
                f"Birkhoff has square matrices (…, n, n), got shape {shape}; for rows of n² "
                "entries use fitzpatrick.sets.Flat(Birkhoff(), (n, n))"
            )
        return (1.0,) * shape[-1], (1.0,) * shape[-1]


@dataclass(frozen=True)
class Transport(MarginalSet):
    r"""Transport plans, :math:`P \ge 0` with row sums a and column sums b.

    A point is the last two axes of an array, (…, n, m).

    Args:
        a: the n row sums, positive.
        b: the m column sums, positive, with the same total.

    Example:
        >>> import numpy as np
        >>> plans = Transport((1.0, 2.0), (0.5, 1.5, 1.0))
        >>> plans.project(np.asarray([[2.0, 0.0, 0.0], [0.0, 1.0, 1.0]])).round(3)
        array([[0.5  , 0.375, 0.125],
               [0.   , 1.125, 0.875]])
        >>> plans.maximize(np.asarray([[2.0, 0.0, 0.0], [0.0, 1.0, 0.9]]))
        array([[0.5, 0. , 0.5],
               [0. , 1.5, 0.5]])
    """

    a: tuple[float, ...]
    b: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            sums = tuple(float(x) for x in getattr(self, name))
            if not sums or not all(0 < x < math.inf for x in sums):
                raise ValueError(
                    f"Transport needs positive row and column sums, got {name}={sums}; leave rows "
                    "and columns without mass out"
                )
            object.__setattr__(self, name, sums)
        totals = math.fsum(self.a), math.fsum(self.b)
        if abs(totals[0] - totals[1]) > 1e-6 * max(totals):
            raise ValueError(
                f"Transport needs row and column sums with the same total, got {totals[0]:.10g} "
                f"and {totals[1]:.10g}; divide each of them by its total"
            )
        # equal to the last digit
        object.__setattr__(self, "b", tuple(x * (totals[0] / totals[1]) for x in self.b))

    def sums(self, shape: tuple[int, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
        expected = len(self.a), len(self.b)
        if tuple(shape[-2:]) != expected:
            raise ValueError(
                f"Transport has matrices (…, {expected[0]}, {expected[1]}), got shape {shape}; for "
                f"rows of {math.prod(expected)} entries use "
                f"fitzpatrick.sets.Flat(Transport(a, b), {expected})"
            )
        return self.a, self.b
