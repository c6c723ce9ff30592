r"""Losses of ½‖·‖² and of indicators, from the definition, in exact rational arithmetic.

The loss of tightness c is a supremum over p in C:

.. math::
    L_c(y, \theta) = \sup_p \, \Omega(y) - \Omega(p) - c D_\Omega(y, p)
                     + \langle p - y, \theta\rangle .

The subgradients of :math:`\Omega` at p are :math:`\nabla\Psi(p) + n`, with n in the normal cone of
C at p, and :math:`\langle y - p, n\rangle \le 0` for y in C, so n = 0 gives the divergence, which
is the least over the subgradients: :math:`\frac{w}{2}\|y - p\|^2` for :math:`\frac{w}{2}\|.\|^2`,
where w is 1, or 0 for an indicator, whose loss is the same for every c.
The objective is :math:`\langle a, p\rangle - \frac{m}{2}\|p\|^2` up to a constant, with
:math:`a = \theta + w c y` and :math:`m = w (1 + c)`; its maximizers are the p with
:math:`a - m p` in the normal cone of C at p. The inputs are floats, hence rationals, and on
polyhedra so is the maximizer: it is found exactly and certified by
:math:`\sup_{v \in C} \langle a - m p, v\rangle = \langle a - m p, p\rangle`.
The Euclidean ball needs one square root, taken in mpmath.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mpmath import mp

from .precision import Evaluation, Number, resolve

Row = Sequence[Fraction]


# The sets C, given by the KKT conditions on them.


@dataclass(frozen=True)
class Simplex:
    """p ≥ 0, Σp = 1."""

    def maximizer(self, a: Row, m: Fraction) -> tuple[list[Number], bool]:
        """argmax over p in C of ⟨a, p⟩ − (m/2)‖p‖², m ≥ 0, and whether no other point is one."""
        if m == 0:
            at = list(a).index(max(a))
            return [Fraction(int(i == at)) for i in range(len(a))], list(a).count(a[at]) == 1
        # KKT: m p_i = a_i − τ on the support, a_i ≤ τ off it; so the support is a set of
        # largest entries, and its size is the one whose τ separates it from the rest.
        ordered = sorted(a, reverse=True)
        total = Fraction(0)
        for size, entry in enumerate(ordered, start=1):
            total += entry
            tau = (total - m) / size
            if entry > tau and (size == len(a) or ordered[size] <= tau):
                return [max(entry - tau, Fraction(0)) / m for entry in a], True
        raise ArithmeticError("no support satisfies the KKT conditions")


@dataclass(frozen=True)
class Intervals:
    """lower ≤ p ≤ upper, entry by entry."""

    lower: float = -math.inf
    upper: float = math.inf

    def maximizer(self, a: Row, m: Fraction) -> tuple[list[Number], bool]:
        if m == 0:
            ends = {True: self.upper, False: self.lower}
            return [ends[entry > 0] if entry else Fraction(0) for entry in a], all(a)
        return [max(min(entry / m, self.upper), self.lower) for entry in a], True


REALS, ORTHANT, CUBE = Intervals(), Intervals(Fraction(0)), Intervals(Fraction(0), Fraction(1))


@dataclass(frozen=True)
class CrossPolytope:
    """Σ|p| ≤ 1."""

    def maximizer(self, a: Row, m: Fraction) -> tuple[list[Number], bool]:
        if m > 0 and sum(map(abs, a)) <= m:
            return [entry / m for entry in a], True
        # On the face Σ|p| = 1 the signs are those of a, and the sizes a point of the simplex.
        sizes, is_unique = Simplex().maximizer([abs(entry) for entry in a], m)
        signed = [-size if entry < 0 else size for size, entry in zip(sizes, a, strict=True)]
        return signed, is_unique and any(a)


@dataclass(frozen=True)
class Ball:
    """‖p‖ ≤ 1."""

    def maximizer(self, a: Row, m: Fraction) -> tuple[list[Number], bool]:
        square = _dot(a, a)
        if square <= m * m:  # a/m is in the ball, where the normal cone is {0}
            return [entry / m if m else Fraction(0) for entry in a], m > 0
        # On the sphere a − mp = μp with μ > 0, so p is a scaled to norm 1.
        return [mp.convert(entry) / mp.sqrt(square) for entry in a], True


Domain = Simplex | Intervals | CrossPolytope | Ball


@dataclass(frozen=True)
class QuadraticLoss:
    """The weight times ½‖·‖² on C: sparseMAP at tightness 0, or a perceptron of weight 0."""

    domain: Domain
    tightness: Fraction
    weight: int = 1

    def evaluate(self, y: Row, theta: Row, digits: int) -> Evaluation:
        """The loss at y in C, and the maximizer, which is exact on a polyhedron."""
        pull, m = self.weight * self.tightness, self.weight * (1 + self.tightness)
        a = [ti + pull * yi for yi, ti in zip(y, theta, strict=True)]

        def attempt() -> Evaluation:
            p, is_unique = self.domain.maximizer(a, m)
            value = self.objective(y, theta, p)
            if not isinstance(p[0], Fraction):
                # All points are in the unit ball, so no entry of p − y exceeds 2.
                magnitude = 4 * mp.convert(m) + 2 * mp.fsum(theta, absolute=True)
                return Evaluation(value, tuple(p), magnitude)
            normal = [ai - m * pi for ai, pi in zip(a, p, strict=True)]
            if _dot(normal, self.domain.maximizer(normal, Fraction(0))[0]) != _dot(normal, p):
                raise ArithmeticError("the KKT conditions do not hold at the maximizer")
            return Evaluation(value, tuple(p) if is_unique else None)

        return resolve(attempt, digits)

    def objective(
        self, y: Sequence[Number], theta: Sequence[Number], p: Sequence[Number]
    ) -> Number:
        """What the supremum is taken of, at any p in C: Ω(y) − Ω(p) − c D(y, p) + ⟨p − y, θ⟩."""
        c = self.tightness
        if not isinstance(p[0], Fraction):
            c, y, theta = mp.convert(c), *([mp.convert(x) for x in row] for row in (y, theta))
        gap = [pi - yi for pi, yi in zip(p, y, strict=True)]
        fall = _dot(y, y) - _dot(p, p) - c * _dot(gap, gap)
        return self.weight * fall / 2 + _dot(gap, theta)


def _dot(left: Sequence[Number], right: Sequence[Number]) -> Number:
    return sum((li * ri for li, ri in zip(left, right, strict=True)), left[0] * 0)
