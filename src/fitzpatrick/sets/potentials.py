r"""Matrices with given row and column sums that are elementwise up to two potentials.

Maximizers over the transport polytope are :math:`P_{ij} = p(\theta_{ij} - u_i - v_j)` with p
increasing. The potentials minimize the convex dual function

.. math:: \phi(u, v) = \sum_{ij} h(\theta_{ij} - u_i - v_j) + \langle a, u\rangle
                       + \langle b, v\rangle, \qquad h' = p.

Rows are balanced exactly, one by one, which gives u for any v. Newton's method with a line search
finds v. Its Hessian is the Laplacian of a graph of the columns, made of the slopes :math:`d = p'`;
its diagonal is summed from the rest, so that tiny slopes keep their digits. Scores of a large
scale are approached from smaller ones, where the matrix is spread out.
"""

from abc import ABC, abstractmethod
from enum import Enum
from typing import NamedTuple

from .._array import Array, class_indices, eps, is_concrete, namespace, without_derivatives
from .._root import State, iterate
from ._base import ConvergenceError

MAX_STEPS = 400
# A step is taken if φ falls by this share of what its slope promises; else the next is shorter.
_SUFFICIENT, _CUT = 1e-4, 0.25
# What is added to the Hessian, in terms of how far the sums are off: it bounds steps of the
# potentials, and vanishes at the solution.
_DAMPING = 0.1
# Scores begin with this range, and grow by this factor once all sums are off by at most this share.
_FIRST_RANGE, _GROWTH, _CLOSE = 8.0, 4.0, 0.5
# Steps that may fail to halve the error of the sums where φ has no more digits.
_PATIENCE = 6
# Errors of the sums, in spacings at 1, that end the iteration; and those, in rounding errors of the
# largest score, that count as convergence in the end.
_EXACT, _ROUNDING = 8.0, 64.0


class PotentialStatus(Enum):
    """How the iteration ended; the value is the sentence for the user."""

    CONVERGED = "Row and column sums are exact up to rounding errors."
    STALLED = (
        "The projection did not converge: row and column sums are off by a share of {error:.3g} "
        f"after up to {MAX_STEPS} steps. Check that the scores are finite."
    )


class Entries(ABC):
    """The formulas of one entry of the matrix."""

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
    u: Array
    v: Array
    scale: Array  # of the scores, up to 1
    length: Array  # of the next step
    patience: Array
    best_u: Array  # with the smallest error so far
    best_v: Array
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
    safe = xp.where(row > 0, row, xp.ones_like(row))
    share = d / safe[..., None]
    edges = xp.matrix_transpose(d) @ share
    places = class_indices(edges)
    is_diagonal = places == places[:, None]
    edges = xp.where(is_diagonal, xp.zeros_like(edges), edges)
    degree = xp.sum(edges, axis=-1)
    # the Laplacian alone is singular: potentials are known up to a constant
    least = 4 * eps(d) * xp.max(degree, axis=-1, keepdims=True)
    raised = degree + least + damping + float(xp.finfo(d.dtype).smallest_normal)
    laplacian = xp.where(is_diagonal, raised[..., None] + xp.zeros_like(edges), -edges)
    is_finite = xp.all(xp.isfinite(laplacian), axis=(-2, -1), keepdims=True)
    unit = xp.astype(is_diagonal, d.dtype) + xp.zeros_like(laplacian)
    rest = q - _column_sum(share * r[..., None])
    # rows without an answer must not stop the others: NumPy refuses a singular matrix
    beta = xp.linalg.solve(xp.where(is_finite, laplacian, unit), rest[..., None])[..., 0]
    beta = beta - xp.mean(beta, axis=-1, keepdims=True)
    alpha = (r - xp.sum(d * beta[..., None, :], axis=-1)) / safe
    return xp.where(row > 0, alpha, xp.zeros_like(alpha)), beta


def tangent(d: Array, w: Array) -> Array:
    """The derivative of P along w: d ⊙ (w − α − β), which leaves all sums as they are."""
    xp = namespace(d)
    for _ in range(2):  # the second time for the digits that the raised diagonal costs
        weighted = d * w
        alpha, beta = solve_sums(d, xp.sum(weighted, axis=-1), _column_sum(weighted))
        w = w - alpha[..., None] - beta[..., None, :]
    return d * w


