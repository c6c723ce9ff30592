r"""The sparse losses, those of sparsemax and entmax15, in their common form at a tightness c.

With s = x − τ, where x = θ + c y for sparsemax and x = θ for entmax15, the maximizers are

.. math:: p = (a/R)^P, \qquad \|a\|_P = R, \qquad a = (s)_+ ,

but :math:`a = (s + \sqrt{s^2 + 4 R c y})/2` for entmax15. P is 1 (sparsemax) or 2 (entmax15), and
the reach R is P + c. The norm is convex and decreasing in τ, so that Newton's method increases to
the root from any lower bound of it. With q = a/R, entries with y = 0 have the loss R q p/(P + 1);
the others have the core's.
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
class SparseFormula(ABC):
    """The losses of one regularizer, at one tightness."""

    tightness: float

    power: ClassVar[int]

    @property
    def reach(self) -> float:
        """R: an entry that exceeds τ by so much has p = 1, or more."""
        return self.power + self.tightness

    @property
    def shift(self) -> float:
        """How often y is in x."""
        return 0.0

    @property
    def cost(self) -> float:
        """The loss of entries with y = 0, over q p."""
        return self.reach / (self.power + 1)

    def above(self, s: FloatArray, bend: FloatArray | None) -> FloatArray | None:
        """Write a in place of s, and return √(s² + 4 R c y) where that was needed.

        Args:
            s: entries.
            bend: what :meth:`bend` makes of their targets; None where c y = 0.
        """
        del bend
        np.clip(s, 0, np.inf, out=s)
        return None

    def bend(self, y: FloatArray) -> FloatArray | None:
        """4 R c y, where a is more than (s)₊; None else."""
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

    def knows(self, x: FloatArray) -> bool:
        """Whether the formulas hold for all these entries with y > 0, less their row's highest."""
        del x
        return True


@dataclass(frozen=True)
class Sparsemax(SparseFormula):
    """p = (x − τ)₊ / R."""

    power: ClassVar[int] = 1

    @property
    def shift(self) -> float:
        return self.tightness

    def loss(
        self, s: FloatArray, y: FloatArray, q: FloatArray, miss: FloatArray, dot: Dot
    ) -> FloatArray:
        del q
        return dot(miss, miss) * (self.reach / 2) - dot(y, np.minimum(s, 0))


@dataclass(frozen=True)
class Entmax15(SparseFormula):
    """p = (a/R)²."""

    power: ClassVar[int] = 2

    def bend(self, y: FloatArray) -> FloatArray | None:
        if self.tightness == 0:
            return None
        bend = (4 * self.reach * self.tightness) * y
        return np.asarray(np.maximum(bend, np.finfo(y.dtype).tiny))

    def above(self, s: FloatArray, bend: FloatArray | None) -> FloatArray | None:
        if bend is None:
            np.clip(s, 0, np.inf, out=s)
            return None
        root = s * s
        root += bend
        np.sqrt(root, out=root)
        twice = np.copysign(root, s)
        twice += s
        # a is half of that if it is positive, else by the product −R c y of the two solutions
        np.divide(bend, twice, out=s)
        s *= -0.5
        np.multiply(twice, 0.5, out=s, where=twice > 0)
        return root

    def loss(
        self, s: FloatArray, y: FloatArray, q: FloatArray, miss: FloatArray, dot: Dot
    ) -> FloatArray:
        c = self.tightness
        if c == 1:
            return self._quadratic_form(s, q, miss, dot)
        root = np.sqrt(y)
        gap = root - q
        gap *= gap
        divergence = dot(gap, 2 * root + q) * (2 / 3)
        if c == 0:
            return divergence - dot(y, np.minimum(s, 0))
        quadratic = self._quadratic_form(s, q, miss, dot)
        if c < 1:
            return (1 - c) * divergence + quadratic
        return divergence + np.maximum(quadratic - c * divergence, 0)

    def _quadratic_form(
        self, s: FloatArray, q: FloatArray, miss: FloatArray, dot: Dot
    ) -> FloatArray:
        """Sums of c (p − y)²/q, which is (p − y)(s − 2q) by the equation of q."""
        falling = s - 2 * q
        numerator = miss if self.tightness == 1 else self.tightness * miss
        np.divide(numerator, q, out=falling, where=s >= 0)
        return dot(miss, falling)

    def knows(self, x: FloatArray) -> bool:
        return self.tightness == 0 or bool(x.min(initial=0) > _LOWEST)
