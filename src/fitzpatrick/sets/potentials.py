r"""Matrices with given row and column sums that are elementwise up to two potentials.

Maximizers over the transport polytope are :math:`P_{ij} = p(\theta_{ij} - u_i - v_j)` with p
increasing. The potentials minimize the convex dual function

.. math:: \phi(u, v) = \sum_{ij} h(\theta_{ij} - u_i - v_j) + \langle a, u\rangle
                       + \langle b, v\rangle, \qquad h' = p.

Rows are balanced exactly, one by one, which gives u for any v. Damped Newton steps find v. Their
Hessian is the Laplacian of a graph of the columns, made of the slopes :math:`d = p'`; its diagonal
is summed from the rest, so that tiny slopes keep their digits. Scores of a large scale are
approached from smaller ones, where the matrix is spread out, along the path of their solutions
where that is smooth. The iteration holds
:math:`s = \theta - u - v`, which is small where P is not, instead of the potentials: sums have all
of their digits at any scale.
"""

import math
from abc import ABC, abstractmethod
from enum import Enum
from typing import ClassVar, NamedTuple

from .._array import Array, class_indices, eps, is_concrete, namespace, row_sum, without_derivatives
from .._root import State, iterate
from ._base import raise_unless

MAX_STEPS = 2000
# A step is taken if φ falls by this share of what its slope promises, and is a good one if it falls
# by that share.
_SUFFICIENT, _GOOD = 1e-4, 0.5
# The damping that is added to the Hessian at first, relative to the error of the sums, bounds the
# steps of the potentials. Bad steps multiply it by a factor, and good steps divide it.
_DAMPING, _CHANGE = 0.1, 4.0
# Scores begin with this range.
_FIRST_RANGE = 8.0
# Scores grow by a factor once the error of the sums is at most a share. Along a path of solutions
# the share is divided by their range, since entries that fall like one over the range have to be
# known. A prediction with a larger error is not taken.
_PATH_GROWTH, _PATH_CLOSE = 2.0, 0.04
_GROWTH, _CLOSE = 4.0, 0.5
# How many steps may fail to halve the error of the sums where φ has no more digits; a fifth of them
# once the error counts as convergence.
_PATIENCE = 40
# Errors of the sums, in spacings at 1: one that ends the iteration, and one for each row and column
# that counts as convergence in the end.
_EXACT, _ROUNDING = 8.0, 64.0


class PotentialStatus(Enum):
    """How the iteration ended; the value is the sentence for the user."""

    STALLED = (
        "The projection did not converge: row and column sums are off by a share of "
        f"{{residual:.3g}} {{where}} after up to {MAX_STEPS} steps. Check that the scores are "
        "finite."
    )


class Entries(ABC):
    """The formulas of one entry of the matrix.

    Attributes:
        has_path: True if p is smooth, so that the solution is, as a function of the scores' scale.
    """

    has_path: ClassVar[bool] = True

    @abstractmethod
    def point(self, s: Array) -> tuple[Array, Array]:
        """p and its slope d = ∂p/∂s."""

    @abstractmethod
    def dual(self, p: Array) -> Array:
        """h, whose derivative in s is p, up to a constant, from p."""

    @abstractmethod
    def row_potential(self, s: Array, a: Array) -> Array:
        """u for which the rows of p(s − u) sum to a, shape (…, n)."""

    def first_potential(self, s: Array, a: Array, b: Array) -> Array:  # for others
        """A v to begin with, shape (…, m), at scores of a small range; 0 by default."""
        return namespace(s).zeros_like(s[..., 0, :])


class _State(NamedTuple):
    s: Array  # scale · θ − u − v
    scale: Array  # of the scores, a power of two up to 1
    damping: Array  # of the next step
    patience: Array
    follows: Array  # True if larger scores are approached along the path of solutions
    best_s: Array  # with the smallest error so far
    error: Array  # of the sums there
    goes_on: Array


def _column_sum(x: Array) -> Array:
    return namespace(x).sum(x, axis=-2)


