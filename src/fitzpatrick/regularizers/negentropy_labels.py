r"""The two losses of the negentropy at a hard label, in closed form.

For y = e_j the other classes act as one, with score :math:`\log\sum_{i \ne j} e^{\theta_i}`. With
the score difference d of the two and the Wright omega function :math:`\omega = \omega(d - 1)`,

.. math:: d = \log\sum_{i \ne j} e^{\theta_i} - \theta_j, \qquad
          L_{FY} = \log(1 + e^d), \quad \hat y_j = \frac{1}{1 + e^d}, \qquad
          L_F = \omega, \quad y^\star_j = \frac{1}{1 + \omega},

and the others share what is left in the ratios of :math:`e^{\theta_i}`: the cost of a soft argmax
and a few functions of one number per row.
"""

from dataclasses import dataclass

from .._array import Array, namespace, row_max, row_sum
from ..special import softplus, wright_omega
from ._base import LabelSolution, at_labels, mark_labels


@dataclass(frozen=True, eq=False)
class _Others:
    """The weight exp(θ_j − max) of the label, those of the classes i ≠ j, their sum, and d."""

    is_label: Array
    own: Array
    weights: Array
    total: Array
    difference: Array

    def split(self, share: Array) -> Array:
        """What each gets of the probability ``share``; 0 at the label."""
        xp = namespace(share)
        return self.weights * (share / xp.where(self.total == 0, xp.ones_like(share), self.total))


def _others(labels: Array, theta: Array) -> _Others:
    xp = namespace(theta)
    is_label = mark_labels(labels, theta)
    top = row_max(theta)
    weights = xp.where(is_label, xp.zeros_like(theta), xp.exp(theta - top))
    total = row_sum(weights)
    lead = at_labels(theta, labels) - top
    return _Others(is_label, xp.exp(lead), weights, total, xp.log(total) - lead)


@dataclass(frozen=True, eq=False)
class NegentropyLabelSolution(LabelSolution):
    """The loss, the probability p_j and its slope, and what the other classes have."""

    is_label: Array
    loss: Array
    at_label: Array
    slope: Array
    share: Array
    rest: Array

    @property
    def y_star(self) -> Array:
        return namespace(self.rest).where(self.is_label, self.at_label, self.rest)

    def value(self) -> Array:
        return self.loss[..., 0]

    def gradient(self) -> Array:
        return namespace(self.rest).where(self.is_label, -self.share, self.rest)

    def hessian_product(self, v: Array) -> Array:
        d = namespace(v).where(self.is_label, self.slope, self.rest)
        return d * (v - row_sum(d * v) / row_sum(d))


def solve_logistic_labels(labels: Array, theta: Array) -> LabelSolution:
    """The Fenchel-Young solution at y = e_label; a class with score −∞ takes no part."""
    others = _others(labels, theta)
    total = others.own + others.total
    p, share, rest = (part / total for part in (others.own, others.total, others.weights))
    loss = softplus(others.difference)
    return NegentropyLabelSolution(others.is_label, loss, p, p, share, rest)


def solve_fitzpatrick_logistic_labels(labels: Array, theta: Array) -> LabelSolution:
    """The Fitzpatrick solution at y = e_label; a class with score −∞ takes no part."""
    xp = namespace(theta)
    others = _others(labels, theta)
    omega = wright_omega(others.difference - 1)
    p = 1 / (1 + omega)
    # two forms of one number, without overflow in 1/ω and without ∞/∞
    share = xp.where(omega < 1, omega * p, 1 / (1 + 1 / omega))
    slope = p / (2 + omega)  # p²/(p + y)
    return NegentropyLabelSolution(others.is_label, omega, p, slope, share, others.split(share))
