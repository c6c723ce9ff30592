r"""Losses of separable potentials with an unbounded slope or curvature, from the definition.

For :math:`\Psi(y) = \sum_i \psi(y_i)` and :math:`\Omega = \Psi + \iota_C`, with C the simplex or a
product of intervals, the loss of tightness c is a supremum over one probability (or count)
vector p:

.. math::
    L_c(y, \theta) &= \sup_{p \in C} \, \Psi(y) - \Psi(p) - c \, D(y, p)
                      + \langle p - y, \theta\rangle , \\
    D(y, p) &= \Psi(y) - \Psi(p) - \langle y - p, \nabla\Psi(p)\rangle .

D is the Bregman divergence of :math:`\Omega`, the least of
:math:`\Omega(y) - \Omega(p) - \langle y - p, g\rangle` over the subgradients g of :math:`\Omega`
at p: these are :math:`\nabla\Psi(p) + n` with n in the normal cone of C at p, and
:math:`\langle y - p, n\rangle \le 0` because y lies in C, so n = 0 attains it.

The objective is concave and separable. With a multiplier :math:`\tau` for
:math:`\sum_i p_i = 1` (0 on a product), the maximizer solves
:math:`G(p_i) = \theta_i - \tau`, where

.. math::
    G(p) = \psi'(p) - c \, (y_i - p) \psi''(p)

is increasing, or is :math:`p_i = 0` where :math:`G(0^+) \ge \theta_i - \tau`. Only
:math:`\psi` and its first three derivatives are used. The unknown is a coordinate x in which
p keeps its relative precision: log p on :math:`[0, \infty)`, logit p on :math:`[0, 1]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from mpmath import mp, mpf

from .precision import Evaluation, resolve

# Digits of the first solve, where the next one starts.
START_DIGITS = 30


class Local(NamedTuple):
    """p and ψ's derivatives at x, scaled by w = dp/dx so that none of them overflows."""

    p: mpf
    w: mpf
    d1: mpf  # ψ'(p)
    d2: mpf  # w ψ''(p)
    d3: mpf  # w² ψ'''(p)


@dataclass(frozen=True)
class Tsallis:
    """ψ(p) = p ((p^β − 1)/β − 1)/α with β = α − 1, in x = log p; p log p − p for α = 1.

    ψ' = (p^β − 1)/β stays finite as α approaches 1. On the simplex a multiple of p changes nothing,
    so that this is (p^α − p)/(α (α − 1)), or p log p, as well. ``gap`` is (y − p)/w without
    cancellation where p is close to an end of its interval, ``at_zero`` ψ'(0+) and ψ''(0+).
    """

    alpha: float  # its exact value

    @property
    def _beta(self) -> mpf:
        return mpf(self.alpha) - 1

    def _deformed(self, x: mpf) -> mpf:
        return mp.expm1(self._beta * x) / self._beta if self._beta else x

    def at(self, x: mpf) -> Local:
        p, power = mp.exp(x), mp.exp(self._beta * x)
        return Local(p, p, self._deformed(x), power, (self._beta - 1) * power)

    def value(self, p: mpf) -> mpf:
        return p * (self._deformed(mp.log(p)) - 1) / mpf(self.alpha) if p else mpf(0)

    def slope(self, p: mpf) -> mpf:
        if p:
            return self._deformed(mp.log(p))
        return -1 / self._beta if self._beta else mpf("-inf")

    def gap(self, y: mpf, local: Local) -> mpf:
        return y / local.p - 1

    def at_zero(self) -> tuple[mpf, mpf]:
        return self.slope(mpf(0)), mpf(1) if self.alpha == 2 else mpf("inf")


