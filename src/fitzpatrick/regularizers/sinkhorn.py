r"""The negentropy on matrices with given row and column sums.

At tightness 0 the link is Sinkhorn's matrix scaling, :math:`P_{ij} = e^{\theta_{ij} - u_i - v_j}`.
At the tightness c it is :math:`P = c\,y / \omega(\log(c\,y) - (\theta - u - v))`, entry by entry as
on the simplex. Targets and maximizer share their sums, so that the loss is a sum over entries as
well: the Kullback-Leibler divergence for c = 0 and :math:`\chi^2(Y \| P)` for c = 1.
"""

from dataclasses import dataclass
from typing import Any

from .._array import Array, namespace
from .._root import newton_step, solve_tau
from ..sets import Flat
from ..sets.potentials import Entries, solve_potentials, tangent
from ._base import Elementwise, PointSolution, Solution

# Sweeps of Sinkhorn's algorithm before Newton's method.
_SWEEPS = 8


@dataclass(frozen=True, eq=False)
class EntropyEntries(Entries):
    """The formulas of the simplex at targets y, without its τ."""

    kernel: Any  # with its y and its tightness

    def point(self, s: Array) -> tuple[Array, Array]:
        p, d = self.kernel.point(s)
        return p, d

    def dual(self, p: Array) -> Array:
        # p + c y log p
        xp, y, c = namespace(p), self.kernel.y, self.kernel.tightness
        return p if c == 0 else p + c * y * xp.log(xp.where((y > 0) & (p > 0), p, 1.0))

    def first_potential(self, s: Array, a: Array, b: Array) -> Array:
        xp = namespace(s)
        weights = xp.exp(s)  # of a range that cannot overflow
        transposed = xp.matrix_transpose(weights)
        g = xp.ones_like(s[..., 0, :, None])
        for _ in range(_SWEEPS):
            g = b[:, None] / (transposed @ (a[:, None] / (weights @ g)))
        return -xp.log(g[..., 0])

    def row_potential(self, s: Array, a: Array) -> Array:
        a = a[:, None]

        def shares(u: Array) -> tuple[Array, Array]:
            p, d = self.kernel.point(s - u)
            return p / a, d / a

        u = self.kernel.start(s) - namespace(s).log(a)
        steps = self.kernel.steps(s)
        if steps:
            u = solve_tau(shares, u, self.kernel.power, steps)
            u = u + newton_step(*shares(u), self.kernel.power)
        return u[..., 0]


def solve_matrices(kernel: Elementwise, y: Array, theta: Array, domain: Flat) -> Solution:
    """The solution at vectors y and θ, for the kernel of the matrices of y: s = θ − u − v."""
    matrices: Any = domain.matrices  # Birkhoff() or Transport(), which the negentropy checks
    scores = domain.unfold(theta)
    entries = EntropyEntries(kernel)
    s = solve_potentials(entries, scores, *matrices.marginals(scores))
    p, d = entries.point(s)
    return PointSolution(
        y,
        domain.fold(p),
        lambda: namespace(s).sum(kernel.terms(s), axis=(-2, -1)),
        lambda v: domain.fold(tangent(d, domain.unfold(v))),
    )
