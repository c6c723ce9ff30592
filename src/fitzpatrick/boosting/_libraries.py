"""The libraries that grow trees: what differs between them.

Each class trains a model of its library, called a part: the trees of one fit, on top of the trees
of earlier fits in a warm start. ``scores`` are what the trees of a part add, ``rounds`` how many of
its rounds count, ``gains`` the gain of the splits by each feature. ``to_text`` and ``from_text``
use the library's own text format; the latter returns the numbers of features and of targets, too.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ._trees import checked_lightgbm, checked_xgboost

# LightGBM drops features that no split can use, and fails if none is left. On few rows these are
# kept, which takes no longer, and gives trees of one leaf.
MIN_FILTERED_ROWS = 1000


class Samples(NamedTuple):
    """Features, the scores (n, k) that trees start from, weights (n,) or None, and what for.

    ``judge`` is what trees lower: gradients and Hessians of the training samples, or one number of
    held-out samples for early stopping, from their scores and the library's data set.
    """

    X: Any
    scores: np.ndarray
    weights: np.ndarray | None
    judge: Callable[[Any, Any], Any]


def _load(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"library={name!r} needs the package {name}, which is not installed"
        ) from error


def _shared(given: dict[str, Any], n_targets: int) -> dict[str, Any]:
    """The parameters of an estimator by names that both libraries know."""
    same = ("learning_rate", "reg_lambda", "subsample", "random_state")
    return {name: given[name] for name in same if given[name] is not None} | {
        "num_class": n_targets,
        "max_leaves": given["num_leaves"],
        "max_depth": max(given["max_depth"], 0),
        "colsample_bytree": given["colsample"],
        "n_jobs": given["n_jobs"] or 0,
    }


class LightGBM:
    def train(self, samples: Samples, held_out: Samples | None, given: dict[str, Any]) -> Any:
        lightgbm = _load("lightgbm")
        params = _shared(given, samples.scores.shape[1]) | {
            "objective": samples.judge,
            "metric": "None",
            "min_child_samples": given["min_child_samples"],
            "subsample_freq": 1,
            "verbosity": -1,
            **(given["library_params"] or {}),
        }
        if len(samples.scores) < MIN_FILTERED_ROWS:
            params.setdefault("feature_pre_filter", False)
        categories = given["categorical_features"]

        def data(samples: Samples, reference: Any = None) -> Any:
            X, scores, weights, _ = samples
            return lightgbm.Dataset(
                _as_matrix(X), np.zeros(len(scores)), weight=weights, reference=reference,
                init_score=scores[:, 0] if scores.shape[1] == 1 else scores,
                categorical_feature="auto" if categories is None else categories,
                params={"verbosity": -1},
            )  # fmt: skip

        training, options = data(samples), {}
        if held_out is not None:
            judge = held_out.judge
            stopping = lightgbm.early_stopping(given["early_stopping_rounds"], verbose=False)
            options = {
                "valid_sets": [data(held_out, training)],
                "feval": lambda scores, data: ("metric", judge(scores, data), False),
                "callbacks": [stopping, lightgbm.log_evaluation(given["verbose"])],
            }
        try:
            return lightgbm.train(params, training, given["n_estimators"], **options)
        except lightgbm.basic.LightGBMError as error:
            raise ValueError(
                "LightGBM cannot grow trees on these features, and does so if none of them leaves "
                f"{given['min_child_samples']} samples (min_child_samples) on either side of a "
                f"split: {error}"
            ) from error

    def scores(self, part: Any, X: Any) -> np.ndarray:
        return np.asarray(part.predict(_as_matrix(X), raw_score=True))

    def rounds(self, part: Any) -> int:
        return int(part.best_iteration if part.best_iteration > 0 else part.current_iteration())

    def gains(self, part: Any) -> np.ndarray:
        return np.asarray(part.feature_importance("gain"))

    def to_text(self, part: Any) -> str:
        return checked_lightgbm(part.model_to_string())

    def from_text(self, text: str) -> tuple[Any, int, int]:
        part = _load("lightgbm").Booster(model_str=checked_lightgbm(text))
        return part, part.num_feature(), part.num_model_per_iteration()


def _as_matrix(X: Any) -> Any:
    """Sparse features in the only form that LightGBM takes."""
    return sparse.csr_matrix(X) if sparse.issparse(X) else X


class XGBoost:
    """Trees of XGBoost, which has no rule for the number of samples of a leaf."""

    def train(self, samples: Samples, held_out: Samples | None, given: dict[str, Any]) -> Any:
        xgboost = _load("xgboost")
        params = _shared(given, samples.scores.shape[1]) | {
            "base_score": 0.0,
            "disable_default_eval_metric": True,
            "grow_policy": "lossguide",
            "min_child_weight": 1e-3,
            "tree_method": "hist",
            "verbosity": 0,
            **(given["library_params"] or {}),
        }
        if params["num_class"] == 1:
            del params["num_class"]
        categories = given["categorical_features"]

        def data(samples: Samples) -> Any:
            X, scores, weights, _ = samples
            kinds = None
            if categories is not None and not hasattr(X, "columns"):
                kinds = np.where(np.isin(np.arange(X.shape[1]), categories), "c", "q").tolist()
            return xgboost.DMatrix(
                X, np.zeros(len(scores)), weight=weights, base_margin=scores, feature_types=kinds,
                enable_categorical=True, nthread=given["n_jobs"],
            )  # fmt: skip

        options: dict[str, Any] = {}
        if held_out is not None:
            judge = held_out.judge
            options = {
                "evals": [(data(held_out), "held_out")],
                "custom_metric": lambda scores, data: ("metric", judge(scores, data)),
                "early_stopping_rounds": given["early_stopping_rounds"],
                "verbose_eval": given["verbose"] or False,
            }
        rounds = given["n_estimators"]
        return xgboost.train(params, data(samples), rounds, obj=samples.judge, **options)

    def scores(self, part: Any, X: Any) -> np.ndarray:
        data = _load("xgboost").DMatrix(X, enable_categorical=True)
        rounds = 0, self.rounds(part)
        margins = part.predict(data, output_margin=True, iteration_range=rounds)
        return np.asarray(margins, dtype=np.float64)

    def rounds(self, part: Any) -> int:
        return int(part.attr("best_iteration") or part.num_boosted_rounds() - 1) + 1

    def gains(self, part: Any) -> np.ndarray:
        by_name = part.get_score(importance_type="total_gain")
        names = part.feature_names or [f"f{i}" for i in range(part.num_features())]
        return np.asarray([by_name.get(name, 0.0) for name in names])

    def to_text(self, part: Any) -> str:
        return checked_xgboost(bytes(part.save_raw("json")).decode())[0]

    def from_text(self, text: str) -> tuple[Any, int, int]:
        text, n_targets = checked_xgboost(text)
        part = _load("xgboost").Booster()
        part.load_model(bytearray(text, "utf-8"))
        return part, part.num_features(), n_targets


LIBRARIES: dict[str, Any] = {"lightgbm": LightGBM(), "xgboost": XGBoost()}
