r"""The sparsemax and the Fitzpatrick sparsemax loss, without a sort and without a full Newton pass.

With x = θ (sparsemax) or x = θ + y (its Fitzpatrick twin) and T = 1 or 2, both maximisers are
:math:`p = (x - \tau)_+ / T` with :math:`\sum_i (x_i - \tau)_+ = T`, and both losses are

.. math:: \sum_i \tfrac{T}{2} (y_i - p_i)^2 + y_i (\tau - x_i)_+ .

Any part of a row gives a lower bound of τ: the maximum alone gives max x − T, and the maxima of
some hundred interleaved *lanes* of the row come close to τ. The few entries above the bound are
gathered, and Newton's method on them ends in finitely many steps. Entries with y > 0 are kept
apart from the start. Blocks in which most entries are above the bound are treated as a whole.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ._blocks import LARGE_BLOCK_BYTES, FloatArray, IntArray, Scratch, pieces, row_dot
from ._rows import CoreRows, Rows
from ._targets import DenseTargets, Labels, SparseTargets, Support, support_of

if TYPE_CHECKING:
    from ..losses import Loss

# Shorter rows are treated as a whole.
_LEAST_LENGTH = 256
# Entries of a row that are looked at to see how many are within T of the maximum, and the share of
# them from which a better bound pays.
_SAMPLE, _LANES_SHARE = 32, 0.02
# Lanes of a row, and how many Newton steps are taken on their maxima.
_LANES, _LANE_STEPS = 64, 3
# A larger share of positive targets, or of entries above the guess, is treated as a whole.
_DENSE_SHARE = 0.25
# Dense targets need several arrays of the size of a block.
_DENSE_BYTES = 1 << 20
# More Newton steps than rows of any length need.
_MOST_STEPS = 200


@dataclass(frozen=True)
class SparsemaxRows(Rows[Labels | SparseTargets | DenseTargets]):
    """Targets of any form."""

    loss: "Loss"

    block_bytes: ClassVar[int] = LARGE_BLOCK_BYTES

    @property
    def _total(self) -> int:
        """T: how much (x − τ)₊ sums to."""
        return 2 if self.loss.is_fitzpatrick else 1

    @property
    def _core(self) -> CoreRows:
        return CoreRows(self.targets, self.loss)

    def evaluate(
        self,
        rows: slice,
        theta: FloatArray,
        value: FloatArray,
        gradient: FloatArray | None,
        scratch: Scratch,
    ) -> None:
        out = scratch.array("p", theta.shape, theta.dtype) if gradient is None else gradient
        if not self._solve(rows, theta, out, value, scratch):
            self._core.evaluate(rows, theta, value, gradient, scratch)

    def maximize(
        self, rows: slice, theta: FloatArray, y_star: FloatArray, scratch: Scratch
    ) -> None:
        if not self._solve(rows, theta, y_star, None, scratch):
            self._core.maximize(rows, theta, y_star, scratch)

    def curvature(self, rows: slice, theta: FloatArray, d: FloatArray, scratch: Scratch) -> None:
        if not self._solve(rows, theta, d, None, scratch):
            self._core.maximize(rows, theta, d, scratch)
        np.greater(d, 0, out=d, casting="unsafe")
        d /= self._total

    def _solve(
        self,
        rows: slice,
        theta: FloatArray,
        out: FloatArray,
        value: FloatArray | None,
        scratch: Scratch,
    ) -> bool:
        """Write the maximiser or, where a value is wanted, that and the gradient.

        False where the block holds NaN or infinite scores: the core knows what they mean.
        """
        if not isinstance(self.targets, DenseTargets):
            return self._solve_support(self.targets.support(rows), theta, out, value, scratch)
        for piece in pieces(rows, theta.shape[1], theta.itemsize, _DENSE_BYTES):
            inside = slice(piece.start - rows.start, piece.stop - rows.start)
            y = self.targets.dense(piece, scratch)
            args = theta[inside], out[inside], None if value is None else value[inside], scratch
            if np.count_nonzero(y) > _DENSE_SHARE * y.size:
                solved = self._solve_dense(y, *args)
            else:
                solved = self._solve_support(support_of(y), *args)
            if not solved:
                return False
        return True

    def _solve_support(
        self,
        own: Support,
        theta: FloatArray,
        out: FloatArray,
        value: FloatArray | None,
        scratch: Scratch,
    ) -> bool:
        total = self._total
        if not np.isfinite(theta.max(initial=0)):
            return False
        found = _threshold(theta, own, total, scratch)
        if found is not None:
            tau, top, others = found
            x = _entries(own, theta, top, total)
            q = others.y - others.spread(top)
            q -= others.spread(tau)
            np.maximum(q, 0, out=q)
            q /= total
            out.fill(0)
            others.scatter(out, q)
            q *= q
            spread_out = others.total(q)
        else:
            full = scratch.array("x", theta.shape, theta.dtype)
            top = np.maximum.reduce(theta, axis=1)
            np.subtract(theta, top[:, None], out=full)
            x = _entries(own, theta, top, total)
            own.scatter(full, x)
            highest = np.maximum(np.maximum.reduceat(x, own.starts), 0)
            whole = _newton_whole(full, highest, total, out)
            if whole is None:
                return False
            tau = whole
            own.scatter(out, 0)
            spread_out = row_dot(out, out)
        gap = x - own.spread(tau)
        p = np.maximum(gap, 0)
        p /= total
        if value is None:
            own.scatter(out, p)
            return True
        p -= own.y
        own.scatter(out, p)
        p *= p
        p *= total / 2
        p -= own.y * np.minimum(gap, 0)
        value[:] = own.total(p) + spread_out * (total / 2)
        return True

    def _solve_dense(
        self,
        y: FloatArray,
        theta: FloatArray,
        out: FloatArray,
        value: FloatArray | None,
        scratch: Scratch,
    ) -> bool:
        total = self._total
        x = scratch.array("x", theta.shape, theta.dtype)
        top = np.maximum.reduce(theta, axis=1)
        np.subtract(theta, top[:, None], out=x)
        if self.loss.is_fitzpatrick:
            x += y
        if not np.isfinite(top).all() or x.min(initial=0) == -np.inf:
            return False
        found = _threshold(x, None, total, scratch)
        if found is not None:
            tau, top, _ = found
            np.subtract(x, top[:, None], out=x)
            np.subtract(x, tau[:, None], out=out)
            np.maximum(out, 0, out=out)
            if total != 1:
                out /= total
        else:
            whole = _newton_whole(x, np.maximum.reduce(x, axis=1), total, out)
            if whole is None:
                return False
            tau = whole
        if value is None:
            return True
        np.subtract(x, tau[:, None], out=x)
        np.minimum(x, 0, out=x)
        below = row_dot(y, x)
        out -= y
        value[:] = row_dot(out, out) * (total / 2) - below
        return True


def _entries(own: Support, theta: FloatArray, top: FloatArray, total: int) -> FloatArray:
    """x = θ + (T − 1) y at the support, less ``top``: that first, or θ + y would round y away."""
    x = own.gather(theta) - own.spread(top)
    return x if total == 1 else x + own.y


def _threshold(
    x: FloatArray, own: Support | None, total: int, scratch: Scratch
) -> tuple[FloatArray, FloatArray, Support] | None:
    """τ of each row, less the highest of x in it; that; and the entries that may exceed τ.

    Args:
        x: the entries of all rows.
        own: where y is to be added. Those entries are left out of the result: their own place in
            it holds −∞.
        total: T.
        scratch: buffers.

    Returns:
        None where too many entries come near τ.
    """
    n, k = x.shape
    if k < _LEAST_LENGTH or not x.flags.c_contiguous:
        return None
    sample = x[:, :: k // _SAMPLE].T.copy()  # long columns sum faster
    peak = np.maximum.reduce(sample, axis=0)
    lowest = np.minimum.reduce(sample, axis=0)
    if np.all(np.add.reduce(sample, axis=0) / len(sample) - total / k <= lowest):
        return None  # all entries seem to be active
    near = np.count_nonzero(sample > peak - total) - n  # besides the peaks themselves
    if near > _LANES_SHARE * sample.size:
        top, least = _lane_bound(x, total)
    else:
        top = np.maximum.reduce(x, axis=1)
        least = top - total  # below that the highest entry alone exceeds T
    mask = scratch.array("mask", x.shape, np.bool_)
    np.greater(x, least[:, None], out=mask)
    if np.count_nonzero(mask) > _DENSE_SHARE * x.size:
        return None
    at = np.flatnonzero(mask)
    starts = np.searchsorted(at, np.arange(0, n * k, k))
    rows = np.repeat(np.arange(n), np.diff(starts, append=len(at)))
    z = x.reshape(-1)[at]
    others = Support(rows, at - rows * k, z, starts, k)
    replaced = None
    if own is not None:
        mark = scratch.zeros("mark", x.size, np.bool_)
        mark[own.flat] = True
        z[mark[at]] = -np.inf
        mark[own.flat] = False
        replaced = _entries(own, x, top, total), own
    columns = _as_columns(z - top[rows], rows, starts, replaced, scratch)
    return _newton(columns, least - top, total), top, others


def _as_columns(
    z: FloatArray,
    rows: IntArray,
    starts: IntArray,
    own: tuple[FloatArray, Support] | None,
    scratch: Scratch,
) -> FloatArray:
    """The entries of each row in a column of its own, filled up with −∞."""
    n = len(starts)
    counts = np.diff(starts, append=len(z))
    place = np.arange(len(z)) - starts[rows]
    height = counts
    if own is not None:
        values, support = own
        own_counts = np.diff(support.starts, append=len(values))
        own_place = np.arange(len(values)) + (counts - support.starts)[support.rows]
        height = counts + own_counts
    columns = scratch.array("columns", (int(height.max()), n), z.dtype)
    columns.fill(-np.inf)
    flat = columns.reshape(-1)
    flat[place * n + rows] = z
    if own is not None:
        flat[own_place * n + support.rows] = values
    return columns


def _lane_bound(x: FloatArray, total: int) -> tuple[FloatArray, FloatArray]:
    """The maximum of each row, and a lower bound of τ: that of the maxima of its lanes.

    A lane is every w-th entry. Newton's method increases to τ, and is stopped early.
    """
    n, k = x.shape
    length = k // (2 * _LANES)
    even = x[:, : 2 * length * _LANES].reshape(n, length, 2 * _LANES)
    pairs = np.maximum.reduce(even, axis=1)
    lanes = np.maximum(pairs[:, :_LANES], pairs[:, _LANES:]).T.copy()  # long columns sum faster
    top = np.maximum.reduce(lanes, axis=0)
    if k % (2 * _LANES):
        top = np.maximum(top, np.maximum.reduce(x[:, 2 * length * _LANES :], axis=1))
    lanes -= top
    tau = np.full(n, -float(total), dtype=x.dtype)
    above = np.empty_like(lanes)
    for _ in range(_LANE_STEPS):
        _newton_step(lanes, tau, total, above)
    # rounding must not drop an active entry
    slack = 8 * np.finfo(x.dtype).eps * (total + np.abs(top))
    return top, np.asarray(tau + top - slack)


def _newton_step(x: FloatArray, tau: FloatArray, total: int, above: FloatArray) -> FloatArray:
    """Move each column's τ towards Σ (x − τ)₊ = T, and return by how much."""
    np.subtract(x, tau, out=above)
    np.maximum(above, 0, out=above)
    step = np.add.reduce(above, axis=0)
    step -= total
    count = np.add.reduce((above > 0).view(np.uint8), axis=0, dtype=np.uint32)
    step /= np.maximum(count, 1)
    tau += step
    return np.asarray(step)


