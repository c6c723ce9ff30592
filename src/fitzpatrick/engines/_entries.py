r"""Losses on product sets, where every entry is by itself, with the formulas of the core.

The work is done in pieces that stay in cache, by operations in place. With the divergence D, the
quadratic form Q and the tightness c, an entry's term of the loss is D + c (Q − D), two numbers that
are not negative. D is a difference of larger numbers; near y = p, where that would lose digits, it
is a series.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _omega
from ._blocks import FloatArray, IntArray, Scratch, pieces
from ._coin_root import MAX_EXPONENT, solve_coins
from ._near import NEAR, near_terms
from ._output import Output
from ._row_kernel import BlockTask, CoreKernel, RowKernel, write_slope

# What a piece may take of the cache, with a dozen buffers of its size.
_PIECE_BYTES = 1 << 17


@dataclass(frozen=True)
class Entries:
    """What comes of a piece of scores; valid until the scratch is used again."""

    p: FloatArray
    difference: FloatArray  # p − y
    terms: FloatArray


@dataclass(frozen=True, eq=False)
class EntryKernel(RowKernel, ABC):
    """Targets of any form."""

    def compute(self, task: BlockTask) -> None:
        output, rows, theta, _, _, scratch = task
        most = self._max_score(theta.dtype)
        for piece in pieces(rows, theta.shape[1], theta.itemsize, _PIECE_BYTES):
            part = task.part(slice(piece.start - rows.start, piece.stop - rows.start))
            y = np.ascontiguousarray(self.targets.dense(piece, scratch))
            s = np.ascontiguousarray(part.theta)
            is_known = s.max(initial=0) < most and s.min(initial=0) > -most  # and not NaN
            solved = self._solve(s, y, scratch) if is_known else None
            if solved is None:
                CoreKernel(self.loss, self.targets).compute(part)
                continue
            if part.value is not None:
                np.add.reduce(solved.terms, axis=1, out=part.value)
            if part.out is None:
                continue
            np.copyto(part.out, solved.difference if output == Output.GRADIENT else solved.p)
            if output == Output.SLOPE:
                write_slope(self.loss, y, part.out)

    def _max_score(self, dtype: np.dtype[Any]) -> float:
        """Pieces with larger scores, or with NaN, are left to the core."""
        return 1e15  # whose square float32 can hold

    @abstractmethod
    def _solve(self, s: FloatArray, y: FloatArray, scratch: Scratch) -> Entries | None:
        """The entries of a piece; None leaves it to the core."""


def _patch(
    terms: FloatArray, is_near: np.ndarray[Any, Any], exact: Callable[[IntArray], FloatArray]
) -> None:
    """Replace the terms near y = p."""
    near = np.flatnonzero(is_near)
    if len(near):
        terms.reshape(-1)[near] = exact(near)


class ClippedKernel(EntryKernel):
    """Half the squared norm on intervals: p is the mixture m = y + (s − y)/(1 + c), clipped."""

    def _solve(self, s: FloatArray, y: FloatArray, scratch: Scratch) -> Entries:
        scale = 1 + self.loss.tightness
        lower, upper = self.loss.regularizer.domain.bounds  # type: ignore[attr-defined]
        p, difference, terms = scratch.stack("entries", 3, s.shape, s.dtype)
        np.subtract(s, y, out=difference)
        if scale != 1:
            difference *= 1 / scale
        if lower == -np.inf and upper == np.inf:
            np.add(difference, y, out=p)
            np.multiply(difference, difference, out=terms)
            terms *= scale / 2
            return Entries(p, difference, terms)
        beyond = scratch.array("beyond", s.shape, s.dtype)
        np.add(difference, y, out=beyond)
        np.clip(beyond, lower, upper, out=p)
        beyond -= p
        np.subtract(p, y, out=difference)
        # (1 + c) (½ (p − y)² + (p − y)(m − p))
        np.multiply(difference, 0.5, out=terms)
        terms += beyond
        terms *= difference
        terms *= scale
        return Entries(p, difference, terms)


class CountKernel(EntryKernel):
    """The negative entropy on the orthant: p = c y/ω = e^(s − c + ω) with ω = ω(log(c y) + c − s).

    With w = y/p and ρ = log(p/y), the term is y (E(ρ) + c E(−ρ)) = p + y (c w − 1 − c + (c − 1) ρ).
    """

    def _solve(self, s: FloatArray, y: FloatArray, scratch: Scratch) -> Entries:
        c = self.loss.tightness
        p, difference, terms, rho, work = scratch.stack("entries", 5, s.shape, s.dtype)
        np.clip(y, np.finfo(s.dtype).tiny, np.inf, out=rho)
        np.log(rho, out=rho)
        np.subtract(s, rho, out=rho)  # log(p/y) for c = 0
        if c == 0:
            np.exp(s, out=p)
            np.multiply(rho, -1, out=terms)
            terms -= 1
        else:
            np.subtract(math.log(c) + c, rho, out=work)
            np.clip(work, _omega.LOWEST_Z, np.inf, out=work)
            omega = _omega.solve_omega(work, scratch)
            self._find_p(s, y, omega, p, work)
            if c != 1:
                self._find_rho(omega, rho, work)
                np.multiply(rho, c - 1, out=terms)
                terms += omega
                terms -= 1 + c
        np.subtract(p, y, out=difference)
        if c == 1:
            np.subtract(1, omega, out=terms)
            terms *= difference  # (p − y)²/p, of two numbers of one sign
            return Entries(p, difference, terms)
        terms *= y
        terms += p
        np.abs(rho, out=work)
        _patch(
            terms,
            work < NEAR,
            lambda near: y.reshape(-1)[near] * near_terms(rho.reshape(-1)[near], c),
        )
        return Entries(p, difference, terms)

    def _find_p(
        self, s: FloatArray, y: FloatArray, omega: FloatArray, p: FloatArray, work: FloatArray
    ) -> None:
        """Write p in two forms: the first keeps its digits for small ω, the second for large."""
        c = self.loss.tightness
        np.subtract(s, c, out=work)
        work += omega
        np.exp(work, out=work)
        np.divide(y, omega, out=p)
        p *= c
        np.putmask(p, omega < 0.5, work)

    def _find_rho(self, omega: FloatArray, rho: FloatArray, work: FloatArray) -> None:
        """Make ρ of s − log y, in the same two forms: log c, which may be large, is in one only."""
        c = self.loss.tightness
        np.multiply(omega, 1 / c, out=work)
        np.log(work, out=work)
        work *= -1
        rho -= c
        rho += omega
        np.putmask(rho, omega >= 0.5, work)


class CoinKernel(EntryKernel):
    """The negative entropy of coins: p = σ(u), where u + a e^u − b e^−u = s − (a − b).

    Here a = c (1 − y) and b = c y. Q is (p − y)²/(p (1 − p)), and D is
    y log y + (1 − y) log(1 − y) + y log(1 + e^−u) + (1 − y) log(1 + e^u).
    """

    def _max_score(self, dtype: np.dtype[Any]) -> float:
        return MAX_EXPONENT[dtype] - self.loss.tightness  # |u| is less than |s| + c

    def _solve(self, s: FloatArray, y: FloatArray, scratch: Scratch) -> Entries | None:
        c = self.loss.tightness
        u = solve_coins(s, y, c, scratch) if c > 0 else s
        if u is None:
            return None
        p, difference, terms, tails, inverse, work = scratch.stack("entries", 6, s.shape, s.dtype)
        np.subtract(1, y, out=tails)
        np.negative(u, out=inverse)
        np.exp(inverse, out=inverse)
        np.add(inverse, 1, out=p)
        np.divide(1, p, out=p)
        np.multiply(inverse, p, out=terms)  # 1 − p
        np.multiply(terms, y, out=work)
        terms *= p
        np.multiply(tails, p, out=difference)
        difference -= work
        if c > 0:
            np.divide(difference, terms, out=terms)
            terms *= difference  # Q
        if c == 1:
            return Entries(p, difference, terms)
        divergence = work
        self._find_divergence(y, tails, difference, inverse, divergence, scratch)
        if c == 0:
            return Entries(p, difference, divergence)
        terms -= divergence
        np.clip(terms, 0, np.inf, out=terms)
        terms *= c
        terms += divergence
        return Entries(p, difference, terms)

    @staticmethod
    def _find_divergence(
        y: FloatArray,
        tails: FloatArray,
        difference: FloatArray,
        inverse: FloatArray,
        divergence: FloatArray,
        scratch: Scratch,
    ) -> None:
        """Write D, from e^−u, which is overwritten."""
        work, logarithm = scratch.stack("divergence", 2, y.shape, y.dtype)
        np.log1p(inverse, out=divergence)
        divergence *= y
        np.divide(1, inverse, out=inverse)
        np.log1p(inverse, out=work)
        work *= tails
        divergence += work
        for side in (y, tails):
            np.clip(side, np.finfo(y.dtype).tiny, 1, out=logarithm)
            np.log(logarithm, out=logarithm)
            logarithm *= side
            divergence += logarithm
        np.minimum(y, tails, out=work)
        work *= NEAR
        np.abs(difference, out=logarithm)

        def exact(near: IntArray) -> FloatArray:
            heads, rest, shift = (x.reshape(-1)[near] for x in (y, tails, difference))
            of_heads = heads * near_terms(np.log1p(shift / heads), 0.0)
            return np.asarray(of_heads + rest * near_terms(np.log1p(-shift / rest), 0.0))

        _patch(divergence, logarithm < work, exact)
        np.clip(divergence, 0, np.inf, out=divergence)
