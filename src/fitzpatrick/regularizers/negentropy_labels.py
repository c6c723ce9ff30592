r"""The losses of the negentropy at a hard label, in closed form.

For y = e_j the other classes act as one, with score :math:`\log\sum_{i \ne j} e^{\theta_i}`. With
the score difference d of the two and the tightness c,

.. math:: d = \log\sum_{i \ne j} e^{\theta_i} - \theta_j, \qquad
          c\,r = \omega(d - c + \log c), \qquad y^\star_j = \frac{1}{1 + r}, \qquad
          L_c = (1 - c) \log(1 + r) + c\,r,

where :math:`r = e^d` for c = 0. The others share what is left in the ratios of
:math:`e^{\theta_i}`: the cost of a soft argmax and a few functions of one number per row.
"""

import math
from dataclasses import dataclass

from .._array import Array, coupled_product, namespace, row_max, row_sum
from ..special import sigmoid, softplus, wright_omega
from ._base import Shard, Solution, at_labels, mark_labels


@dataclass(frozen=True, eq=False)
class NegentropyLabelSolution(Solution):
    """The loss, the probability p_j and its slope, and what the other classes have."""

    is_label: Array
    loss: Array
    at_label: Array
    label_slope: Array
    share: Array
    rest: Array

    @property
    def y_star(self) -> Array:
        return namespace(self.rest).where(self.is_label, self.at_label, self.rest)

    def value(self) -> Array:
        return self.loss[..., 0]

    def gradient(self) -> Array:
        return namespace(self.rest).where(self.is_label, -self.share, self.rest)

    def slope(self) -> Array:
        return namespace(self.rest).where(self.is_label, self.label_slope, self.rest)

    def hessian_product(self, v: Array) -> Array:
        return coupled_product(self.slope(), v)


def solve_negentropy_labels(labels: Array, theta: Array, tightness: float) -> Solution:
    """The solution at y = e_label; a class with score −∞ takes no part."""
    is_label = mark_labels(labels, theta)
    top = row_max(theta)
    weights = _weights(is_label, theta - top)
    lead = at_labels(theta, labels) - top
    return _solve(is_label, weights, lead, row_sum(weights), tightness)


def solve_negentropy_shard_labels(
    labels: Array, theta: Array, tightness: float, shard: Shard
) -> tuple[Array, Array]:
    """The loss and the gradient where ``theta`` holds a part of the classes."""
    xp = namespace(theta)
    is_label = shard.mark_labels(labels, theta)
    theta = theta - shard.max(row_max(theta))
    weights = _weights(is_label, theta)
    own_lead = row_sum(xp.where(is_label, theta, xp.zeros_like(theta)))
    sums = shard.sum(xp.concat([row_sum(weights), own_lead], axis=-1))
    solution = _solve(is_label, weights, sums[..., 1:], sums[..., :1], tightness)
    return solution.value(), solution.gradient()


def _weights(is_label: Array, shifted: Array) -> Array:
    """The weights exp(θ_i − max) of the classes i ≠ j, and 0 for the label."""
    xp = namespace(shifted)
    return xp.where(is_label, xp.zeros_like(shifted), xp.exp(shifted))


def _solve(
    is_label: Array, weights: Array, lead: Array, total: Array, tightness: float
) -> Solution:
    """The solution from the weights, their total, and by what the label leads the maximum."""
    xp = namespace(weights)
    difference = xp.log(total) - lead
    if tightness == 0:
        own = xp.exp(lead)
        p, share, rest = (part / (own + total) for part in (own, total, weights))
        return NegentropyLabelSolution(is_label, softplus(difference), p, p, share, rest)
    omega = wright_omega(difference - tightness + math.log(tightness))
    # log r in the form that keeps its digits
    log_r = xp.where(
        omega < 1,
        difference - tightness - omega,
        xp.log(xp.where(omega < 1, xp.ones_like(omega), omega)) - math.log(tightness),
    )
    p, share = sigmoid(-log_r), sigmoid(log_r)
    rest = weights * (share / xp.where(total == 0, xp.ones_like(total), total))
    return NegentropyLabelSolution(
        is_label, _loss(omega, log_r, tightness), p, p / (1 + tightness + omega), share, rest
    )


def _loss(omega: Array, log_r: Array, tightness: float) -> Array:
    """(1 − c) log(1 + r) + c r, where c r = ω, as a sum of non-negative terms."""
    if tightness == 1:
        return omega
    xp = namespace(omega)
    logarithm = softplus(log_r)
    if tightness < 1:
        return (1 - tightness) * logarithm + omega
    excess = omega - tightness * logarithm
    excess = xp.where(excess > 0, excess, xp.zeros_like(excess))
    return xp.where(omega == xp.inf, omega, logarithm + excess)
