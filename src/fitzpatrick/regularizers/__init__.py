"""Regularizers Ω = Ψ + ι_C, each with its value, conjugate, link and the family of its losses."""

from ..sets import ConvergenceError as ConvergenceError  # described with the sets
from ._base import Elementwise, Regularizer, SeparableRegularizer, Solution
from .bernoulli import Bernoulli
from .f_divergence import FDivergence
from .indicator import Indicator
from .negentropy import Negentropy
from .quadratic import Quadratic
from .squared_norm import SquaredNorm
from .tsallis import Tsallis
from .twice_differentiable import NewtonStatus, TwiceDifferentiable

__all__ = [
    "Bernoulli",
    "Elementwise",
    "FDivergence",
    "Indicator",
    "Negentropy",
    "NewtonStatus",
    "Quadratic",
    "Regularizer",
    "SeparableRegularizer",
    "Solution",
    "SquaredNorm",
    "Tsallis",
    "TwiceDifferentiable",
]
