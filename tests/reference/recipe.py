r"""Reference values of every loss, in mpmath and rational arithmetic, from the definitions.

Nothing here is taken from the library or uses its closed forms. The Fenchel-Young loss is
:math:`L_{FY}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle` with
:math:`\Omega^*` maximised numerically; the Fitzpatrick loss is

.. math::
    L_F(y, \theta) = \sup \{ \langle y - y', \theta'\rangle + \langle y', \theta\rangle :
                     \theta' \in \partial\Omega(y') \} - \langle y, \theta\rangle ,

maximised numerically too. ``smooth`` holds the potentials that need a root finder, ``exact``
those whose maximiser is rational (or a square root away).

Conventions:

- The inputs are floats, and every computation takes them at their exact binary value.
- On the simplex a float row rarely sums to exactly 1, so the recipe first divides y by its sum,
  exactly. On all other domains y is used as it is, and must lie in the domain.
- ``alpha`` of a Tsallis potential is the exact value of the double, e.g. of ``1.1``.
- ``y_star`` is the maximiser of the supremum: the link of θ for a Fenchel-Young loss. It is None
  where it is not unique (perceptrons with ties).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .exact import (
    CrossPolytope,
    Cube,
    Orthant,
    PerceptronBallLoss,
    PerceptronLoss,
    Polyhedron,
    QuadraticBallLoss,
    QuadraticLoss,
    Reals,
    Simplex,
)
from .precision import Evaluation
from .smooth import BinaryNegentropy, Negentropy, Potential, SmoothLoss, Tsallis

# Correct decimal digits of every value, in the relative sense.
DIGITS = 50

Loss = SmoothLoss | QuadraticLoss | QuadraticBallLoss | PerceptronLoss | PerceptronBallLoss


@dataclass(frozen=True)
class Pair:
    """A Fenchel-Young loss and its Fitzpatrick twin (None for perceptrons: they coincide).

    ``domain`` names the set the targets lie in, which decides what inputs are drawn.
    """

    name: str
    domain: str
    fenchel_young: Loss
    fitzpatrick: Loss | None

    @property
    def cases(self) -> dict[str, Loss]:
        """The losses by case name."""
        if self.fitzpatrick is None:
            return {self.name: self.fenchel_young}
        return {self.name: self.fenchel_young, f"fitzpatrick_{self.name}": self.fitzpatrick}


def _smooth(name: str, domain: str, potential: Potential) -> Pair:
    on_simplex = domain == "simplex"
    twins = (SmoothLoss(potential, fitzpatrick, on_simplex) for fitzpatrick in (False, True))
    return Pair(name, domain, *twins)


def _quadratic(name: str, domain: str, polyhedron: Polyhedron) -> Pair:
    return Pair(name, domain, QuadraticLoss(polyhedron, False), QuadraticLoss(polyhedron, True))


TSALLIS_ALPHAS = (1.1, 1.3, 1.7, 1.9)

PAIRS = (
    _quadratic("squared", "reals", Reals()),
    Pair("perceptron", "simplex", PerceptronLoss(Simplex()), None),
    _smooth("logistic", "simplex", Negentropy()),
    _quadratic("sparsemax", "simplex", Simplex()),
    _smooth("entmax15", "simplex", Tsallis(1.5)),
    _smooth("sigmoid", "cube", BinaryNegentropy()),
    _quadratic("sparse_sigmoid", "cube", Cube()),
    _smooth("poisson", "counts", Negentropy(linear=1)),
    *(_smooth(f"tsallis_{alpha}", "simplex", Tsallis(alpha)) for alpha in TSALLIS_ALPHAS),
    Pair("sparsemap_l2_ball", "l2_ball", QuadraticBallLoss(False), QuadraticBallLoss(True)),
    _quadratic("sparsemap_l1_ball", "l1_ball", CrossPolytope()),
    _quadratic("sparsemap_orthant", "orthant", Orthant()),
    Pair("perceptron_cube", "cube", PerceptronLoss(Cube()), None),
    Pair("perceptron_l2_ball", "l2_ball", PerceptronBallLoss(), None),
    Pair("perceptron_l1_ball", "l1_ball", PerceptronLoss(CrossPolytope()), None),
)

PAIR_OF_CASE = {case: pair for pair in PAIRS for case in pair.cases}
CASES = tuple(PAIR_OF_CASE)


def rationals(numbers: Iterable[float]) -> list[Fraction]:
    """The exact values of floats."""
    return [Fraction(float(number)) for number in numbers]


def target(case: str, y: Iterable[float]) -> list[Fraction]:
    """y as the recipe reads it: exact, and divided by its sum on the simplex."""
    row = rationals(y)
    if PAIR_OF_CASE[case].domain != "simplex":
        return row
    total = sum(row)
    return [entry / total for entry in row]


def evaluate(
    case: str, y: Iterable[float], theta: Iterable[float], digits: int = DIGITS
) -> Evaluation:
    """The loss named ``case`` at one (y, θ) to ``digits`` digits, and its maximiser."""
    loss = PAIR_OF_CASE[case].cases[case]
    return loss.evaluate(target(case, y), rationals(theta), digits)


def rounded(case: str, y: Iterable[float], theta: Iterable[float]) -> tuple[float, np.ndarray]:
    """The doubles nearest to the loss and to its maximiser (a row of NaN if not unique).

    A result next to the midpoint of two doubles, such as the sum of two scores plus 1e-74, needs
    more digits than usual to be rounded to the right side.
    """
    y, theta = list(y), list(theta)
    for digits in (DIGITS, 2 * DIGITS, 8 * DIGITS):
        evaluation = evaluate(case, y, theta, digits)
        if evaluation.rounds_safely(digits):
            break
    return evaluation.rounded(len(y))
