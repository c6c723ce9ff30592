"""A regularizer of a user's own."""

from dataclasses import dataclass

from fitzpatrick.regularizers import Negentropy, SeparableRegularizer
from fitzpatrick.regularizers._base import Elementwise
from fitzpatrick.sets import Simplex

NEGENTROPY = Negentropy()


@dataclass(frozen=True, eq=False)
class HalfScores(Elementwise):
    """Formulas of the negentropy at θ/2."""

    of_half: Elementwise

    def point(self, s):
        p, d = self.of_half.point(s / 2)
        return p, d / 2

    def terms(self, s):
        return 2 * self.of_half.terms(s / 2)

    def start(self, theta):
        return 2 * self.of_half.start(theta / 2)


@dataclass(frozen=True, eq=False)
class Doubled(SeparableRegularizer):
    """Twice the negentropy, as a user would write it, without equality or a place in the registry.

    Its link is the soft argmax of θ/2, which is no α-entmax of θ.
    """

    domain = Simplex()

    def potential(self, y):
        return 2 * NEGENTROPY.potential(y)

    def potential_gradient(self, z):
        return 2 * NEGENTROPY.potential_gradient(z)

    def potential_curvature(self, z, v):
        return 2 * NEGENTROPY.potential_curvature(z, v)

    def kernel(self, y, tightness):
        return HalfScores(NEGENTROPY.kernel(y, tightness))

    def slope(self, p, y, tightness):
        return NEGENTROPY.slope(p, y, tightness) / 2