def solve_sums(d: Array, r: Array, q: Array, damping: Array | float = 0.0) -> tuple[Array, Array]:
    """(α, β) with Σ_j d (α_i + β_j) = r_i and Σ_i d (α_i + β_j) = q_j.

    Args:
        d: slopes, (…, n, m), non-negative.
        r: what the row sums are to be, (…, n).
        q: what the column sums are to be, (…, m), with the same total.
        damping: what is added to the diagonal for β.
    """
    xp = namespace(d)
    row = xp.sum(d, axis=-1)
    safe = xp.where(row > 0, row, 1.0)
    share = d / safe[..., None]
    edges = xp.matrix_transpose(d) @ share
    places = class_indices(edges)
    is_diagonal = places == places[:, None]
    edges = xp.where(is_diagonal, 0.0, edges)
    degree = xp.sum(edges, axis=-1)
    # the Laplacian alone is singular: potentials are known up to a constant
    least = 4 * eps(d) * xp.max(degree, axis=-1, keepdims=True)
    raised = degree + least + damping + float(xp.finfo(d.dtype).smallest_normal)
    laplacian = xp.where(is_diagonal, raised[..., None], -edges)
    is_finite = xp.all(xp.isfinite(laplacian), axis=(-2, -1), keepdims=True)
    unit = xp.astype(is_diagonal, d.dtype)
    rest = q - _column_sum(share * r[..., None])
    # rows without an answer must not stop the others: NumPy refuses a singular matrix
    beta = xp.linalg.solve(xp.where(is_finite, laplacian, unit), rest[..., None])[..., 0]
    beta = beta - xp.mean(beta, axis=-1, keepdims=True)
    alpha = (r - xp.sum(d * beta[..., None, :], axis=-1)) / safe
    return xp.where(row > 0, alpha, 0.0), beta


def tangent(d: Array, w: Array) -> Array:
    """The derivative of P along w: d ⊙ (w − α − β), which leaves all sums as they are."""
    for _ in range(2):  # the second time for the digits that the raised diagonal costs
        weighted = d * w
        alpha, beta = solve_sums(d, row_sum(weighted)[..., 0], _column_sum(weighted))
        w = w - alpha[..., None] - beta[..., None, :]
    return d * w