class _Problem(NamedTuple):
    entries: Entries
    theta: Array
    a: Array
    b: Array

    def shifted(self, v: Array, scale: Array) -> Array:
        """θ − v."""
        return scale[..., None, None] * self.theta - v[..., None, :]

    def dual(self, p: Array, u: Array, v: Array) -> tuple[Array, Array]:
        """φ, and how large its rounding error may be."""
        xp = namespace(p)
        parts = [self.entries.dual(p), (self.a * u)[..., None, :], (self.b * v)[..., None, :]]
        value = sum(xp.sum(part, axis=(-2, -1)) for part in parts)
        size = sum(xp.sum(xp.abs(part), axis=(-2, -1)) for part in parts)
        return value, 8 * eps(p) * size

    def step(self, given: State) -> State:
        state = _State(*given)
        xp, u, v, scale, length = namespace(self.theta), *state[:4]
        is_whole = scale == 1
        s = self.shifted(v, scale) - u[..., None]
        p, d = self.entries.point(s)
        r, q = xp.sum(p, axis=-1) - self.a, _column_sum(p) - self.b
        error = xp.maximum(xp.max(xp.abs(r) / self.a, axis=-1), xp.max(xp.abs(q) / self.b, axis=-1))
        is_better = is_whole & (error < state.error)
        damping = _DAMPING * xp.clip(error, 0, 1) * xp.mean(_column_sum(d), axis=-1)
        alpha, beta = solve_sums(d, r, q, damping[..., None])
        slope = xp.sum(r * alpha, axis=-1) + xp.sum(q * beta, axis=-1)
        trial_v = v + length[..., None] * beta
        trial_s = self.shifted(trial_v, scale)
        trial_u = self.entries.row_potential(trial_s, self.a)
        now, rounding = self.dual(p, u, v)
        after, _ = self.dual(self.entries.point(trial_s - trial_u[..., None])[0], trial_u, trial_v)
        is_flat = slope <= rounding + eps(s) * xp.sum(self.a)
        is_taken = is_flat | (after <= now - _SUFFICIENT * length * slope + rounding)
        is_stuck = is_whole & is_flat & (error >= state.error / 2)
        patience = xp.where(is_stuck, state.patience - 1, state.patience)
        is_done = (is_whole & (error <= _EXACT * eps(s))) | (patience <= 0) | ~xp.isfinite(error)
        grows = ~is_whole & (error < _CLOSE)
        larger = xp.where(grows, xp.clip(_GROWTH * scale, 0, 1), scale)
        moves, ratio = (is_taken & ~is_done)[..., None], (larger / scale)[..., None]
        return _State(
            xp.where(moves, trial_u, u) * ratio,
            xp.where(moves, trial_v, v) * ratio,
            larger,
            xp.where(is_taken | grows, xp.clip(2 * length, 0, 1), length * _CUT),
            patience,
            xp.where(is_better[..., None], u, state.best_u),
            xp.where(is_better[..., None], v, state.best_v),
            xp.where(is_better, error, state.error),
            ~is_done & (length > eps(s)),
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
    problem = _Problem(entries, theta, a, b)
    size = -xp.min(theta, axis=(-2, -1))
    one = xp.ones_like(size)
    scale = xp.clip(_FIRST_RANGE / xp.where(size > 0, size, one), 0, 1)
    v = entries.first_potential(scale[..., None, None] * theta, a, b)
    u = entries.row_potential(problem.shifted(v, scale), a)
    start = _State(u, v, scale, one, _PATIENCE * one, u, v, xp.inf * one, one == one)
    found = _State(*iterate(problem.step, start, MAX_STEPS))
    s = problem.shifted(found.best_v, one) - found.best_u[..., None]
    has_converged = found.error <= _ROUNDING * eps(theta) * (len(a) + len(b) + size)
    is_nan = xp.any(xp.isnan(theta), axis=(-2, -1))
    if is_concrete(theta) and not bool(xp.all(has_converged | is_nan)):
        worst = float(xp.max(xp.where(is_nan, xp.zeros_like(size), found.error)))
        status = PotentialStatus.STALLED
        raise ConvergenceError(status, status.value.format(error=worst))
    return xp.where(has_converged[..., None, None], s, xp.nan)
