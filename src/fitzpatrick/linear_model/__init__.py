"""Linear models x ↦ ŷ(Wx + b): scikit-learn estimators, and paths of models by one call."""

from ._checks import check_features
from ._classifier import FitzpatrickClassifier
from ._cv import DEFAULT_ALPHAS, FitzpatrickClassifierCV, ProportionRegressorCV
from ._design import constant_columns
from ._path import LinearPath, fit_path, has_risen
from ._problem import FittedModel
from ._regressor import ProportionRegressor
from .solvers import Iteration, Status

__all__ = [
    "DEFAULT_ALPHAS",
    "FittedModel",
    "FitzpatrickClassifier",
    "FitzpatrickClassifierCV",
    "Iteration",
    "LinearPath",
    "ProportionRegressor",
    "ProportionRegressorCV",
    "Status",
    "check_features",
    "constant_columns",
    "fit_path",
    "has_risen",
]