@dataclass(frozen=True)
class BinaryNegentropy:
    """ψ(p) = p log p + (1 − p) log(1 − p), in x = logit p."""

    def at(self, x: mpf) -> Local:
        # Both p and q = 1 − p are divided by the larger exponential: no overflow, no 1 − p.
        small = mp.exp(-abs(x))
        larger, smaller = 1 / (1 + small), small / (1 + small)
        p, q = (larger, smaller) if x >= 0 else (smaller, larger)
        return Local(p, p * q, x, mpf(1), p - q)

    def value(self, p: mpf) -> mpf:
        return sum((part * mp.log(part) for part in (p, 1 - p) if part), mpf(0))

    def slope(self, p: mpf) -> mpf:
        return mp.log(p) - mp.log(1 - p)

    def gap(self, y: mpf, local: Local) -> mpf:
        # (y − p)/(pq) = y/p − (1 − y)/q, where q = w/p keeps its relative precision.
        return y / local.p - (1 - y) * local.p / local.w

    def at_zero(self) -> tuple[mpf, mpf]:
        return mpf("-inf"), mpf("inf")


Potential = Tsallis | BinaryNegentropy


@dataclass
class Root:
    """The maximizer: coordinates x_i (None where p_i = 0) and the multiplier τ."""

    x: list[mpf | None]
    tau: mpf


@dataclass(frozen=True)
class SmoothLoss:
    """The loss of a separable potential with a given tightness."""

    potential: Potential
    tightness: Fraction
    simplex: bool

    def evaluate(self, y: Sequence[Fraction], theta: Sequence[Fraction], digits: int) -> Evaluation:
        """The loss at y in C to ``digits`` digits, and the maximizer p."""
        root: Root | None = None  # the last one found, where the next precision starts

        def attempt() -> Evaluation:
            nonlocal root
            point = _Point(self, _exact(y), _exact(theta), *_exact([self.tightness]))
            if root is None:
                with mp.workdps(START_DIGITS):
                    root = point.solve(None)
            root = point.solve(root)
            return point.evaluation(root)

        return resolve(attempt, digits)

    def objective(self, y: Sequence[mpf], theta: Sequence[mpf], p: Sequence[mpf]) -> mpf:
        """What the supremum is taken of, at any p in C where Ω has a subgradient."""
        psi, (c,) = self.potential, _exact([self.tightness])
        terms = []
        for yi, ti, pi in zip(y, theta, p, strict=True):
            fall = psi.value(yi) - psi.value(pi)
            divergence = fall - (yi - pi) * psi.slope(pi) if c else 0
            terms.append(fall - c * divergence + (pi - yi) * ti)
        return mp.fsum(terms)


