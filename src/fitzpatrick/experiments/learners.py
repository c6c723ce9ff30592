"""Linear models and boosted trees behind one interface.

Models of one loss are fitted along a path of settings, from the simplest model to the most complex
one: penalties α that fall, or rounds of boosting that rise. Held-out errors choose among them,
always inside the training part. Boosted trees have the default settings otherwise, but for
smaller leaves where samples are few.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..linear_model import FittedModel, ProportionRegressor
from ..linear_model._checks import check_features, check_parameters, check_proportions
from ..linear_model._path import PenaltyPath, has_risen
from ..linear_model._sums import Data
from .protocol import LossChoice, Protocol, halfway

MIN_CELLS_FOR_THREADS = 1_000_000  # threads mostly wait where trees of smaller tables grow
MAX_KEPT = 10_000_000  # coefficients that are kept for other fits to start at
MAX_TREE_CLASSES = 50  # from here on, trees for every class take most of a comparison's time
MAX_LEAF = 20  # samples that a leaf needs; fewer where there are fewer than 200
# LightGBM leaves rare values out before it grows trees, and raises if no feature is left
_ANY_SPLIT = {"feature_pre_filter": False, "min_data_in_bin": 1}
NEEDS_LIBRARY = "they need lightgbm: pip install 'fitzpatrick[boosting]'"


Fit = Callable[[float], Any]  # an estimator for a penalty α, or for a number of rounds


def learner(
    choice: LossChoice,
    X: Any,
    Y: np.ndarray,
    protocol: Protocol,
    *,
    tol: float,
    n_threads: int | None = None,
    callback: Any = None,
) -> Fit:
    """A function that fits the model of one setting after the other.

    A boosted model adds to the trees of the last one. A linear model starts at the coefficients of
    the next stronger penalty: from those of a weaker one it takes several times as many iterations.
    ``callback`` sees each of them. Without ``n_threads`` their number is left to the libraries, but
    trees of small tables grow on one thread.
    """
    if choice.model == "boosted":
        return _boosted(choice, X, Y, n_threads)
    scaled: dict[str, Any] = {
        "fit_intercept": protocol.intercept,
        "standardize": protocol.scaling == "standardize",
    }
    solver = {"tol": tol, "max_iter": protocol.max_iter, "callback": callback}
    settings = check_parameters("fit", choice.loss, **scaled, **solver, n_threads=n_threads)
    X = check_features(X)
    Y = check_proportions(Y, choice.loss, X)
    path = PenaltyPath(Data(X, Y, Y.shape[1], None, binary=False).sums(settings), settings)
    known: list[FittedModel] = []  # the oldest are forgotten once they take much memory
    models: Iterator[FittedModel] = iter(())
    asked = 0.0

    def fit(alpha: float) -> Any:
        nonlocal models, asked
        asked = alpha
        stronger = [model for model in known if model.alpha > alpha]
        origin = min(stronger, key=lambda model: model.alpha, default=None)
        if origin is None or origin is not known[-1]:
            start = None if origin is None else (origin.coef, origin.intercept)
            models = path.models(iter(lambda: asked, None), start)
        model = next(models)
        known.append(model)
        del known[: -max(1, MAX_KEPT // model.coef.size)]
        how = {"tightness": choice.tightness, **scaled}
        return ProportionRegressor.from_model(model, choice.name, **how)

    return fit


def _boosted(choice: LossChoice, X: Any, Y: np.ndarray, n_threads: int | None) -> Fit:
    from ..boosting import BoostedProportionRegressor

    estimator = BoostedProportionRegressor(
        choice.name,
        tightness=choice.tightness,
        min_child_samples=max(1, min(MAX_LEAF, X.shape[0] // 10)),
        warm_start=True,
        n_jobs=n_threads or (1 if X.shape[0] * X.shape[1] < MIN_CELLS_FOR_THREADS else None),
        library_params=_ANY_SPLIT,
    )
    grown = 0

    def fit(rounds: float) -> Any:
        nonlocal estimator, grown
        # a fit adds to a copy, which has a list of trees of its own
        more = copy(estimator).set_params(n_estimators=int(rounds) - grown)
        estimator, grown = more.fit(X, Y), int(rounds)
        return estimator

    return fit


def has_converged(estimator: Any) -> bool:
    """True unless a linear model ended above the tolerance; trees always are as asked for."""
    return not isinstance(estimator, ProportionRegressor) or estimator.status_.converged


def can_boost() -> bool:
    """True if the library that grows trees is installed."""
    return find_spec("lightgbm") is not None


def search(
    choice: LossChoice, protocol: Protocol, errors: Mapping[float, float]
) -> Iterator[float]:
    """The settings to fit, one after the other.

    The held-out error of each setting is to be added to ``errors`` before the next is asked for.
    """
    for setting in choice.grid(protocol):
        yield setting
        if not protocol.whole_grid and has_risen(list(errors.values())):
            break
    # the rounds are close to each other, and trees that have grown stay
    refines = protocol.refine and choice.model == "linear"
    while refines and (between := halfway(errors)):
        yield from between
