r"""The negative Shannon entropy on the simplex (logistic) or on the orthant (Poisson).

Both losses are divergences between y and the maximiser p, sums of non-negative terms:

.. math:: L_{FY} = \sum_i y_i \log(y_i / p_i) - y_i + p_i, \qquad
          L_F = \sum_i (p_i - y_i)^2 / p_i,

the Kullback-Leibler and the χ² divergence. With s = θ − τ, the Fenchel-Young maximiser is
:math:`e^s` and the Fitzpatrick one

.. math:: p = y / \omega = e^{s + \omega}, \qquad \omega = \omega(\log y - s),

with the Wright omega function; ω = 0 and :math:`p = e^s` where y = 0.
"""

from dataclasses import dataclass

from .._array import Array, namespace, precision_bits
from ..sets import ConvexSet, Orthant, Simplex
from ..special import expm1_minus_x, logsumexp, wright_omega
from ._base import Elementwise, LabelSolution, SeparableRegularizer, check_domain
from .negentropy_labels import solve_fitzpatrick_logistic_labels, solve_logistic_labels

# Newton steps for τ, by bits of precision: one more than was ever needed in a search over
# supports, sizes and score scales.
_STEPS = {53: 6, 24: 4}


def kl_terms(y: Array, log_p: Array, p: Array) -> Array:
    """Entries y log(y/p) − y + p ≥ 0; p where y = 0 or p = ∞, and +∞ where p = 0 < y."""
    xp = namespace(y)
    one = xp.ones_like(y)
    ratio = log_p - xp.log(xp.where(y > 0, y, one))  # log(p/y)
    near = xp.abs(ratio) < 0.5
    close = y * expm1_minus_x(xp.where(near, ratio, xp.zeros_like(ratio)))
    apart = p - y - y * ratio
    return xp.where((y > 0) & (p < xp.inf), xp.where(near, close, apart), p)


@dataclass(frozen=True, eq=False)
class LogisticKernel(Elementwise):
    """p = exp(s), on the simplex and on the orthant alike."""

    y: Array

    power = 0.0

    def start(self, theta: Array) -> Array:
        return logsumexp(theta)

    def steps(self, theta: Array) -> int:
        return 0  # the start is the root

    def point(self, s: Array) -> tuple[Array, Array]:
        p = namespace(s).exp(s)
        return p, p

    def terms(self, s: Array) -> Array:
        return kl_terms(self.y, s, namespace(s).exp(s))


@dataclass(frozen=True, eq=False)
class FitzpatrickLogisticKernel(Elementwise):
    """p = y / ω(log y − s), with s less by one where no τ absorbs the constant."""

    y: Array
    log_y: Array
    offset: float

    power = 0.0

    def start(self, theta: Array) -> Array:
        # p >= exp(s), so that Σ p >= 1 there
        return logsumexp(theta)

    def steps(self, theta: Array) -> int:
        return _STEPS[precision_bits(theta)]

    def _omega_and_point(self, s: Array) -> tuple[Array, Array]:
        xp = namespace(s)
        s = s - self.offset
        # y = 0 has ω = 0 even where a masked class has s = −∞ as well
        z = xp.where(self.y > 0, self.log_y - s, xp.full_like(s, -xp.inf))
        omega = wright_omega(z)
        # Two forms of one number: the first keeps its digits for small ω, the second for large.
        # Near ω = 1 the second also rounds to the side of y that ω is on.
        return omega, xp.where(omega < 0.5, xp.exp(s + omega), self.y / omega)

    def point(self, s: Array) -> tuple[Array, Array]:
        omega, p = self._omega_and_point(s)
        return p, p / (1 + omega)

    def terms(self, s: Array) -> Array:
        # (p − y)² / p = (p − y)(1 − ω), a product of two numbers of one sign
        omega, p = self._omega_and_point(s)
        return (p - self.y) * (1 - omega)


@dataclass(frozen=True)
class Negentropy(SeparableRegularizer):
    r"""Negative Shannon entropy, on the simplex or on the non-negative orthant.

    On the simplex :math:`\Omega(y) = \sum_i y_i \log y_i`, with the soft argmax as link, the
    logistic loss as Fenchel-Young loss and the Fitzpatrick logistic loss (paper, Fitzpatrick
    logistic loss) :math:`L_F = \sum_i (y^\star_i - y_i)^2 / y^\star_i`, where
    :math:`y^\star_i = y_i / \omega(\lambda - \theta_i + \log y_i)` sums to one.

    On the orthant :math:`\Omega(y) = \sum_i y_i \log y_i - y_i`, with the exponential as link and
    the Poisson deviance (halved) as Fenchel-Young loss.

    Args:
        domain: ``Simplex()`` (the default) or ``Orthant()``.

    Example:
        >>> import numpy as np
        >>> import fitzpatrick as fp
        >>> omega = Negentropy()
        >>> omega.link(np.log(np.asarray([1.0, 1.0, 2.0])))
        array([0.25, 0.25, 0.5 ])
        >>> y, theta = np.asarray([1.0, 0.0]), np.asarray([0.0, 1.0])
        >>> fp.FenchelYoungLoss(omega).value(y, theta)  # log(1 + e)
        np.float64(1.3132616875182228)
        >>> fp.FitzpatrickLoss(omega).value(y, theta)  # ω(0) = W(1)
        np.float64(0.567143290409783...)
    """

    domain: ConvexSet = Simplex()

    def __post_init__(self) -> None:
        check_domain("Negentropy", self.domain, (Simplex, Orthant))

    @property
    def _is_simplex(self) -> bool:
        return isinstance(self.domain, Simplex)

    def potential(self, y: Array) -> Array:
        xp = namespace(y)
        entropy = y * xp.log(xp.where(y > 0, y, xp.ones_like(y)))
        return xp.sum(entropy if self._is_simplex else entropy - y, axis=-1)

    def potential_gradient(self, z: Array) -> Array:
        return namespace(z).log(z)

    def potential_curvature(self, z: Array, v: Array) -> Array:
        xp = namespace(z)
        return xp.sum(xp.where(v == 0, xp.zeros_like(v), v * v / z), axis=-1)

    def solve_conjugate(self, theta: Array) -> Array:
        xp = namespace(theta)
        return logsumexp(theta)[..., 0] if self._is_simplex else xp.sum(xp.exp(theta), axis=-1)

    def fenchel_young_kernel(self, y: Array) -> Elementwise:
        return LogisticKernel(y)

    def fitzpatrick_kernel(self, y: Array) -> Elementwise:
        offset = 0.0 if self._is_simplex else 1.0
        return FitzpatrickLogisticKernel(y, namespace(y).log(y), offset)

    def solve_fenchel_young_labels(self, labels: Array, theta: Array) -> LabelSolution:
        return solve_logistic_labels(labels, theta)

    def solve_fitzpatrick_labels(self, labels: Array, theta: Array) -> LabelSolution:
        return solve_fitzpatrick_logistic_labels(labels, theta)
