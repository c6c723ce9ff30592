r"""The sparse pairs, sparsemax and entmax15, in their common form.

With s = x − τ, where x = θ, or θ + y for Fitzpatrick sparsemax, the maximisers are

.. math:: p = (a/R)^P, \qquad \|a\|_P = R, \qquad a = (s)_+ ,

but :math:`a = (s + \sqrt{s^2 + 12 y})/2` for Fitzpatrick entmax15. P is 1 (sparsemax) or 2
(entmax15), the reach R is P for the Fenchel-Young loss and P + 1 for its twin. The norm is convex
and decreasing in τ, so that Newton's method increases to the root from any lower bound of it.
Entries with y = 0 have the loss c q p, where q = a/R; the others have the core's.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ._blocks import FloatArray

Dot = Callable[[FloatArray, FloatArray], FloatArray]

# Scores further below the highest of their row, whose squares overflow float32, go to the core.
_LOWEST = -1e15


@dataclass(frozen=True)
class SparsePair(ABC):
    """One of the two losses of a pair."""

    is_fitzpatrick: bool

    power: ClassVar[int]

    @property
    def reach(self) -> int:
        """R: an entry that exceeds τ by so much has p = 1, or more."""
        return self.power + 1 if self.is_fitzpatrick else self.power

    @property
    def shift(self) -> int:
        """How often y is in x."""
        return 0

    @property
    @abstractmethod
    def cost(self) -> float:
        """c."""

    def above(self, s: FloatArray, bend: FloatArray | None) -> FloatArray | None:
        """Write a in place of s, and return √(s² + 12 y) where that was needed.

        Args:
            s: entries.
            bend: what :meth:`bend` makes of their targets; None where y = 0.
        """
        del bend
        np.maximum(s, 0, out=s)
        return None

    def bend(self, y: FloatArray) -> FloatArray | None:
        """12 y, where a is more than (s)₊; None else."""
        del y
        return None

    def spread(self, a: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Write q in place of a, and p = q^P to ``out``, which is a itself for P = 1."""
        if self.power == 1:
            a /= self.reach
            return a
        p = np.multiply(a, a, out=out)
        p /= self.reach**2
        a /= self.reach
        return p

    @abstractmethod
    def loss(
        self, s: FloatArray, y: FloatArray, q: FloatArray, miss: FloatArray, dot: Dot
    ) -> FloatArray:
        """The loss of entries with y > 0, from q and miss = p − y, summed over rows by ``dot``."""

    @abstractmethod
    def curvature(self, p: FloatArray, y: FloatArray | None) -> FloatArray:
        """d = ∂p/∂s, from the maximiser; without y where that is zero."""

    def knows(self, x: FloatArray) -> bool:
        """Whether the formulas hold for all these entries with y > 0, less their row's highest."""
        del x
        return True


@dataclass(frozen=True)
class SparsemaxPair(SparsePair):
    """p = (x − τ)₊ / R."""

    power: ClassVar[int] = 1

    @property
    def shift(self) -> int:
        return int(self.is_fitzpatrick)

    @property
    def cost(self) -> float:
        return self.reach / 2

    def loss(
        self, s: FloatArray, y: FloatArray, q: FloatArray, miss: FloatArray, dot: Dot
    ) -> FloatArray:
        del q
        return dot(miss, miss) * (self.reach / 2) - dot(y, np.minimum(s, 0))

    def curvature(self, p: FloatArray, y: FloatArray | None) -> FloatArray:
        del y
        return np.asarray((p > 0).astype(p.dtype) / self.reach)


@dataclass(frozen=True)
class Entmax15Pair(SparsePair):
    """p = (a/R)²."""

    power: ClassVar[int] = 2

    @property
    def cost(self) -> float:
        return 1.0 if self.is_fitzpatrick else 2 / 3

    def bend(self, y: FloatArray) -> FloatArray | None:
        if not self.is_fitzpatrick:
            return None
        bend = 12 * y
        return np.maximum(bend, np.finfo(y.dtype).tiny, out=bend)

    def above(self, s: FloatArray, bend: FloatArray | None) -> FloatArray | None:
        if bend is None:
            np.maximum(s, 0, out=s)
            return None
        root = s * s
        root += bend
        np.sqrt(root, out=root)
        twice = np.copysign(root, s)
        twice += s
        # a is half of that, or by the product of the two solutions −6 y over it, if it is negative
        np.divide(bend, twice, out=s)
        s *= -0.5
        np.multiply(twice, 0.5, out=s, where=twice > 0)
        return root

    def loss(
        self, s: FloatArray, y: FloatArray, q: FloatArray, miss: FloatArray, dot: Dot
    ) -> FloatArray:
        if self.is_fitzpatrick:
            # (p − y)²/q, which is (p − y)(s − 2q) by the equation of q
            falling = s - 2 * q
            np.divide(miss, q, out=falling, where=s >= 0)
            return dot(miss, falling)
        root = np.sqrt(y)
        gap = root - q
        gap *= gap
        return dot(gap, 2 * root + q) * (2 / 3) - dot(y, np.minimum(s, 0))

    def curvature(self, p: FloatArray, y: FloatArray | None) -> FloatArray:
        q = np.sqrt(p)
        if not self.is_fitzpatrick:
            return q
        if y is None:
            return np.asarray(q * (2 / 3))
        scale = 3 * p + y
        return np.divide(2 * q * p, scale, out=np.zeros_like(p), where=scale > 0)

    def knows(self, x: FloatArray) -> bool:
        return not self.is_fitzpatrick or bool(x.min(initial=0) > _LOWEST)
