"""Linear models and boosted trees behind one interface.

Models of one loss are fitted along a path of settings, from the simplest model to the most complex
one: penalties α that fall, or rounds of boosting that rise. Held-out errors choose among them,
always inside the training part. Boosted trees have the default settings otherwise, but for
smaller leaves where samples are few.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..linear_model import FittedModel, ProportionRegressor, fit_path
from ..linear_model._path import has_risen
from .protocol import LossChoice, Protocol, halfway

MODELS = ("linear", "boosted")
MIN_CELLS_FOR_THREADS = 1_000_000  # those that grow trees of a smaller table mostly wait
MAX_KEPT = 10_000_000  # coefficients of models that others may start at
MAX_LEAF = 20  # samples that a leaf needs; fewer where there are fewer than 200
# LightGBM leaves rare values out before it grows trees, and raises if no feature is left
_ANY_SPLIT = {"feature_pre_filter": False, "min_data_in_bin": 1}
NEEDS_LIBRARY = "they need lightgbm: pip install 'fitzpatrick[boosting]'"


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model at one setting of its path: a penalty α, or a number of rounds."""

    setting: float
    estimator: Any
    converged: bool = True


Keep = Callable[[Fitted], None]


def fit_models(
    choice: LossChoice,
    X: Any,
    Y: np.ndarray,
    settings: Iterable[float],
    protocol: Protocol,
    *,
    tol: float,
    n_threads: int | None = None,
    known: list[Fitted] | None = None,
    keep: Keep = lambda _: None,
) -> Fitted:
    """Fit one model after the other, and return the last.

    A boosted model adds to the trees of the last known one. A linear model starts at the
    coefficients of the next stronger penalty: from those of a weaker one it takes several times as
    many iterations. The new models are added to the known ones, of which the oldest are forgotten
    once they take much memory. The next setting is asked for after ``keep`` has seen the model
    before. Without ``n_threads`` their number is left to the libraries, but trees of small tables
    grow on one thread.
    """
    models = [] if known is None else known
    if choice.model == "boosted":
        return _boost(choice, X, Y, settings, n_threads, models, keep)
    scaled: dict[str, Any] = {
        "fit_intercept": protocol.intercept,
        "standardize": protocol.scaling == "standardize",
    }
    waiting = iter(settings)
    upcoming = next(waiting, None)

    def see(model: FittedModel) -> None:
        estimator = ProportionRegressor.from_model(
            model, choice.name, tightness=choice.tightness, **scaled
        )
        models.append(Fitted(model.alpha, estimator, model.status.converged))
        del models[: -max(1, MAX_KEPT // model.coef.size)]
        keep(models[-1])

    def next_stronger(alpha: float) -> Fitted | None:
        stronger = [one for one in models if one.setting > alpha]
        return min(stronger, key=lambda one: one.setting, default=None)

    def falling() -> Iterator[float]:
        """The next settings, as long as they are best started at the one before."""
        nonlocal upcoming
        while upcoming is not None:
            yield upcoming
            upcoming = next(waiting, None)
            if upcoming is not None and next_stronger(upcoming) is not models[-1]:
                return

    while upcoming is not None:
        origin = next_stronger(upcoming)
        start = origin.estimator if origin else None
        fit_path(
            X,
            Y,
            choice.loss,
            falling(),
            **scaled,
            tol=tol,
            max_iter=protocol.max_iter,
            n_threads=n_threads,
            start=(start.coef_, start.intercept_) if start else None,
            callback=see,
        )
    return models[-1]


def _boost(
    choice: LossChoice,
    X: Any,
    Y: np.ndarray,
    settings: Iterable[float],
    n_threads: int | None,
    known: list[Fitted],
    keep: Keep,
) -> Fitted:
    from ..boosting import BoostedProportionRegressor

    estimator = BoostedProportionRegressor(
        choice.name,
        tightness=choice.tightness,
        min_child_samples=max(1, min(MAX_LEAF, X.shape[0] // 10)),
        warm_start=True,
        n_jobs=n_threads or (1 if X.shape[0] * X.shape[1] < MIN_CELLS_FOR_THREADS else None),
        library_params=_ANY_SPLIT,
    )
    last = known[-1] if known else Fitted(0, estimator)
    for rounds in settings:
        more = int(rounds - last.setting)
        # a fit adds to a copy, which has a list of trees of its own
        estimator = copy(last.estimator).set_params(n_estimators=more)
        last = Fitted(rounds, estimator.fit(X, Y))
        known[:] = [last]
        keep(last)
    return last


def can_boost() -> bool:
    """True if the library that grows trees is installed."""
    return find_spec("lightgbm") is not None


def direction(choice: LossChoice) -> int:
    """1 if the settings rise from simple to complex models, -1 if they fall."""
    return 1 if choice.model == "boosted" else -1


def in_order(choice: LossChoice, settings: Iterable[float]) -> tuple[float, ...]:
    """Different settings, from the simplest model to the most complex one."""
    return tuple(sorted(set(settings), key=lambda setting: direction(choice) * setting))


def in_words(choice: LossChoice, settings: str) -> str:
    """A setting, or several, as a reader is told them."""
    if choice.model == "boosted":
        return "1 round" if settings == "1" else f"{settings} rounds"
    return f"α = {settings}"


def grid_of(choice: LossChoice, protocol: Protocol) -> tuple[float, ...]:
    """The settings to choose from, from the simplest model."""
    return protocol.rounds if choice.model == "boosted" else protocol.alphas


def search(
    choice: LossChoice, protocol: Protocol, errors: Mapping[float, float]
) -> Iterator[float]:
    """The settings to fit, one after the other.

    The held-out error of each setting is to be added to ``errors`` before the next is asked for.
    """
    for setting in grid_of(choice, protocol):
        yield setting
        if not protocol.whole_grid and has_risen(list(errors.values())):
            break
    # the rounds are close to each other, and trees that have grown stay
    refines = protocol.refine and choice.model == "linear"
    while refines and (between := halfway(errors)):
        yield from between
