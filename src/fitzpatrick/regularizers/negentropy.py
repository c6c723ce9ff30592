r"""The negative Shannon entropy on the simplex (logistic) or on the orthant (Poisson).

With s = θ − τ and the tightness c, the maximizer is

.. math:: p = c\,y / \omega = e^{s + \omega}, \qquad \omega = \omega(\log c + \log y - s),

with the Wright omega function; ω = 0 and :math:`p = e^s` where c y = 0. On the orthant, where no τ
absorbs constants, s is less by c. With ρ = log(p/y) and :math:`E(x) = e^x - 1 - x \ge 0`,

.. math:: L_c = \sum_i y_i \, (E(\rho_i) + c\,E(-\rho_i)),

where an entry with y = 0 counts p: the Kullback-Leibler divergence for c = 0 and the χ² divergence
:math:`\sum_i (p_i - y_i)^2 / p_i` for c = 1.

A hard label y = e_j has a closed form on the simplex, since the other classes act as one, with
score :math:`\log\sum_{i \ne j} e^{\theta_i}`. With the score difference d of the two,

.. math:: d = \log\sum_{i \ne j} e^{\theta_i} - \theta_j, \qquad
          c\,r = \omega(d - c + \log c), \qquad y^\star_j = \frac{1}{1 + r}, \qquad
          L_c = (1 - c) \log(1 + r) + c\,r,

where :math:`r = e^d` for c = 0. The others share what is left in the ratios of
:math:`e^{\theta_i}`: the cost of a soft argmax and a few functions of one number per row.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .._array import Array, coupled_product, inner, namespace, precision_bits, row_max, row_sum
from ..sets import Birkhoff, ConvexSet, Flat, Orthant, Simplex, Transport
from ..special import expm1_minus_x, logsumexp, sigmoid, softplus, wright_omega
from ._base import (
    Elementwise,
    PointSolution,
    SeparableRegularizer,
    Shard,
    Solution,
    at_labels,
    check_domain,
    check_vectors,
    mark_labels,
)
from ._probabilities import negentropy_probabilities
from .chain import EntropyChain, solve_chain
from .sinkhorn import solve_matrices

# Newton steps for τ at c <= 1, by bits of precision: one more than was ever needed in a search
# over supports, sizes and score scales.
_STEPS = {53: 6, 24: 4}


def kl_terms(y: Array, log_p: Array, p: Array) -> Array:
    """Entries y log(y/p) − y + p ≥ 0; p where y = 0 or p = ∞, and +∞ where p = 0 < y."""
    xp = namespace(y)
    return entropy_terms(y, log_p - xp.log(xp.where(y > 0, y, 1.0)), p, 0.0)


def entropy_terms(y: Array, rho: Array, p: Array, tightness: float) -> Array:
    """Entries y (E(ρ) + c E(−ρ)) with ρ = log(p/y), and p where y = 0."""
    xp = namespace(y)
    near = xp.abs(rho) < 0.5
    close = y * expm1_minus_x(xp.where(near, rho, 0.0))
    terms = xp.where(near, close, p - y - y * rho)
    if tightness > 0:
        reverse = expm1_minus_x(-xp.where(rho == -xp.inf, 0.0, rho))
        reverse = xp.where(rho == -xp.inf, xp.inf, reverse)
        terms = terms + tightness * y * reverse
    return xp.where((y > 0) & (p < xp.inf), terms, p)


@dataclass(frozen=True, eq=False)
class SoftmaxFormulas(Elementwise):
    """Tightness 0: p = exp(s), on the simplex and on the orthant alike."""

    y: Array
    tightness = 0.0

    def start(self, theta: Array) -> Array:
        return logsumexp(theta)

    def steps(self, theta: Array) -> int:
        return 0  # the start is the root

    def point(self, s: Array) -> tuple[Array, Array]:
        p = namespace(s).exp(s)
        return p, p

    def level(self, p: Array) -> Array:
        """s where the maximizer is p."""
        return namespace(p).log(p)

    def terms(self, s: Array) -> Array:
        return kl_terms(self.y, s, namespace(s).exp(s))


@dataclass(frozen=True, eq=False)
class OmegaFormulas(Elementwise):
    """Tightness c > 0: p = c y / ω(log c + log y − s), with s less by an offset."""

    y: Array
    log_y: Array
    tightness: float
    offset: float

    def start(self, theta: Array) -> Array:
        # p >= exp(s), so that Σ p >= 1 there
        return logsumexp(theta) - self.offset

    def steps(self, theta: Array) -> int:
        # the interval that τ lies in is as long as c
        more = math.ceil(math.log2(max(self.tightness, 1.0)) / 2)
        return _STEPS[precision_bits(theta)] + more

    def _omega_and_point(self, s: Array) -> tuple[Array, Array]:
        xp = namespace(s)
        log_cy = math.log(self.tightness) + self.log_y
        # y = 0 has ω = 0 even where a masked class has s = −∞ as well
        omega = wright_omega(xp.where(self.y > 0, log_cy - s, -xp.inf))
        # Two forms of one number: the first keeps its digits for small ω, the second for large.
        # Near ω = c = 1 the second also rounds to the side of y that ω is on.
        return omega, xp.where(omega < 0.5, xp.exp(s + omega), self.tightness * self.y / omega)

    def point(self, s: Array) -> tuple[Array, Array]:
        omega, p = self._omega_and_point(s - self.offset)
        return p, p / (1 + omega)

    def level(self, p: Array) -> Array:
        """s where the maximizer is p."""
        return namespace(p).log(p) - self.tightness * self.y / p + self.offset

    def terms(self, s: Array) -> Array:
        xp, c = namespace(s), self.tightness
        omega, p = self._omega_and_point(s - self.offset)
        if c == 1:
            # (p − y)² / p = (p − y)(1 − ω), a product of two numbers of one sign
            return (p - self.y) * (1 - omega)
        # log(p/y) in two forms, as p
        is_small = omega < 0.5
        safe = xp.where(is_small, 1.0, omega)
        distance = s - self.log_y
        rho = xp.where(is_small, distance - self.offset + omega, math.log(c) - xp.log(safe))
        if self.offset > 1:
            # p is near y, and a step for ρ + c (1 − e^(−ρ)) = s − log y finds the digits of ρ
            fall = xp.expm1(-rho)
            step = (rho - c * fall - distance) / (1 + c * (1 + fall))
            rho = rho - xp.where(xp.isfinite(step), step, 0.0)
        return entropy_terms(self.y, rho, p, c)


def _solve_labels(
    is_label: Array, weights: Array, lead: Array, total: Array, tightness: float
) -> Solution:
    """The solution at y = e_label; a class with score −∞ takes no part.

    Args:
        is_label: the mask of the labels.
        weights: exp(θ_i − max) of the classes i ≠ j, and 0 for the label.
        lead: by what the label leads the maximum.
        total: Σ weights.
        tightness: c.
    """
    xp = namespace(weights)
    difference = xp.log(total) - lead
    if tightness == 0:
        own = xp.exp(lead)
        # p of the label, what the others have together, and each of them
        p, share, rest = (part / (own + total) for part in (own, total, weights))
        label_slope, loss = p, softplus(difference)
    else:
        omega = wright_omega(difference - tightness + math.log(tightness))
        # log r in the form that keeps its digits
        log_r = xp.where(
            omega < 1,
            difference - tightness - omega,
            xp.log(xp.where(omega < 1, 1.0, omega)) - math.log(tightness),
        )
        p, share = sigmoid(-log_r), sigmoid(log_r)
        rest = weights * (share / xp.where(total == 0, 1.0, total))
        label_slope, loss = p / (1 + tightness + omega), _label_loss(omega, log_r, tightness)

    def slope() -> Array:
        return xp.where(is_label, label_slope, rest)

    return PointSolution(
        is_label,
        xp.where(is_label, p, rest),
        lambda: loss[..., 0],
        lambda v: coupled_product(slope(), v),
        slope,
        own_gradient=xp.where(is_label, -share, rest),
    )


def _label_loss(omega: Array, log_r: Array, tightness: float) -> Array:
    """(1 − c) log(1 + r) + c r, where c r = ω, as a sum of non-negative terms."""
    if tightness == 1:
        return omega
    xp = namespace(omega)
    logarithm = softplus(log_r)
    if tightness < 1:
        return (1 - tightness) * logarithm + omega
    # c (r − log(1 + r)), by a series where r is small
    near = logarithm < 0.5
    series = tightness * expm1_minus_x(xp.where(near, logarithm, 0.0))
    excess = xp.where(near, series, omega - tightness * logarithm)
    return xp.where(omega == xp.inf, omega, logarithm + excess)


@dataclass(frozen=True)
class Negentropy(SeparableRegularizer):
    r"""Negative Shannon entropy, on the simplex or on the non-negative orthant.

    On the simplex :math:`\Omega(y) = \sum_i y_i \log y_i`, with the soft argmax as link, the
    logistic loss as Fenchel-Young loss and the Fitzpatrick logistic loss (paper, Fitzpatrick
    logistic loss) :math:`L_F = \sum_i (y^\star_i - y_i)^2 / y^\star_i`, where
    :math:`y^\star_i = y_i / \omega(\lambda - \theta_i + \log y_i)` sums to one.

    On the orthant :math:`\Omega(y) = \sum_i y_i \log y_i - y_i`, with the exponential as link and
    the Poisson deviance (halved) as Fenchel-Young loss.

    On matrices with given row and column sums, :math:`\Omega(Y) = \sum_{ij} Y_{ij} \log Y_{ij}`,
    with Sinkhorn's matrix scaling as link. Its Fitzpatrick loss is :math:`\chi^2(Y \| Y^\star)`.
    The potentials are found by Newton's method, for scores of up to 1e4 and often beyond; where it
    does not converge, it raises.

    Args:
        domain: ``Simplex()`` (the default), ``Orthant()``, ``Birkhoff()`` or ``Transport(a, b)``.

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
        >>> Negentropy(fp.sets.Birkhoff()).link(np.asarray([[1.0, 0.0], [0.0, 1.0]])).round(3)
        array([[0.731, 0.269],
               [0.269, 0.731]])
    """

    domain: ConvexSet = Simplex()
    has_kinks = False

    def __post_init__(self) -> None:
        domain = self.domain.matrices if isinstance(self.domain, Flat) else self.domain
        check_domain("Negentropy", domain, (Simplex, Orthant, Birkhoff, Transport))

    @property
    def entmax_alpha(self) -> float | None:
        return 1.0 if type(self) is Negentropy and self.is_coupled else None

    def potential(self, y: Array) -> Array:
        xp = namespace(y)
        entropy = y * xp.log(xp.where(y > 0, y, 1.0))
        return xp.sum(entropy - y if self.is_entrywise else entropy, axis=-1)

    def potential_gradient(self, z: Array) -> Array:
        return namespace(z).log(z)

    def potential_curvature(self, z: Array, v: Array) -> Array:
        return inner(v, v / z)

    def solve_conjugate(self, theta: Array) -> Array:
        if self.is_coupled:
            return logsumexp(theta)[..., 0]
        if not self.is_entrywise:
            return super().solve_conjugate(theta)
        return namespace(theta).sum(namespace(theta).exp(theta), axis=-1)

    def solve(self, y: Array, theta: Array, tightness: float) -> Solution:
        check_vectors(self.domain)
        if not isinstance(self.domain, Flat):
            return super().solve(y, theta, tightness)
        kernel = self.kernel(self.domain.unfold(y), tightness)
        return solve_matrices(kernel, y, theta, self.domain)

    def kernel(self, y: Array, tightness: float) -> Elementwise:
        if tightness == 0:
            return SoftmaxFormulas(y)
        # where p is near y, so is s to log y, and has digits that τ cannot hold
        has_offset = self.is_entrywise or (tightness > 1 and self.domain == Simplex())
        offset = tightness if has_offset else 0.0
        return OmegaFormulas(y, namespace(y).log(y), tightness, offset)

    def slope(self, p: Array, y: Array, tightness: float) -> Array:
        if tightness == 0:
            return p
        # p²/(p + c y), without a square that may overflow
        safe = namespace(p).where(p > 0, p, 1.0)
        return p / (1 + tightness * y / safe)

    @property
    def chain(self) -> Callable[[Array, Array, int], Solution]:
        return partial(solve_chain, EntropyChain, self) if self.is_row_wise else super().chain

    def solve_probabilities(self, theta: Array, tightness: float) -> Array:
        if tightness == 0 or not self.is_coupled:
            return super().solve_probabilities(theta, tightness)
        return negentropy_probabilities(theta, tightness)

    def solve_labels(self, labels: Array, theta: Array, tightness: float) -> Solution:
        xp, top = namespace(theta), row_max(theta)
        is_label = mark_labels(labels, theta)
        weights = xp.where(is_label, 0.0, xp.exp(theta - top))
        lead = at_labels(theta, labels) - top
        return _solve_labels(is_label, weights, lead, row_sum(weights), tightness)

    def solve_shard_labels(
        self, labels: Array, theta: Array, tightness: float, shard: Shard
    ) -> tuple[Array, Array]:
        if not self.is_coupled:
            return super().solve_shard_labels(labels, theta, tightness, shard)
        xp = namespace(theta)
        is_label = shard.mark_labels(labels, theta)
        theta = theta - shard.max(row_max(theta))
        weights = xp.where(is_label, 0.0, xp.exp(theta))
        own_lead = row_sum(xp.where(is_label, theta, 0.0))
        sums = shard.sum(xp.concat([row_sum(weights), own_lead], axis=-1))
        solution = _solve_labels(is_label, weights, sums[..., 1:], sums[..., :1], tightness)
        return solution.value(), solution.gradient()
