"""Linear models x ↦ ŷ(Wx + b) as scikit-learn estimators."""

from ._classifier import FitzpatrickClassifier
from ._cv import FitzpatrickClassifierCV, ProportionRegressorCV
from ._regressor import ProportionRegressor
from .solvers import Status

__all__ = [
    "FitzpatrickClassifier",
    "FitzpatrickClassifierCV",
    "ProportionRegressor",
    "ProportionRegressorCV",
    "Status",
]
