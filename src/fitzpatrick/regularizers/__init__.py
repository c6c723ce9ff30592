"""Regularisers Ω = Ψ + ι_C, each with its value, conjugate, link and two maximisers."""

from ._base import LabelSolution, Regularizer, Solution
from .bernoulli import Bernoulli
from .indicator import Indicator
from .negentropy import Negentropy
from .quadratic import Quadratic
from .squared_norm import SquaredNorm
from .tsallis import Tsallis
from .twice_differentiable import ConvergenceError, NewtonStatus, TwiceDifferentiable

__all__ = [
    "Bernoulli",
    "ConvergenceError",
    "Indicator",
    "LabelSolution",
    "Negentropy",
    "NewtonStatus",
    "Quadratic",
    "Regularizer",
    "Solution",
    "SquaredNorm",
    "Tsallis",
    "TwiceDifferentiable",
]
