"""The libraries that grow trees, behind one interface."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse

from ._objectives import Derivatives, flat_if_single


class HeldOut(NamedTuple):
    """Samples that are not fitted to, and what early stopping lowers of their scores."""

    X: Any
    judge: Callable[[Any], float]


class Booster(ABC):
    """Trees of a library, in one part for each fit of a warm start.

    Attributes:
        name: of the library, for ``library=``.
        names: of the estimators' parameters that the library calls otherwise.
        defaults: further parameters of the library.
    """

    name: ClassVar[str]
    names: ClassVar[dict[str, str]]
    defaults: ClassVar[dict[str, Any]]

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    @classmethod
    def module(cls) -> Any:
        """The library."""
        try:
            return import_module(cls.name)
        except ImportError as error:
            raise ImportError(
                f"library={cls.name!r} needs the package {cls.name}, which is not installed"
            ) from error

    @classmethod
    def train(
        cls,
        X: Any,
        derivatives: Derivatives,
        start: np.ndarray,
        parameters: dict[str, Any],
        held_out: HeldOut | None,
        previous: Self | None,
    ) -> Self:
        """Grow trees from the scores ``start``, and on top of the trees of a previous fit.

        Args:
            X: features.
            derivatives: of the loss at their targets.
            start: scores (k,).
            parameters: of the estimator.
            held_out: for early stopping, or None.
            previous: the trees of the previous fit, or None.
        """

        def begin(X: Any) -> np.ndarray:
            scores = np.tile(start, (X.shape[0], 1))
            return scores if previous is None else scores + previous.scores(X).reshape(scores.shape)

        params = {name: parameters[ours] for ours, name in cls.names.items()}
        params |= cls.defaults | {"num_class": derivatives.shape[1]}
        params["seed"] = parameters["random_state"] or 0
        part = cls._train(X, derivatives, begin, params, parameters, held_out)
        return cls([*(previous.parts if previous is not None else []), part])

    @classmethod
    @abstractmethod
    def _train(
        cls,
        X: Any,
        derivatives: Derivatives,
        begin: Callable[[Any], np.ndarray],
        params: dict[str, Any],
        parameters: dict[str, Any],
        held_out: HeldOut | None,
    ) -> Any:
        """The library's own model, from its ``params`` and the estimator's ``parameters``."""

    @abstractmethod
    def scores(self, X: Any) -> np.ndarray:
        """What the trees add to the start."""

    @abstractmethod
    def rounds(self, part: Any) -> int:
        """How many rounds of a part count."""

    @abstractmethod
    def gains(self, n_features: int) -> np.ndarray:
        """The gain of the splits by each feature."""

    @staticmethod
    @abstractmethod
    def to_text(part: Any) -> str:
        """A part in the library's own text format."""

    @classmethod
    @abstractmethod
    def from_text(cls, text: str) -> tuple[Any, int, int]:
        """A part, with its numbers of features and of targets."""

    @classmethod
    def from_texts(cls, texts: list[str], n_features: int, n_targets: int) -> Self:
        """All parts; raises a ValueError unless the texts are trees of these shapes."""
        parts = []
        for text in texts:
            try:
                part, *shape = cls.from_text(text)
            except Exception as error:  # the libraries raise whatever their parsers met
                raise ValueError(f"{cls.name} cannot read its trees: {error}") from error
            if shape != [n_features, n_targets]:
                raise ValueError(
                    f"its trees have {shape[0]} features and {shape[1]} targets, its description "
                    f"has {n_features} and {n_targets}"
                )
            parts.append(part)
        return cls(parts)


def _as_matrix(X: Any) -> Any:
    """Sparse features in the only form that LightGBM takes."""
    return sparse.csr_matrix(X) if sparse.issparse(X) else X


