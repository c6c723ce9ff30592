"""Boosted trees for proportions, soft labels and classes, with the losses of this package.

Trees grow by LightGBM or XGBoost; the losses give them gradients and Hessians. The objectives are
for code that calls these libraries itself, CatBoost included; the estimators do the rest.
"""

from ._estimators import BoostedClassifier, BoostedProportionRegressor
from ._files import load_model, save_model
from ._objectives import (
    catboost_objective,
    lightgbm_metric,
    lightgbm_objective,
    xgboost_metric,
    xgboost_objective,
)

__all__ = [
    "BoostedClassifier",
    "BoostedProportionRegressor",
    "catboost_objective",
    "lightgbm_metric",
    "lightgbm_objective",
    "load_model",
    "save_model",
    "xgboost_metric",
    "xgboost_objective",
]
