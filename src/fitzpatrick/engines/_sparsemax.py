r"""The sparsemax and the Fitzpatrick sparsemax loss, without a sort and without a full Newton pass.

With x = θ (sparsemax) or x = θ + y (its Fitzpatrick twin) and T = 1 or 2, both maximisers are
:math:`p = (x - \tau)_+ / T` with :math:`\sum_i (x_i - \tau)_+ = T`, and both losses are

.. math:: \sum_i \tfrac{T}{2} (y_i - p_i)^2 + y_i (\tau - x_i)_+ .

Any part of a row gives a lower bound of τ. The part taken here is the maximum of each of some
hundred *lanes*, every w-th entry of the row. Lanes below the bound hold no active entry; the few
others are gathered, and Newton's method on them ends in finitely many steps. Entries with y > 0
are kept apart from the start. Rows in which most lanes are active are treated as a whole.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ._blocks import FloatArray, Scratch, row_dot
from ._rows import CoreRows, Rows
from ._targets import DenseTargets, Labels, SparseTargets, Support, support_of

if TYPE_CHECKING:
    from ..losses import Loss

# Lanes of a row; shorter rows are treated as a whole.
_LANES = 128
_LEAST_LANE_LENGTH = 4
# Newton steps on the lanes' maxima, any number of which gives a bound: most of them on the maxima
# of groups of lanes.
_GROUPS = 32
_GROUP_STEPS, _LANE_STEPS = 4, 2
# A larger share of active lanes, or of positive targets, is treated as a whole.
_DENSE_SHARE = 0.25
# More Newton steps than rows of any length need.
_MOST_STEPS = 200


@dataclass(frozen=True)
class SparsemaxRows(Rows[Labels | SparseTargets | DenseTargets]):
    """Targets of any form."""

    loss: "Loss"

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
        if isinstance(self.targets, DenseTargets):
            y = self.targets.dense(rows, scratch)
            if np.count_nonzero(y) > _DENSE_SHARE * y.size:
                return self._solve_dense(y, theta, out, value, scratch)
            own = support_of(y)
        else:
            own = self.targets.support(rows)
        return self._solve_support(own, theta, out, value, scratch)

    def _solve_support(
        self,
        own: Support,
        theta: FloatArray,
        out: FloatArray,
        value: FloatArray | None,
        scratch: Scratch,
    ) -> bool:
        total = self._total
        lanes = _lane_maxima(theta)
        top = np.maximum.reduce(theta if lanes is None else lanes, axis=1)
        if not np.isfinite(top).all():
            return False
        x = own.gather(theta) - own.spread(top)
        if self.loss.is_fitzpatrick:
            x += own.y
        others = None
        if lanes is not None:
            lanes -= top[:, None]
            extra = (x, own) if self.loss.is_fitzpatrick else None
            bound = _bound(lanes, total, extra)
            others = _gather_lanes(theta, top, lanes, bound)
        if others is not None:
            z = others.y
            mark = scratch.zeros("mark", out.size, np.bool_)
            mark[own.flat] = True
            z[mark[others.flat]] = -np.inf
            mark[own.flat] = False
            tau = _newton([(x, own), (z, others)], bound, total)
            q = np.maximum(z - others.spread(tau), 0)
            q /= total
            out.fill(0)
            others.scatter(out, q)
            q *= q
            spread_out = others.total(q)
        else:
            full = scratch.array("x", theta.shape, theta.dtype)
            np.subtract(theta, top[:, None], out=full)
            own.scatter(full, x)
            highest = np.maximum(np.maximum.reduceat(x, own.starts), 0)
            tau = _newton_whole(full, highest, total, out)
            if tau is None:
                return False
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
        lanes = _lane_maxima(x)
        highest = np.maximum.reduce(x if lanes is None else lanes, axis=1)
        if not np.isfinite(highest).all() or x.min(initial=0) == -np.inf:
            return False
        others = None
        if lanes is not None:
            lanes -= highest[:, None]
            bound = _bound(lanes, total, None)
            others = _gather_lanes(x, highest, lanes, bound)
        if others is None:
            tau = _newton_whole(x, highest, total, out)
            if tau is None:
                return False
        else:
            tau = _newton([(others.y, others)], bound, total) + highest
            np.subtract(x, tau[:, None], out=out)
            np.maximum(out, 0, out=out)
            if total != 1:
                out /= total
        if value is None:
            return True
        # what is below τ: (τ − x)₊ = (τ − x) + T p
        np.subtract(x, tau[:, None], out=x)
        np.minimum(x, 0, out=x)
        below = row_dot(y, x)
        out -= y
        value[:] = row_dot(out, out) * (total / 2) - below
        return True


def _lane_maxima(theta: FloatArray) -> FloatArray | None:
    """The maximum of every w-th entry of each row, shape (r, w); None for short rows."""
    n, k = theta.shape
    length = k // _LANES
    if length < _LEAST_LANE_LENGTH or not theta.flags.c_contiguous:
        return None
    even = theta[:, : length * _LANES].reshape(n, length, _LANES)
    maxima = np.asarray(np.maximum.reduce(even, axis=1))
    tail = theta[:, length * _LANES :]
    if tail.shape[1]:
        head = maxima[:, : tail.shape[1]]
        np.maximum(head, tail, out=head)
    return maxima


def _bound(lanes: FloatArray, total: int, extra: tuple[FloatArray, Support] | None) -> FloatArray:
    """A lower bound of τ from entries whose row maximum is 0.

    ``extra`` holds the entries x = θ + y of the Fitzpatrick loss. The lanes may hold θ already, so
    that what they add to the sum is (x − τ)₊ − (x − y − τ)₊, which falls by one for each at most.
    """
    n = len(lanes)
    groups = np.maximum.reduce(lanes.reshape(n, -1, _GROUPS), axis=1)
    tau = np.full(n, -float(total), dtype=lanes.dtype)
    slopes = 0 if extra is None else np.bincount(extra[1].rows, minlength=n)
    for part, steps in ((groups, _GROUP_STEPS), (lanes, _LANE_STEPS)):
        above = np.empty_like(part)
        for _ in range(steps):
            np.subtract(part, tau[:, None], out=above)
            np.maximum(above, 0, out=above)
            excess = np.add.reduce(above, axis=1) - total
            if extra is not None:
                x, own = extra
                gap = x - own.spread(tau)
                excess += own.total(np.maximum(gap, 0) - np.maximum(gap - own.y, 0))
            tau += np.maximum(excess, 0) / (_count_positive(above) + slopes)
    # rounding must not drop an active entry
    return np.asarray(tau - 8 * np.finfo(lanes.dtype).eps * (total - tau))


def _count_positive(x: FloatArray) -> FloatArray:
    """How many entries of each row are positive; the number of entries is a multiple of 8."""
    bits = np.packbits(x > 0, axis=1)
    return np.asarray(np.add.reduce(np.bitwise_count(bits), axis=1, dtype=np.intp))


def _gather_lanes(
    x: FloatArray, top: FloatArray, lanes: FloatArray, bound: FloatArray
) -> Support | None:
    """The entries above the bound, less their row's maximum; None if they may be too many."""
    active = np.flatnonzero(lanes > bound[:, None])
    if len(active) > _DENSE_SHARE * lanes.size:
        return None
    n, k = x.shape
    row, first = np.divmod(active, lanes.shape[1])
    length = k // lanes.shape[1]
    flat = (row * k + first)[:, None] + np.arange(0, length * lanes.shape[1], lanes.shape[1])
    z = x.reshape(-1)[flat]
    z -= top[row][:, None]
    above = z > bound[row][:, None]
    flat, z = flat[above], z[above]
    ends = length * lanes.shape[1]
    if ends < k:
        tail = x[:, ends:] - top[:, None]
        rest = np.flatnonzero(tail > bound[:, None])
        row, first = np.divmod(rest, k - ends)
        flat = np.concatenate([flat, row * k + ends + first])
        z = np.concatenate([z, tail.reshape(-1)[rest]])
        order = np.argsort(flat, kind="stable")
        flat, z = flat[order], z[order]
    rows, columns = np.divmod(flat, k)
    return Support(rows, columns, z, np.searchsorted(rows, np.arange(n)), k)


def _newton(parts: list[tuple[FloatArray, Support]], tau: FloatArray, total: int) -> FloatArray:
    """τ such that Σ (x − τ)₊ = T over the entries of a row, from a lower bound."""
    tolerance = np.finfo(tau.dtype).eps
    for _ in range(_MOST_STEPS):
        excess, count = np.full_like(tau, -total), np.zeros_like(tau)
        for x, entries in parts:
            above = np.maximum(x - entries.spread(tau), 0)
            excess += entries.total(above)
            count += entries.total((above > 0).astype(tau.dtype))
        step = excess / count
        tau = tau + step
        if not np.any(step > tolerance * np.abs(tau)):
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
            if not np.any(step > tolerance * np.abs(tau)):
                break
        np.subtract(x, tau[:, None], out=out)
        np.maximum(out, 0, out=out)
    if total != 1:
        out /= total
    return tau