@dataclass(frozen=True)
class _Point:
    """One (y, θ) at the current working precision."""

    loss: SmoothLoss
    y: list[mpf]
    theta: list[mpf]
    tightness: mpf

    def condition(self, i: int, x: mpf) -> tuple[Local, mpf, mpf]:
        """ψ at x_i, G(p_i) and dG/dx."""
        local = self.loss.potential.at(x)
        c = self.tightness
        if not c:
            return local, local.d1, local.d2
        gap = self.loss.potential.gap(self.y[i], local)
        return local, local.d1 - c * gap * local.d2, (1 + c) * local.d2 - c * gap * local.d3

    def slope_at_zero(self, i: int) -> mpf:
        """G(0+); −inf where p_i = 0 is never a maximizer."""
        slope, curvature = self.loss.potential.at_zero()
        # p ψ''(p) vanishes with p wherever ψ'(0+) is finite, so y_i = 0 leaves ψ'(0+) alone.
        pull = self.tightness * self.y[i]
        return slope - pull * curvature if pull else slope

    def solve(self, start: Root | None) -> Root:
        """A bracketed root in τ, and inside it one bracketed root for each x_i."""
        size = len(self.y)
        tolerance = mpf(10) ** (4 - mp.dps)
        x: list[mpf | None] = [None] * size
        guess = [-mp.log(mpf(size)) if self.loss.simplex else mpf(0)] * size
        if start is not None:
            guess = [old if new is None else new for old, new in zip(guess, start.x, strict=True)]

        def excess(tau: mpf) -> tuple[mpf, mpf]:
            """−log Σp, which increases with τ, and its slope."""
            total, slope = mpf(0), mpf(0)
            for i in range(size):
                x[i] = self._coordinate(i, self.theta[i] - tau, guess[i], tolerance)
                if x[i] is not None:
                    guess[i] = x[i]
                    local, _, rate = self.condition(i, x[i])
                    total += local.p
                    slope += local.w / rate
            return (-mp.log(total), slope / total) if total else (mpf(1), mpf(0))

        tau = mpf(0)
        if self.loss.simplex:
            # One p_i reaches 1 at the lower end, so Σp ≥ 1; all are at most 1/k at the upper end.
            lower, upper = (
                max(self.theta[i] - self.condition(i, end)[1] for i in range(size))
                for end in (mpf(0), -mp.log(mpf(size)))
            )
            begin = upper if start is None else min(max(start.tau, lower), upper)
            tau = increasing_root(excess, begin, 10**6 * tolerance, bracket=(lower, upper))
        excess(tau)
        return Root(list(x), tau)

    def _coordinate(self, i: int, s: mpf, guess: mpf, tolerance: mpf) -> mpf | None:
        if s - self.slope_at_zero(i) <= tolerance * (1 + abs(s)):
            return None

        def residual(x: mpf) -> tuple[mpf, mpf]:
            _, value, rate = self.condition(i, x)
            return value - s, rate

        return increasing_root(residual, guess, tolerance)

    # The value, by the definition.

    def evaluation(self, root: Root) -> Evaluation:
        psi, c = self.loss.potential, self.tightness
        p, terms = [], []
        for i, xi in enumerate(root.x):
            y, theta = self.y[i], self.theta[i]
            local = psi.at(xi) if xi is not None else None
            pi = local.p if local else mpf(0)
            # Ψ(y) − Ψ(p) − c D(y, p) = (1 − c)(Ψ(y) − Ψ(p)) + c ⟨y − p, ∇Ψ(p)⟩
            if c != 1:
                terms += [(1 - c) * psi.value(y), (c - 1) * psi.value(pi)]
            if c:
                difference = local.w * psi.gap(y, local) if local else y
                terms += [c * difference * (local.d1 if local else psi.slope(mpf(0)))]
            terms += [pi * theta, -y * theta]
            p.append(pi)
        # The last summand is for 1 − p and for log p near p = 1, which round at the scale of 1.
        size = (1 + c) * (mp.fsum(p) + len(p))
        magnitude = mp.fsum(terms, absolute=True) + abs(root.tau) + size
        return Evaluation(mp.fsum(terms), tuple(p), magnitude)


def _exact(numbers: Sequence[Fraction]) -> list[mpf]:
    return [mp.convert(number) for number in numbers]


def increasing_root(
    function: Callable[[mpf], tuple[mpf, mpf]],
    start: mpf,
    tolerance: mpf,
    bracket: tuple[mpf | None, mpf | None] = (None, None),
) -> mpf:
    """Root of an increasing ``function``, which returns its value and its slope.

    Newton's method, kept honest: a step that leaves the bracket, or that is not half as long as
    the step before, is replaced by a bisection, or by a doubled step while one end of the
    bracket is still unknown. So neither flat nor steep exponentials stall it.
    """
    lower, upper = bracket
    point, last_step = start, mpf(4)
    for _ in range(2000):
        value, slope = function(point)
        if value == 0:
            return point
        if value < 0:
            lower = point
        else:
            upper = point
        step = -value / slope if slope > 0 else None
        if step is not None and abs(step) <= tolerance * (1 + abs(point)):
            return point + step
        if lower is not None and upper is not None:
            if upper - lower <= tolerance * (1 + abs(point)):
                return (lower + upper) / 2
            inside = step is not None and lower < point + step < upper
            if not inside or abs(step) > last_step / 2:
                step = (lower + upper) / 2 - point
        elif step is None or abs(step) > last_step / 2:
            step = 2 * last_step if value < 0 else -2 * last_step
        point, last_step = point + step, abs(step)
    raise ArithmeticError("no root after 2000 steps")
