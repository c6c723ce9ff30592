r"""Losses of ½‖·‖² and of indicators, from the definition, in exact rational arithmetic.

The suprema are over p in C:

.. math::
    L_{FY}(y, \theta) &= \sup_p \, \langle p, \theta\rangle - \tfrac12 \|p\|^2
                         \; + \; \tfrac12\|y\|^2 - \langle y, \theta\rangle \\
    L_F(y, \theta) &= \sup_p \, \langle y - p, p\rangle + \langle p, \theta\rangle
                      \; - \; \langle y, \theta\rangle \\
    L_{perceptron}(y, \theta) &= \sup_p \, \langle p, \theta\rangle - \langle y, \theta\rangle .

The subgradients of :math:`\Omega` at p are p + n, with n in the normal cone of C at p, and
:math:`\langle y - p, n\rangle \le 0` for y in C, so n = 0 attains the Fitzpatrick supremum.
Each objective is :math:`\langle a, p\rangle - \frac{c}{2}\|p\|^2`, whose maximiser is the only p
with :math:`a - c p` in the normal cone of C at p. The inputs are floats, hence rationals, and on
polyhedra so is the maximiser: it is found exactly and certified by
:math:`\sup_{v \in C} \langle a - c p, v\rangle = \langle a - c p, p\rangle`.
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

    def maximiser(self, a: Row, c: int) -> list[Fraction]:
        """argmax over p in C of ⟨a, p⟩ − (c/2)‖p‖², for c > 0."""
        ...


@dataclass(frozen=True)
class Simplex:
    """p ≥ 0, Σp = 1; vertices e_i."""

    def support(self, a: Row) -> Fraction:
        return max(a)

    def vertices_at(self, a: Row) -> tuple[Row, bool]:
        best = max(a)
        return _unit(len(a), list(a).index(best)), list(a).count(best) == 1

    def maximiser(self, a: Row, c: int) -> list[Fraction]:
        # KKT: c p_i = a_i − τ on the support, a_i ≤ τ off it; so the support is a set of
        # largest entries, and the right size m is the one whose τ separates it from the rest.
        ordered = sorted(a, reverse=True)
        total = Fraction(0)
        for size, entry in enumerate(ordered, start=1):
            total += entry
            tau = (total - c) / size
            if entry > tau and (size == len(a) or ordered[size] <= tau):
                return [max(entry - tau, Fraction(0)) / c for entry in a]
        raise ArithmeticError("no support satisfies the KKT conditions")


@dataclass(frozen=True)
class Cube:
    """0 ≤ p ≤ 1; vertices {0, 1}^k."""

    def support(self, a: Row) -> Fraction:
        return sum((entry for entry in a if entry > 0), Fraction(0))

    def vertices_at(self, a: Row) -> tuple[Row, bool]:
        return [Fraction(int(entry > 0)) for entry in a], all(a)

    def maximiser(self, a: Row, c: int) -> list[Fraction]:
        return [min(max(entry / c, Fraction(0)), Fraction(1)) for entry in a]


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

    def maximiser(self, a: Row, c: int) -> list[Fraction]:
        if sum(map(abs, a)) <= c:
            return [entry / c for entry in a]
        # On the face Σ|p| = 1 the signs are those of a, and the sizes a point of the simplex.
        sizes = Simplex().maximiser([abs(entry) for entry in a], c)
        return [-size if entry < 0 else size for size, entry in zip(sizes, a, strict=True)]


@dataclass(frozen=True)
class Orthant:
    """p ≥ 0; the support is finite (and 0) only for a ≤ 0."""

    def support(self, a: Row) -> Fraction | None:
        return Fraction(0) if max(a) <= 0 else None

    def vertices_at(self, a: Row) -> tuple[Row, bool]:
        raise NotImplementedError("an unbounded set has no perceptron")

    def maximiser(self, a: Row, c: int) -> list[Fraction]:
        return [max(entry / c, Fraction(0)) for entry in a]


@dataclass(frozen=True)
class Reals:
    """All of ℝ^k; the support is finite only at a = 0."""

    def support(self, a: Row) -> Fraction | None:
        return Fraction(0) if not any(a) else None

    def vertices_at(self, a: Row) -> tuple[Row, bool]:
        raise NotImplementedError("an unbounded set has no perceptron")

    def maximiser(self, a: Row, c: int) -> list[Fraction]:
        return [entry / c for entry in a]


@dataclass(frozen=True)
class QuadraticLoss:
    """½‖·‖² on a polyhedron: sparseMAP and its Fitzpatrick twin."""

    domain: Polyhedron
    fitzpatrick: bool

    def evaluate(self, y: Row, theta: Row, _digits: int) -> Evaluation:
        a, c = _quadratic(self.fitzpatrick, y, theta)
        p = self.domain.maximiser(a, c)
        normal = [ai - c * pi for ai, pi in zip(a, p, strict=True)]
        if self.domain.support(normal) != _dot(normal, p):
            raise ArithmeticError("the KKT conditions do not hold at the maximiser")
        value = self.objective(y, theta, p) + self.constant(y, theta)
        return Evaluation(value, tuple(p))

    def objective(self, y: Row, theta: Row, p: Row) -> Fraction:
        """What the supremum is taken of, at any p in C."""
        return _quadratic_objective(self.fitzpatrick, y, theta, p)

    def constant(self, y: Row, theta: Row) -> Fraction:
        """What is added to the supremum to give the loss."""
        return _quadratic_constant(self.fitzpatrick, y, theta)


@dataclass(frozen=True)
class QuadraticBallLoss:
    """½‖·‖² on the unit Euclidean ball."""

    fitzpatrick: bool

    def evaluate(self, y: Row, theta: Row, digits: int) -> Evaluation:
        a, c = _quadratic(self.fitzpatrick, y, theta)
        square = _dot(a, a)
        if square <= c * c:  # a/c is in the ball, where the normal cone is {0}
            p = [ai / c for ai in a]
            return Evaluation(self.objective(y, theta, p) + self.constant(y, theta), tuple(p))

        def attempt() -> Evaluation:
            # On the sphere a − cp = μp with μ > 0, so p is a scaled to norm 1.
            norm = mp.sqrt(_mp(square))
            p = [_mp(ai) / norm for ai in a]
            return _mp_evaluation(self, y, theta, p)

        return resolve(attempt, digits)

    def objective(
        self, y: Sequence[Number], theta: Sequence[Number], p: Sequence[Number]
    ) -> Number:
        """What the supremum is taken of, at any p in C."""
        return _quadratic_objective(self.fitzpatrick, y, theta, p)

    def constant(self, y: Sequence[Number], theta: Sequence[Number]) -> Number:
        """What is added to the supremum to give the loss."""
        return _quadratic_constant(self.fitzpatrick, y, theta)


@dataclass(frozen=True)
class PerceptronLoss:
    """The indicator of a polytope: both losses are the support minus ⟨y, θ⟩."""

    domain: Polyhedron

    def evaluate(self, y: Row, theta: Row, _digits: int) -> Evaluation:
        vertex, unique = self.domain.vertices_at(theta)
        value = self.objective(y, theta, vertex) + self.constant(y, theta)
        return Evaluation(value, tuple(vertex) if unique else None)

    def objective(self, _y: Row, theta: Row, p: Row) -> Fraction:
        """What the supremum is taken of, at any p in C."""
        return _dot(p, theta)

    def constant(self, y: Row, theta: Row) -> Fraction:
        """What is added to the supremum to give the loss."""
        return -_dot(y, theta)


@dataclass(frozen=True)
class PerceptronBallLoss:
    """The indicator of the unit Euclidean ball: the maximiser is θ scaled to norm 1."""

    def evaluate(self, y: Row, theta: Row, digits: int) -> Evaluation:
        if not any(theta):
            return Evaluation(Fraction(0), None)
        square = _dot(theta, theta)

        def attempt() -> Evaluation:
            norm = mp.sqrt(_mp(square))
            return _mp_evaluation(self, y, theta, [_mp(ti) / norm for ti in theta])

        return resolve(attempt, digits)

    def objective(
        self, _y: Sequence[Number], theta: Sequence[Number], p: Sequence[Number]
    ) -> Number:
        """What the supremum is taken of, at any p in C."""
        return _dot(p, theta)

    def constant(self, y: Sequence[Number], theta: Sequence[Number]) -> Number:
        """What is added to the supremum to give the loss."""
        return -_dot(y, theta)


def _quadratic(fitzpatrick: bool, y: Row, theta: Row) -> tuple[list[Fraction], int]:
    """(a, c) such that the objective is ⟨a, p⟩ − (c/2)‖p‖²."""
    if not fitzpatrick:
        return list(theta), 1
    return [yi + ti for yi, ti in zip(y, theta, strict=True)], 2


def _quadratic_objective(
    fitzpatrick: bool, y: Sequence[Number], theta: Sequence[Number], p: Sequence[Number]
) -> Number:
    if fitzpatrick:
        return _dot([yi - pi for yi, pi in zip(y, p, strict=True)], p) + _dot(p, theta)
    return _dot(p, theta) - _dot(p, p) / 2


def _quadratic_constant(fitzpatrick: bool, y: Sequence[Number], theta: Sequence[Number]) -> Number:
    return (0 if fitzpatrick else _dot(y, y) / 2) - _dot(y, theta)


def _mp_evaluation(
    loss: QuadraticBallLoss | PerceptronBallLoss, y: Row, theta: Row, p: list[mpf]
) -> Evaluation:
    y_mp, theta_mp = [_mp(yi) for yi in y], [_mp(ti) for ti in theta]
    value = loss.objective(y_mp, theta_mp, p) + loss.constant(y_mp, theta_mp)
    # All points are in the unit ball, so no term exceeds the sum of the |θ_i| plus 1 each.
    magnitude = len(y) + 2 * mp.fsum(theta_mp, absolute=True)
    return Evaluation(value, tuple(p), magnitude)


def _dot(left: Sequence[Number], right: Sequence[Number]) -> Number:
    return sum((li * ri for li, ri in zip(left, right, strict=True)), left[0] * 0)


def _unit(size: int, index: int) -> list[Fraction]:
    return [Fraction(int(i == index)) for i in range(size)]


def _mp(number: Fraction) -> mpf:
    return mpf(number.numerator) / number.denominator
