r"""Reference values of every loss, in mpmath and rational arithmetic, from the definition.

Nothing here is taken from the library or uses its closed forms. The loss of tightness c is

.. math::
    L_c(y, \theta) = \sup_{y'} \, \Omega(y) - \Omega(y') - c \, D_\Omega(y, y')
                     + \langle y' - y, \theta\rangle ,

maximized numerically, where :math:`D_\Omega` is the Bregman divergence and, for c > 0, y' runs
over the points where it is finite. At c = 0 this is the Fenchel-Young loss
:math:`\Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle`, at c = 1 the Fitzpatrick loss

.. math::
    L_F(y, \theta) = \sup \{ \langle y - y', \theta'\rangle + \langle y', \theta\rangle :
                     \theta' \in \partial\Omega(y') \} - \langle y, \theta\rangle ,

which a test confirms. ``smooth`` holds the potentials that need a root finder, ``exact`` those
whose maximizer is rational (or a square root away).

A case is a regularizer and a tightness, and its name is that of the regularizer at c = 0
(``logistic``), ``fitzpatrick_logistic`` at c = 1, and ``fitzpatrick_logistic@0.25`` at another c.

Conventions:

- The inputs are floats, and every computation takes them at their exact binary value.
- On the simplex a float row rarely sums to exactly 1, so the recipe first divides y by its sum,
  exactly. On all other domains y is used as it is, and must lie in the domain.
- The tightness, and ``alpha`` of a Tsallis potential, are the exact values of the doubles that
  they are written as, e.g. of ``1.1``.
- ``y_star`` is the maximizer of the supremum: the link of θ at c = 0. It is None where it is not
  unique (perceptrons with ties).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .exact import (
    CUBE,
    ORTHANT,
    REALS,
    Ball,
    CrossPolytope,
    Domain,
    QuadraticLoss,
    Simplex,
)
from .precision import Evaluation
from .smooth import BinaryNegentropy, Potential, SmoothLoss, Tsallis

# Correct decimal digits of every value, in the relative sense.
DIGITS = 50
# The tightnesses that are stored for all rows, and those that are stored for some of them.
ENDS = (0.0, 1.0)
OTHERS = (0.25, 0.5, 2.0)
# Those of the few rows that are stored for many tightnesses, near 0 and far beyond 1.
MANY = (0.0, 0.001, 0.5, 1.0, 1.5, 3.0, 10.0, 100.0)

Loss = SmoothLoss | QuadraticLoss


@dataclass(frozen=True)
class Regularizer:
    """A regularizer and its losses.

    ``domain`` names the set the targets lie in, which decides what inputs are drawn;
    ``loss_at`` gives the loss of a tightness. The losses of a perceptron do not depend on it.
    """

    name: str
    domain: str
    loss_at: Callable[[Fraction], Loss]
    is_perceptron: bool = False

    def case(self, tightness: float) -> str:
        """The name of the loss with that tightness."""
        if tightness == 0 or self.is_perceptron:
            return self.name
        return f"fitzpatrick_{self.name}" + ("" if tightness == 1 else f"@{tightness:g}")

    def cases(self, tightnesses: Iterable[float]) -> tuple[str, ...]:
        """The names of the losses with these tightnesses, each once."""
        return tuple(dict.fromkeys(map(self.case, tightnesses)))


def _smooth(name: str, domain: str, potential: Potential) -> Regularizer:
    on_simplex = domain == "simplex"
    return Regularizer(name, domain, lambda c: SmoothLoss(potential, c, on_simplex))


def _quadratic(name: str, domain: str, points: Domain) -> Regularizer:
    return Regularizer(name, domain, lambda c: QuadraticLoss(points, c))


def _indicator(name: str, domain: str, points: Domain) -> Regularizer:
    return Regularizer(name, domain, lambda c: QuadraticLoss(points, c, 0), is_perceptron=True)


def tsallis(alpha: float) -> Regularizer:
    """The Tsallis entropy of any order from 1 to 2, stored or not."""
    return _smooth(f"tsallis_{alpha}", "simplex", Tsallis(alpha))


TSALLIS_ALPHAS = (1.1, 1.3, 1.7, 1.9)

REGULARIZERS = (
    _quadratic("squared", "reals", REALS),
    _indicator("perceptron", "simplex", Simplex()),
    _smooth("logistic", "simplex", Tsallis(1.0)),
    _quadratic("sparsemax", "simplex", Simplex()),
    _smooth("entmax15", "simplex", Tsallis(1.5)),
    _smooth("sigmoid", "cube", BinaryNegentropy()),
    _quadratic("sparse_sigmoid", "cube", CUBE),
    _smooth("poisson", "counts", Tsallis(1.0)),
    *map(tsallis, TSALLIS_ALPHAS),
    _quadratic("sparsemap_l2_ball", "l2_ball", Ball()),
    _quadratic("sparsemap_l1_ball", "l1_ball", CrossPolytope()),
    _quadratic("sparsemap_orthant", "orthant", ORTHANT),
    _indicator("perceptron_cube", "cube", CUBE),
    _indicator("perceptron_l2_ball", "l2_ball", Ball()),
    _indicator("perceptron_l1_ball", "l1_ball", CrossPolytope()),
)
_BY_NAME = {regularizer.name: regularizer for regularizer in REGULARIZERS}

END_CASES = tuple(case for regularizer in REGULARIZERS for case in regularizer.cases(ENDS))
OTHER_CASES = tuple(
    case for regularizer in REGULARIZERS for case in regularizer.cases(OTHERS) if "@" in case
)
# What is stored.
CASES = END_CASES + OTHER_CASES


def regularizer_of(case: str) -> Regularizer:
    """The regularizer that a case is about."""
    return _BY_NAME[case.removeprefix("fitzpatrick_").partition("@")[0]]


def loss_of(case: str) -> Loss:
    """The loss that a case names, of any tightness, stored or not."""
    tightness = 0.0 if case in _BY_NAME else float(case.partition("@")[2] or 1)
    return regularizer_of(case).loss_at(Fraction(tightness))


def rationals(numbers: Iterable[float]) -> list[Fraction]:
    """The exact values of floats."""
    return [Fraction(float(number)) for number in numbers]


def target(case: str, y: Iterable[float]) -> list[Fraction]:
    """y as the recipe reads it: exact, and divided by its sum on the simplex."""
    row = rationals(y)
    if regularizer_of(case).domain != "simplex":
        return row
    total = sum(row)
    return [entry / total for entry in row]


def evaluate(
    case: str, y: Iterable[float], theta: Iterable[float], digits: int = DIGITS
) -> Evaluation:
    """The loss named ``case`` at one (y, θ) to ``digits`` digits, and its maximizer."""
    return loss_of(case).evaluate(target(case, y), rationals(theta), digits)


def recompute(case: str, y: Iterable[float], theta: Iterable[float]) -> tuple[float, np.ndarray]:
    """The doubles nearest to the loss and to its maximizer (a row of NaN if not unique).

    A result next to the midpoint of two doubles, such as the sum of two scores plus 1e-74, needs
    more digits than usual to be rounded to the right side.
    """
    y, theta = list(y), list(theta)
    for digits in (DIGITS, 2 * DIGITS, 8 * DIGITS):
        evaluation = evaluate(case, y, theta, digits)
        if evaluation.rounds_safely(digits):
            break
    return evaluation.rounded(len(y))