class _Problem(NamedTuple):
    entries: Entries
    a: Array
    b: Array
    size: Array  # of the scores

    @property
    def tolerance(self) -> float:
        """The error of the sums that counts as convergence."""
        return _ROUNDING * eps(self.a) * (len(self.a) + len(self.b))

    def errors(self, p: Array) -> tuple[Array, Array, Array]:
        """By how much row and column sums are off, and the largest share."""
        xp = namespace(p)
        r, q = xp.sum(p, axis=-1) - self.a, _column_sum(p) - self.b
        shares = xp.concat([xp.abs(r) / self.a, xp.abs(q) / self.b], axis=-1)
        return r, q, xp.max(shares, axis=-1)

    def step(self, given: State) -> State:
        state = _State(*given)
        xp, s = namespace(self.a), state.s
        one = xp.ones_like(state.scale)
        is_whole = state.scale > 0.9  # a power of two
        p, d = self.entries.point(s)
        r, q, error = self.errors(p)
        is_best = is_whole & (error < state.error)
        has_path = self.entries.has_path
        close = xp.maximum(_PATH_CLOSE / (state.scale * self.size), one * self.tolerance)
        grows = ~is_whole & (error <= (close if has_path else _CLOSE))
        predicts = grows & state.follows
        factor = _PATH_GROWTH if has_path else _GROWTH
        ahead = xp.where(predicts, one * factor, 1.0)
        # a direction that has no effect on the sums
        weighted = d * s * (ahead - 1)[..., None, None]
        damping = state.damping * xp.clip(error, 0, 1) * xp.mean(_column_sum(d), axis=-1)
        alpha, v = solve_sums(
            d,
            xp.where(predicts[..., None], xp.sum(weighted, axis=-1), r),
            xp.where(predicts[..., None], _column_sum(weighted), q),
            xp.where(predicts, 0 * damping, damping)[..., None],
        )
        slope = xp.sum(r * alpha, axis=-1) + xp.sum(q * v, axis=-1)
        trial = ahead[..., None, None] * s - v[..., None, :]
        u = self.entries.row_potential(trial, self.a)
        trial = trial - u[..., None]
        trial_p = self.entries.point(trial)[0]
        # by how much φ falls, from numbers that are small close to the solution
        parts = [
            self.entries.dual(p) - self.entries.dual(trial_p),
            -(self.a * u)[..., None, :],
            -(self.b * v)[..., None, :],
        ]
        fall = sum(xp.sum(part, axis=(-2, -1)) for part in parts)
        size = sum(xp.sum(xp.abs(part), axis=(-2, -1)) for part in parts)
        rounding = 8 * eps(s) * (size + xp.sum(self.a))
        is_flat = slope <= rounding
        trial_error = self.errors(trial_p)[2]
        falls = xp.where(is_flat, trial_error < error, fall >= _SUFFICIENT * slope - rounding)
        is_taken = xp.where(predicts, trial_error < _CLOSE, falls)
        is_stuck = is_whole & is_flat & (error >= state.error / 2)
        cost = xp.where(error <= self.tolerance, one * _PATIENCE / 5, 1.0)
        patience = xp.where(is_stuck, state.patience - cost, state.patience)
        is_done = (is_whole & (error <= _EXACT * eps(s))) | (patience <= 0) | ~xp.isfinite(error)
        rest = xp.where(grows & ~predicts, one * factor, 1.0)
        growth = xp.where(predicts & is_taken, one * factor, rest)
        is_good = is_flat | (fall > _GOOD * slope)
        change = xp.where(is_taken, xp.where(is_good, one / _CHANGE, 1.0), one * _CHANGE)
        change = xp.where(predicts, 1.0, change)
        moved = xp.where((is_taken & ~is_done)[..., None, None], trial, s)
        return _State(
            rest[..., None, None] * moved,
            growth * state.scale,
            xp.maximum(state.damping * change, eps(s) / xp.clip(error, eps(s))),
            patience,
            ~(predicts & ~is_taken) & has_path,
            xp.where(is_best[..., None, None], s, state.best_s),
            xp.where(is_best, error, state.error),
            ~is_done & (state.damping < 1 / eps(s)),
        )


def solve_potentials(entries: Entries, theta: Array, a: Array, b: Array) -> Array:
    """s = θ − u − v for which p(s) has the row sums a and the column sums b, without a derivative.

    Raises if the iteration did not converge; where it is traced, the matrix is NaN.

    Args:
        entries: the formulas of p.
        theta: scores, (…, n, m); a matrix with NaN stays NaN.
        a: row sums, (n,), positive.
        b: column sums, (m,), positive, with the same total.
    """
    xp = namespace(theta)
    theta = without_derivatives(theta)
    theta = theta - xp.max(theta, axis=-1, keepdims=True)
    size = xp.clip(-xp.min(theta, axis=(-2, -1)), _FIRST_RANGE)
    one = xp.ones_like(size)
    growth = _PATH_GROWTH if entries.has_path else _GROWTH
    scale = growth ** -xp.ceil(xp.log(size / _FIRST_RANGE) / math.log(growth))
    s = scale[..., None, None] * theta
    s = s - entries.first_potential(s, a, b)[..., None, :]
    s = s - entries.row_potential(s, a)[..., None]
    start = _State(
        s,
        scale,
        _DAMPING * one,
        _PATIENCE * one,
        (one == one) & entries.has_path,
        s,
        xp.inf * one,
        one == one,
    )
    problem = _Problem(entries, a, b, size)
    found = _State(*iterate(problem.step, start, MAX_STEPS))
    has_converged = found.error <= problem.tolerance
    is_nan = xp.any(xp.isnan(theta), axis=(-2, -1))
    if is_concrete(theta):
        raise_unless(has_converged | is_nan, found.error, PotentialStatus.STALLED)
    return xp.where(has_converged[..., None, None], found.best_s, xp.nan)
