r"""Losses of ½‖·‖² and of indicators, from the definition, in exact rational arithmetic.

The loss of tightness c is a supremum over p in C:

.. math::
    L_c(y, \theta) = \sup_p \, \Omega(y) - \Omega(p) - c D_\Omega(y, p)
                     + \langle p - y, \theta\rangle .

The subgradients of :math:`\Omega` at p are :math:`\nabla\Psi(p) + n`, with n in the normal cone of
C at p, and :math:`\langle y - p, n\rangle \le 0` for y in C, so n = 0 gives the divergence, which
is the least over the subgradients: :math:`\frac12\|y - p\|^2` for ½‖·‖², and 0 for an indicator,
whose loss is the same for every c.
For ½‖·‖² the objective is :math:`\langle a, p\rangle - \frac{m}{2}\|p\|^2` up to a constant, with
:math:`a = \theta + c y` and :math:`m = 1 + c`; its maximizer is the only p with
:math:`a - m p` in the normal cone of C at p. The inputs are floats, hence rationals, and on
polyhedra so is the maximizer: it is found exactly and certified by
:math:`\sup_{v \in C} \langle a - m p, v\rangle = \langle a - m p, p\rangle`.
The Euclidean ball needs one square root, taken in mpmath.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from mpmath import mp, mpf

from .precision import Evaluation, Number, resolve

Row = Sequence[Fraction]


class Polyhedron(Protocol):
    """A polyhedral C, given by its vertices and by the KKT conditions on it."""

    def support(self, a: Row) -> Fraction | None:
        """sup over v in C of ⟨a, v⟩, at a vertex; None where it is infinite."""
        ...

    def vertices_at(self, a: Row) -> tuple[Row, bool]:
        """A vertex that attains the support, and whether no other point does."""
        ...

    def maximizer(self, a: Row, m: Fraction) -> list[Fraction]:
        """argmax over p in C of ⟨a, p⟩ − (m/2)‖p‖², for m > 0."""
        ...


@dataclass(frozen=True)
class Simplex:
    """p ≥ 0, Σp = 1; vertices e_i."""

    def support(self, a: Row) -> Fraction:
        return max(a)

    def vertices_at(self, a: Row) -> tuple[Row, bool]:
        best = max(a)
        return _unit(len(a), list(a).index(best)), list(a).count(best) == 1

    def maximizer(self, a: Row, m: Fraction) -> list[Fraction]:
        # KKT: m p_i = a_i − τ on the support, a_i ≤ τ off it; so the support is a set of
        # largest entries, and its size is the one whose τ separates it from the rest.
        ordered = sorted(a, reverse=True)
        total = Fraction(0)
        for size, entry in enumerate(ordered, start=1):
            total += entry
            tau = (total - m) / size
            if entry > tau and (size == len(a) or ordered[size] <= tau):
                return [max(entry - tau, Fraction(0)) / m for entry in a]
        raise ArithmeticError("no support satisfies the KKT conditions")


@dataclass(frozen=True)
class Intervals:
    """lower ≤ p ≤ upper, entry by entry; None is an end that is infinite."""

    lower: Fraction | None = None
    upper: Fraction | None = None

    def support(self, a: Row) -> Fraction | None:
        ends = [(entry, self.upper if entry > 0 else self.lower) for entry in a if entry]
        if any(end is None for _, end in ends):
            return None
        return sum((entry * end for entry, end in ends), Fraction(0))

    def vertices_at(self, a: Row) -> tuple[Row, bool]:
        return [self.upper if entry > 0 else self.lower for entry in a], all(a)

    def maximizer(self, a: Row, m: Fraction) -> list[Fraction]:
        row = [entry / m for entry in a]
        row = row if self.lower is None else [max(entry, self.lower) for entry in row]
        return row if self.upper is None else [min(entry, self.upper) for entry in row]


REALS, ORTHANT = Intervals(), Intervals(Fraction(0))
CUBE = Intervals(Fraction(0), Fraction(1))


@dataclass(frozen=True)
class CrossPolytope:
    """Σ|p| ≤ 1; vertices ±e_i."""

    def support(self, a: Row) -> Fraction:
        return max(map(abs, a))

    def vertices_at(self, a: Row) -> tuple[Row, bool]:
        sizes = [abs(entry) for entry in a]
        best = max(sizes)
        index = sizes.index(best)
        vertex = [entry * (1 if a[index] > 0 else -1) for entry in _unit(len(a), index)]
        return vertex, best > 0 and sizes.count(best) == 1

    def maximizer(self, a: Row, m: Fraction) -> list[Fraction]:
        if sum(map(abs, a)) <= m:
            return [entry / m for entry in a]
        # On the face Σ|p| = 1 the signs are those of a, and the sizes a point of the simplex.
        sizes = Simplex().maximizer([abs(entry) for entry in a], m)
        return [-size if entry < 0 else size for size, entry in zip(sizes, a, strict=True)]


@dataclass(frozen=True)
class QuadraticLoss:
    """½‖·‖² on a polyhedron: sparseMAP at tightness 0."""

    domain: Polyhedron
    tightness: Fraction

    def evaluate(self, y: Row, theta: Row, _digits: int) -> Evaluation:
        a, m = _linear_and_square(self.tightness, y, theta)
        p = self.domain.maximizer(a, m)
        normal = [ai - m * pi for ai, pi in zip(a, p, strict=True)]
        if self.domain.support(normal) != _dot(normal, p):
            raise ArithmeticError("the KKT conditions do not hold at the maximizer")
        return Evaluation(self.objective(y, theta, p), tuple(p))

    def objective(
        self, y: Sequence[Number], theta: Sequence[Number], p: Sequence[Number]
    ) -> Number:
        """What the supremum is taken of, at any p in C."""
        return _quadratic_objective(self.tightness, y, theta, p)


@dataclass(frozen=True)
class QuadraticBallLoss:
    """½‖·‖² on the unit Euclidean ball."""

    tightness: Fraction

    def evaluate(self, y: Row, theta: Row, digits: int) -> Evaluation:
        a, m = _linear_and_square(self.tightness, y, theta)
        square = _dot(a, a)
        if square <= m * m:  # a/m is in the ball, where the normal cone is {0}
            p = [ai / m for ai in a]
            return Evaluation(self.objective(y, theta, p), tuple(p))

        def attempt() -> Evaluation:
            # On the sphere a − mp = μp with μ > 0, so p is a scaled to norm 1.
            norm = mp.sqrt(_mp(square))
            p = [_mp(ai) / norm for ai in a]
            return _mp_evaluation(self, y, theta, p, 4 * (1 + _mp(self.tightness)))

        return resolve(attempt, digits)

    def objective(
        self, y: Sequence[Number], theta: Sequence[Number], p: Sequence[Number]
    ) -> Number:
        """What the supremum is taken of, at any p in C."""
        return _quadratic_objective(self.tightness, y, theta, p)


@dataclass(frozen=True)
class PerceptronLoss:
    """The indicator of a polytope: the support minus ⟨y, θ⟩, for every tightness."""

    domain: Polyhedron

    def evaluate(self, y: Row, theta: Row, _digits: int) -> Evaluation:
        vertex, unique = self.domain.vertices_at(theta)
        return Evaluation(self.objective(y, theta, vertex), tuple(vertex) if unique else None)

    def objective(
        self, y: Sequence[Number], theta: Sequence[Number], p: Sequence[Number]
    ) -> Number:
        """What the supremum is taken of, at any p in C."""
        return _dot(_minus(p, y), theta)


@dataclass(frozen=True)
class PerceptronBallLoss:
    """The indicator of the unit Euclidean ball: the maximizer is θ scaled to norm 1."""

    def evaluate(self, y: Row, theta: Row, digits: int) -> Evaluation:
        if not any(theta):
            return Evaluation(Fraction(0), None)
        square = _dot(theta, theta)

        def attempt() -> Evaluation:
            norm = mp.sqrt(_mp(square))
            return _mp_evaluation(self, y, theta, [_mp(ti) / norm for ti in theta], mpf(0))

        return resolve(attempt, digits)

    def objective(
        self, y: Sequence[Number], theta: Sequence[Number], p: Sequence[Number]
    ) -> Number:
        """What the supremum is taken of, at any p in C."""
        return _dot(_minus(p, y), theta)


def _linear_and_square(tightness: Fraction, y: Row, theta: Row) -> tuple[list[Fraction], Fraction]:
    """(a, m) such that the objective is ⟨a, p⟩ − (m/2)‖p‖² up to a constant."""
    return [ti + tightness * yi for yi, ti in zip(y, theta, strict=True)], 1 + tightness


def _quadratic_objective(
    tightness: Fraction, y: Sequence[Number], theta: Sequence[Number], p: Sequence[Number]
) -> Number:
    """Ω(y) − Ω(p) − c D(y, p) + ⟨p − y, θ⟩ with Ω = ½‖·‖²."""
    gap = _minus(p, y)
    c = tightness if isinstance(p[0], Fraction) else _mp(tightness)
    return (_dot(y, y) - _dot(p, p) - c * _dot(gap, gap)) / 2 + _dot(gap, theta)


def _mp_evaluation(
    loss: QuadraticBallLoss | PerceptronBallLoss, y: Row, theta: Row, p: list[mpf], potentials: mpf
) -> Evaluation:
    """The loss at a rounded p; ``potentials`` bounds what Ω and its divergence add up to."""
    theta_mp = [_mp(ti) for ti in theta]
    value = loss.objective([_mp(yi) for yi in y], theta_mp, p)
    # All points are in the unit ball, so no entry of p − y exceeds 2.
    magnitude = potentials + 2 * mp.fsum(theta_mp, absolute=True)
    return Evaluation(value, tuple(p), magnitude)


def _dot(left: Sequence[Number], right: Sequence[Number]) -> Number:
    return sum((li * ri for li, ri in zip(left, right, strict=True)), left[0] * 0)


def _minus(left: Sequence[Number], right: Sequence[Number]) -> list[Number]:
    return [li - ri for li, ri in zip(left, right, strict=True)]


def _unit(size: int, index: int) -> list[Fraction]:
    return [Fraction(int(i == index)) for i in range(size)]


def _mp(number: Fraction) -> mpf:
    return mpf(number.numerator) / number.denominator
