r"""The stationary distribution of a chain of very many active classes, without its matrix.

From label j the chain goes to class i ≠ j with probability :math:`z(\theta_i - \tau_j)`, where z is
the maximizer at y = 0 and :math:`\tau_j` what makes the column sum to one. With
:math:`g_i = \sum_j q_j z(\theta_i - \tau_j)`, what is reached if nothing is added for staying, the
stationary distribution is :math:`q_i = g_i/(1 - \Delta_i)`, where :math:`\Delta_i` is the
probability of staying less :math:`z(\theta_i - \tau_i)`. The columns of z are nearly parallel, so
that this forgets where it started in a few steps.

The more classes are active, the closer are all :math:`\tau_j`. For a class that lies above them by
more than their range, z is interpolated in τ at a few Chebyshev nodes; the others, at the edge of
the support or with too wide a range of z, as high powers have, are summed one by one.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from .._array import Array, namespace

if TYPE_CHECKING:
    from ._base import SeparableRegularizer

# A function whose nearest singularity is a range away is interpolated to 5.8^−N.
_NODES = 22
# The least z of an interpolated class over its largest, which high powers would exceed.
_MIN_RATIO = 1e-3
_NEWTON_STEPS, _MAX_STEPS = 30, 1000
# Entries of a block of classes at the edge against all labels.
_BLOCK = 1 << 22


def wide_chain_probabilities(
    omega: "SeparableRegularizer", theta: Array, tightness: float
) -> Array:
    """Probabilities of one row of scores (k,), c > 0; NaN if no largest score is finite."""
    xp = namespace(theta)
    top = xp.max(theta)  # NaN if a score is
    if not bool(xp.isfinite(top)):
        return xp.full_like(theta, xp.nan)
    order = xp.argsort(theta, descending=True, stable=True)
    x = xp.take(theta, order) - top
    like = x[:1, None]
    zero = omega.zero_kernel(xp.zeros_like(like), tightness)
    one = omega.kernel(xp.ones_like(like), tightness)

    def tau_of(label: int) -> Array:
        labels = xp.full((1,), label, dtype=xp.int64, device=x.device)
        solution = omega.solve_labels(labels, x[None, :], tightness)
        return x[0] - solution.s[0, 0]  # type: ignore[attr-defined]  # a SeparableSolution

    # the lowest class that is reached has the lowest τ, which may reach further
    high, m, reached = tau_of(0), 0, 1
    while reached > m:
        m = reached
        low = tau_of(m - 1)
        reached = max(m, int(xp.sum(xp.astype(zero.point((x - low)[None, :])[0] > 0, xp.int64))))
    x = x[:m]
    grid = _Grid(x, low, high, zero.point)
    tau, leave = grid.roots(one.point)
    q = zero.point((x - high)[None, :])[0][0] + xp.finfo(x.dtype).eps
    q = q / xp.sum(q)
    columns = grid.basis(tau)
    for _ in range(_MAX_STEPS):
        reach = grid.sums(q, tau, columns) / leave
        reach = reach / xp.sum(reach)
        change, q = xp.max(xp.abs(reach - q)), reach
        if not bool(change > 4 * xp.finfo(x.dtype).eps * xp.max(q)):  # NaN ends, too
            break
    else:
        raise RuntimeError(f"the chain of {omega!r} at tightness {tightness:g} did not converge")
    q = xp.concat([q, xp.zeros_like(theta[m:])])
    return xp.take(q, xp.argsort(order))


class _Grid:
    """z at Chebyshev nodes between the lowest and the highest τ, for scores in falling order."""

    def __init__(
        self, x: Array, low: Array, high: Array, point: Callable[[Array], tuple[Array, Array]]
    ) -> None:
        self.xp = xp = namespace(x)
        self.x, self.low, self.point = x, low, point
        # where all scores are equal, any range does
        self.range = xp.maximum(high - low, 64 * xp.finfo(x.dtype).eps * (1 + xp.abs(high)))
        angles = [(2 * n + 1) * math.pi / (2 * _NODES) for n in range(_NODES)]
        nodes = xp.asarray([math.cos(a) for a in angles], dtype=x.dtype, device=x.device)
        self.nodes = low + self.range * (nodes + 1) / 2
        self.to_basis = xp.asarray(
            [
                [(1 if k == 0 else 2) / _NODES * math.cos(k * a) for a in angles]
                for k in range(_NODES)
            ],
            dtype=x.dtype, device=x.device,
        )  # fmt: skip
        above = point((x - high - self.range)[None, :])[0][0] > 0
        # an error of the largest value must not count beside the smallest
        most, least = (point((x - end)[None, :])[0][0] for end in (low, high))
        above = above & (least >= _MIN_RATIO * most)
        self.n_far = int(xp.sum(xp.astype(above, xp.int64)))
        # z and its slope of far classes at the nodes, (N, far)
        self.z, self.d = point(x[None, : self.n_far] - self.nodes[:, None])

    def basis(self, tau: Array) -> Array:
        """What each node counts at τ, shape (m, N)."""
        xp = self.xp
        angle = xp.acos(xp.clip(2 * (tau - self.low) / self.range - 1, -1.0, 1.0))
        degrees = xp.arange(_NODES, dtype=tau.dtype, device=tau.device)
        return xp.cos(angle[:, None] * degrees) @ self.to_basis

    def _edge(self, tau: Array) -> Array:
        """θ − τ of the classes at the edge against labels, in blocks of labels (b, edge)."""
        edge = self.x[self.n_far :]
        step = max(1, _BLOCK // max(1, edge.shape[0]))
        return [edge[None, :] - tau[i : i + step, None] for i in range(0, tau.shape[0], step)]

    def sums(self, q: Array, tau: Array, columns: Array) -> Array:
        """g of all classes; ``columns`` is the basis at τ."""
        xp = self.xp
        far = (q @ columns) @ self.z
        edge, at = xp.zeros_like(self.x[self.n_far :]), 0
        for s in self._edge(tau) if edge.shape[0] else ():
            edge = edge + q[at : at + s.shape[0]] @ self.point(s)[0]
            at += s.shape[0]
        return xp.concat([far, edge])

    def roots(self, own: Callable[[Array], tuple[Array, Array]]) -> tuple[Array, Array]:
        """τ and 1 − Δ of each label: Newton's method from below, where a column's sum is convex.

        A column sums to one, so that 1 − Δ is its sum with z in place of the own entry: a sum of
        positive numbers, which has all of its digits where the chain hardly ever leaves.
        """
        xp, x = self.xp, self.x
        tau, is_close = self.low + xp.zeros_like(x), False
        close = math.sqrt(float(xp.finfo(x.dtype).eps))
        totals = xp.sum(self.z, axis=1), xp.sum(self.d, axis=1)
        for _ in range(_NEWTON_STEPS):
            columns = self.basis(tau)
            p, d = columns @ totals[0], columns @ totals[1]
            if self.n_far < x.shape[0]:
                parts = [self.point(s) for s in self._edge(tau)]
                p = p + xp.concat([xp.sum(z, axis=1) for z, _ in parts])
                d = d + xp.concat([xp.sum(slope, axis=1) for _, slope in parts])
            s = (x - tau)[None, :]
            (own_p, own_d), (z, slope) = own(s), self.point(s)
            excess = p + (own_p - z)[0] - 1
            step = excess / (d + (own_d - slope)[0])
            tau = tau + step
            if is_close:  # the error of a step is the square of the one before
                return tau, p - step * d
            is_close = not bool(xp.max(xp.abs(step)) > close * (1 + xp.max(xp.abs(tau))))
        raise RuntimeError("the thresholds of the chain's columns did not converge")
