r"""Losses of Tsallis entropies at any order α, however near to 1, in mpmath from their definition.

The recipe's general solver works with ψ' as it is, which is as large as 1/(α − 1). Here τ is less
by that, so that the same digits do for every order. The maximizer of

.. math:: \Omega(y) - \Omega(p) - c\,D(y, p) + \langle p - y, \theta\rangle

over the simplex has :math:`\psi'(p) - c\,(y - p)\,\psi''(p) = \theta - \tau`, or p = 0 where the
left-hand side exceeds the right one. Both equations are increasing, and solved in brackets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from mpmath import mp, mpf

DIGITS = 50


class Exact(NamedTuple):
    """The loss, its maximizer and the maximizer's slopes ∂p/∂(θ − τ), as doubles."""

    value: float
    y_star: np.ndarray
    slope: np.ndarray


def evaluate(y: Sequence[float], theta: Sequence[float], alpha: float, tightness: float) -> Exact:
    """The loss at one row; y is divided by its exact sum."""
    with mp.workdps(DIGITS):
        given = [mpf(float(entry)) for entry in y]
        row = _Row(
            [entry / mp.fsum(given) for entry in given],
            [mpf(float(score)) for score in theta],
            mpf(alpha) - 1,
            mpf(tightness),
        )
        return row.solve()


def _root(function: Callable[[mpf], tuple[mpf, mpf]], low: mpf, high: mpf, guess: mpf) -> mpf:
    """Newton's method for an increasing function with its slope, kept in a bracket."""
    point = min(max(guess, low), high)
    for _ in range(400):
        value, slope = function(point)
        low, high = (point, high) if value < 0 else (low, point)
        moved = point - value / slope if slope else low
        if not low < moved < high:
            moved = (low + high) / 2
        if abs(moved - point) <= mpf(10) ** (5 - DIGITS) * (1 + abs(point)):
            return moved
        point = moved
    raise ArithmeticError("no root after 400 steps")


class _Row:
    def __init__(self, y: list[mpf], theta: list[mpf], beta: mpf, tightness: mpf) -> None:
        self.y, self.theta, self.beta, self.c = y, theta, beta, tightness
        self.logs: list[mpf] = [mpf(0)] * len(y)

    def _deformed(self, t: mpf) -> mpf:
        """(e^{βt} − 1)/β, which is ψ'(e^t) up to a constant; t for β = 0."""
        return mp.expm1(self.beta * t) / self.beta if self.beta else t

    def _inverse(self, x: mpf) -> mpf:
        """The t that this is of; −∞ below its range."""
        z = self.beta * x
        if z <= -1:
            return mpf("-inf")
        return mp.log1p(z) / self.beta if self.beta else x

    def _log_point(self, i: int, x: mpf) -> mpf:
        """log p of an entry at x = θ − τ."""
        y, beta, c = self.y[i], self.beta, self.c
        alone = self._inverse(x)
        if c == 0:
            return alone
        if y == 0:
            return self._inverse((x - c) / (1 + c * beta))

        def excess(t: mpf) -> tuple[mpf, mpf]:
            q, pull = mp.exp(beta * t), c * y * mp.exp((beta - 1) * t)
            value = self._deformed(t) + c * q - pull - x
            return value, (1 + c * beta) * q + (1 - beta) * pull

        # p is between y and the entry of c = 0, which may not exist
        if beta == 1 and x <= -1 - c * y:  # ψ'' and its slope are finite at 0
            return mpf("-inf")
        low, high = sorted((mp.log(y), alone))
        if low == mpf("-inf"):
            # p ≤ 1 has (1 − e^{βt})/β ≤ −t
            low = high - 1
            while excess(low)[0] > 0:
                low = 2 * low - high
        return _root(excess, low, high, self.logs[i])

    def _slope(self, i: int, t: mpf) -> mpf:
        if t == mpf("-inf"):
            return mpf(0)
        ratio = self.y[i] * mp.exp(-t)
        flat = mp.exp((1 - self.beta) * t)
        return flat / (1 + self.c * self.beta + self.c * (1 - self.beta) * ratio)

    def solve(self) -> Exact:
        """Find τ, then everything from the definition."""
        y, theta, beta, c = self.y, self.theta, self.beta, self.c

        def deficit(tau: mpf) -> tuple[mpf, mpf]:
            self.logs = [self._log_point(i, score - tau) for i, score in enumerate(theta)]
            slopes = [self._slope(i, t) for i, t in enumerate(self.logs)]
            return 1 - mp.fsum(map(mp.exp, self.logs)), mp.fsum(slopes)

        top, k = max(theta), len(theta)
        # there p = 1 for the largest score, and p ≤ max(y, 1/k) / 2 for all of them
        low, high = top - c, top + 1
        while deficit(high)[0] < 0:
            high = 2 * high - low
        tau = _root(deficit, low, high, low + (high - low) / k)
        deficit(tau)
        p = [mp.exp(t) for t in self.logs]
        value = mp.mpf(0)
        for i, (own, entry, t) in enumerate(zip(y, p, self.logs, strict=True)):
            own_psi, psi = self._psi(own, mp.log(own) if own else t), self._psi(entry, t)
            finite = t if t > mpf("-inf") else mpf(0)
            slope = self._deformed(t) if entry or beta else finite
            divergence = own_psi - psi - slope * (own - entry)
            value += own_psi - psi - c * divergence + (entry - own) * theta[i]
        slopes = [self._slope(i, t) for i, t in enumerate(self.logs)]
        return Exact(float(value), np.asarray(p, dtype=float), np.asarray(slopes, dtype=float))

    def _psi(self, p: mpf, t: mpf) -> mpf:
        """ψ up to a multiple of p: p ((p^β − 1)/β − 1)/α; p log p − p for β = 0."""
        return p * (self._deformed(t) - 1) / (1 + self.beta) if p else mpf(0)