class LightGBM(Booster):
    """Trees of LightGBM."""

    name = "lightgbm"
    names: ClassVar = {
        "learning_rate": "learning_rate",
        "num_leaves": "num_leaves",
        "max_depth": "max_depth",
        "min_child_samples": "min_data_in_leaf",
        "reg_lambda": "lambda_l2",
        "subsample": "bagging_fraction",
        "colsample": "feature_fraction",
    }
    defaults: ClassVar = {"metric": "None", "verbosity": -1, "bagging_freq": 1}

    @classmethod
    def _train(
        cls,
        X: Any,
        derivatives: Derivatives,
        begin: Callable[[Any], np.ndarray],
        params: dict[str, Any],
        parameters: dict[str, Any],
        held_out: HeldOut | None,
    ) -> Any:
        lightgbm = cls.module()
        params["objective"] = lambda scores, _: flat_if_single(derivatives(scores))
        params |= {"num_threads": parameters["n_jobs"] or 0} | (parameters["library_params"] or {})
        categories = parameters["categorical_features"]
        kinds = "auto" if categories is None else list(categories)

        def data(X: Any, reference: Any = None) -> Any:
            scores = begin(X)
            return lightgbm.Dataset(
                _as_matrix(X), np.zeros(len(scores)), reference=reference,
                init_score=scores.ravel() if scores.shape[1] == 1 else scores,
                categorical_feature=kinds, params={"verbosity": -1},
            )  # fmt: skip

        training, options = data(X), {}
        if held_out is not None:
            judge, patience = held_out.judge, parameters["early_stopping_rounds"]
            options = {
                "valid_sets": [data(held_out.X, training)],
                "feval": lambda scores, _: ("metric", judge(scores), False),
                "callbacks": [
                    lightgbm.early_stopping(patience, verbose=False),
                    lightgbm.log_evaluation(parameters["verbose"]),
                ],
            }
        try:
            return lightgbm.train(params, training, parameters["n_estimators"], **options)
        except lightgbm.basic.LightGBMError as error:
            raise ValueError(f"LightGBM cannot grow trees on these features: {error}") from error

    def scores(self, X: Any) -> np.ndarray:
        X = _as_matrix(X)
        return np.asarray(sum(part.predict(X, raw_score=True) for part in self.parts))

    def rounds(self, part: Any) -> int:
        return int(part.best_iteration if part.best_iteration > 0 else part.current_iteration())

    def gains(self, n_features: int) -> np.ndarray:
        return np.asarray(sum(part.feature_importance("gain") for part in self.parts))

    @staticmethod
    def to_text(part: Any) -> str:
        return str(part.model_to_string())

    @classmethod
    def from_text(cls, text: str) -> tuple[Any, int, int]:
        if not text.startswith("tree\n"):
            raise ValueError("they do not begin with 'tree'")
        part = cls.module().Booster(model_str=text)
        return part, part.num_feature(), part.num_model_per_iteration()


class XGBoost(Booster):
    """Trees of XGBoost, which has no rule for the number of samples of a leaf."""

    name = "xgboost"
    names: ClassVar = {
        "learning_rate": "learning_rate",
        "num_leaves": "max_leaves",
        "reg_lambda": "lambda",
        "subsample": "subsample",
        "colsample": "colsample_bytree",
    }
    defaults: ClassVar = {
        "base_score": 0.0,
        "disable_default_eval_metric": True,
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "min_child_weight": 1e-3,
        "verbosity": 0,
    }

    @classmethod
    def _train(
        cls,
        X: Any,
        derivatives: Derivatives,
        begin: Callable[[Any], np.ndarray],
        params: dict[str, Any],
        parameters: dict[str, Any],
        held_out: HeldOut | None,
    ) -> Any:
        xgboost = cls.module()
        params |= {"max_depth": max(parameters["max_depth"], 0)}
        params |= {"nthread": parameters["n_jobs"] or 0} | (parameters["library_params"] or {})
        if params["num_class"] == 1:
            del params["num_class"]
        categories = parameters["categorical_features"]

        def data(X: Any) -> Any:
            kinds = None
            if categories is not None and not hasattr(X, "columns"):
                kinds = np.where(np.isin(np.arange(X.shape[1]), categories), "c", "q").tolist()
            scores = begin(X)
            return xgboost.DMatrix(
                X, np.zeros(len(scores)), base_margin=scores, feature_types=kinds,
                enable_categorical=True,
            )  # fmt: skip

        def rows(scores: Any) -> np.ndarray:
            return np.asarray(scores).reshape(-1, derivatives.shape[1])

        options: dict[str, Any] = {}
        if held_out is not None:
            judge = held_out.judge
            options = {
                "evals": [(data(held_out.X), "held_out")],
                "custom_metric": lambda scores, _: ("metric", judge(rows(scores))),
                "early_stopping_rounds": parameters["early_stopping_rounds"],
                "verbose_eval": parameters["verbose"] or False,
            }
        objective = lambda scores, _: derivatives(rows(scores))  # noqa: E731
        return xgboost.train(params, data(X), parameters["n_estimators"], obj=objective, **options)

    def rounds(self, part: Any) -> int:
        return int(part.attr("best_iteration") or part.num_boosted_rounds() - 1) + 1

    def scores(self, X: Any) -> np.ndarray:
        data = self.module().DMatrix(X, enable_categorical=True)
        parts = [
            part.predict(data, output_margin=True, iteration_range=(0, self.rounds(part)))
            for part in self.parts
        ]
        return np.asarray(np.sum(np.asarray(parts, dtype=np.float64), axis=0))

    def gains(self, n_features: int) -> np.ndarray:
        gains = np.zeros(n_features)
        for part in self.parts:
            names = part.feature_names or [f"f{i}" for i in range(n_features)]
            for name, gain in part.get_score(importance_type="total_gain").items():
                gains[names.index(name)] += gain
        return gains

    @staticmethod
    def to_text(part: Any) -> str:
        return bytes(part.save_raw("json")).decode()

    @classmethod
    def from_text(cls, text: str) -> tuple[Any, int, int]:
        part = cls.module().Booster()
        part.load_model(bytearray(text, "utf-8"))
        return part, part.num_features(), len(part[:1].get_dump())


LIBRARIES: dict[str, type[Booster]] = {cls.name: cls for cls in (LightGBM, XGBoost)}