def _newton(columns: FloatArray, tau: FloatArray, total: int) -> FloatArray:
    """τ such that Σ (x − τ)₊ = T in each column, from a lower bound."""
    tolerance = np.finfo(tau.dtype).eps
    above = np.empty_like(columns)
    for _ in range(_MOST_STEPS):
        step = _newton_step(columns, tau, total, above)
        if not np.any(step > tolerance * (total + np.abs(tau))):
            break
    return tau


def _newton_whole(
    x: FloatArray, highest: FloatArray, total: int, out: FloatArray
) -> FloatArray | None:
    """The same with whole rows; (x − τ)₊ / T goes to ``out``. None where a row is not finite."""
    k = x.shape[1]
    sums = np.add.reduce(x, axis=1)
    if np.isnan(sums).any():
        return None
    tau = np.maximum((sums - total) / k, highest - total)
    if np.all(np.minimum.reduce(x, axis=1) >= tau):
        np.subtract(x, tau[:, None], out=out)
    else:
        tolerance = np.finfo(x.dtype).eps
        for _ in range(_MOST_STEPS):
            np.subtract(x, tau[:, None], out=out)
            np.maximum(out, 0, out=out)
            step = (np.add.reduce(out, axis=1) - total) / np.count_nonzero(out, axis=1)
            tau += step
            if not np.any(step > tolerance * (total + np.abs(tau))):
                break
        np.subtract(x, tau[:, None], out=out)
        np.maximum(out, 0, out=out)
    if total != 1:
        out /= total
    return np.asarray(tau)
