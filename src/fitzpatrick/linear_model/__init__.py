"""Linear models x ↦ ŷ(Wx + b): scikit-learn estimators, and paths of models by one call."""

from ._cv import DEFAULT_ALPHAS, FitzpatrickClassifierCV, ProportionRegressorCV
from ._estimators import FitzpatrickClassifier, ProportionRegressor
from ._path import FittedModel, LinearPath, fit_path
from ._ranking import LabelRanker, read_rankings, write_rankings
from .solvers import Iteration, Status

__all__ = [
    "DEFAULT_ALPHAS",
    "FittedModel",
    "FitzpatrickClassifier",
    "FitzpatrickClassifierCV",
    "Iteration",
    "LabelRanker",
    "LinearPath",
    "ProportionRegressor",
    "ProportionRegressorCV",
    "Status",
    "fit_path",
    "read_rankings",
    "write_rankings",
]


def __dir__() -> list[str]:
    """The public names alone."""
    return __all__
