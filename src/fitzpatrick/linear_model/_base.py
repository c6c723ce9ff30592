"""What the four estimators share."""

import warnings
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._set_output import ADAPTERS_MANAGER
from sklearn.utils.validation import check_is_fitted

from .. import engines
from .._array import Array, as_library, is_foreign, namespace, to_numpy
from .._weights import check_weights
from ..losses import Loss
from ._binary import BinaryLoss
from ._checks import (
    CONSTRAINTS,
    check_own_features,
    check_same_place,
    check_settings,
    check_total_weight,
    unchanged_on_failure,
)
from ._design import Design, make_design
from ._problem import FittedModel, Problem
from ._rows import LocalRows, Samples
from ._settings import FitParameters, FitSettings
from ._threads import limited_blas
from ._vectors import cast
from .solvers import Status


def take_rows(X: Array, rows: Array) -> Array:
    """Some rows of features."""
    if is_foreign(X):
        return namespace(X).take(X, as_library(rows, X), axis=0)
    return X[rows]


class TrainingData(ABC):
    """Checked inputs of a fit, wherever they are.

    Attributes:
        n_classes: k.
        binary: whether two classes share one row of coefficients.
    """

    n_classes: int
    binary: bool

    @property
    def n_scores(self) -> int:
        """Rows of coef_."""
        return 1 if self.binary else self.n_classes

    @property
    @abstractmethod
    def n_features(self) -> int:
        """d."""

    @property
    @abstractmethod
    def like(self) -> Array:
        """An array of the library, device and dtype of the coefficients."""

    @abstractmethod
    def problem(self, settings: FitSettings) -> Problem:
        """The samples that count, with the loss bound to their targets."""


@dataclass(frozen=True, eq=False)
class Data(TrainingData):
    """Checked inputs of a fit, in memory or on a device.

    Args:
        X: features, dense, of any array library, or sparse.
        targets: (n, k) in NumPy or CSR, or integer labels (n,).
        n_classes: k.
        weights: None for ones.
        binary: whether two classes share one row of coefficients.
    """

    X: Array
    targets: Array
    n_classes: int
    weights: Array | None
    binary: bool

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def like(self) -> Array:
        return self.X.data if sparse.issparse(self.X) else self.X

    def take(self, rows: Array) -> "Data":
        """Some of the samples."""
        weights = None if self.weights is None else self.weights[rows]
        X = take_rows(self.X, rows)
        return Data(X, self.targets[rows], self.n_classes, weights, self.binary)

    def without_zero_weights(self) -> "Data":
        """The samples that count."""
        if self.weights is None or self.weights.all():
            return self
        return self.take(np.flatnonzero(self.weights))

    def design(self, settings: FitSettings) -> Design:
        """The features as the solvers see them: one design serves every loss and every alpha."""
        with limited_blas(settings.n_threads):
            return make_design(
                self.X,
                self.weights,
                fit_intercept=settings.fit_intercept,
                standardize=settings.standardize,
                n_scores=self.n_scores,
            )

    def problem(self, settings: FitSettings) -> Problem:
        data = self.without_zero_weights()
        return data.bind(settings, data.design(settings))

    def bind(self, settings: FitSettings, design: Design) -> Problem:
        """The loss bound to the targets, for a design of the features."""
        loss = engines.bind_like(
            settings.loss, self.targets, self.n_classes, design.like, settings.n_threads
        )
        bound = BinaryLoss(loss) if self.binary else loss
        samples = Samples(design, bound, self.weights, self.n_scores)
        return Problem(LocalRows(samples), settings)


@dataclass(eq=False, repr=False)
class LinearModel(FitParameters, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """Scores X Wᵀ + b, learned with a loss, a penalty and a solver.

    The parameters are fields: scikit-learn reads them off the constructor that these make.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    loss: str | Loss = "fitzpatrick_logistic"

    @abstractmethod
    def _check_targets(self, X: Array, y: Any, weights: Array | None, loss: Loss) -> Data:
        """The data of a fit: targets, and weights with those of their classes."""

    @abstractmethod
    def _check_more_targets(self, y: Any, X: Array, n_classes: int, loss: Loss) -> Array:
        """Targets of other samples than those of the fit, as scorers take them."""

    @abstractmethod
    def _as_given(self, targets: Array) -> Array:
        """Targets of :class:`Data` in the form in which ``fit`` got them, dense or CSR."""

    def _check_data(
        self, X: Any, y: Any, sample_weight: Any, settings: FitSettings
    ) -> TrainingData:
        """The data of a fit, checked; names of features and targets are remembered."""
        X = check_own_features(self, X, reset=True)
        data = self._check_targets(X, y, check_weights(sample_weight, X), settings.loss)
        check_total_weight(data.weights)
        return data

    def _fit_final(
        self,
        data: TrainingData,
        settings: FitSettings,
        alpha: float,
        start: tuple[Array, Array] | None = None,
    ) -> None:
        """Fit, set the fitted attributes, and warn where the fit did not converge."""
        model = data.problem(settings).fit(alpha, start)
        self._set_model(model, settings.loss, data.like)
        if not model.status.converged:
            self._warn(
                f"stopped after {model.n_iter} iterations at gradient norm "
                f"{model.gradient_norm:.3g}: {model.status.value}",
                stacklevel=5,
            )

    def _set_model(self, model: FittedModel, loss: Loss, like: Array) -> None:
        """Set the attributes of a fit, with coefficients where ``like`` is and in its dtype."""
        self.loss_: Any = self.loss
        self.tightness_ = loss.tightness
        self.coef_, self.intercept_ = (
            cast(as_library(array, like), like.dtype) for array in (model.coef, model.intercept)
        )
        self.objective_ = model.objective
        self.gradient_norm_ = model.gradient_norm
        self.n_iter_ = model.n_iter
        self._status_name = model.status.name

    @property
    def status_(self) -> Status:
        """How the solver ended; the value is a sentence."""
        # kept by name, since skops does not persist enums
        return Status[self._status_name]

    def _warn(self, problem: str, *, stacklevel: int) -> None:
        warnings.warn(
            f"{type(self).__name__}: {problem}. Increase max_iter (now {self.max_iter}), use "
            "standardized features (standardize=True), strengthen the penalty (alpha), or accept "
            f"less precision with a larger tol (now {self.tol:g}).",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )

    def _scores(self, X: Any, method: str) -> Array:
        """θ, with one column per row of coef_, for the public method of that name."""
        check_is_fitted(self)
        X = check_own_features(self, X, reset=False)
        if is_foreign(X) or is_foreign(self.coef_):
            check_same_place(X, self.coef_, f"{type(self).__name__}.{method}()")
        return X @ self.coef_.T + self.intercept_

    def set_output(self, *, transform: str | None = None) -> Self:
        """Ask for predictions in a data frame, as scikit-learn's transformers are asked.

        The columns are named by the columns of y that a regressor was fitted with, and by the
        classes of a classifier. Predictions of one number or one class per sample stay arrays.

        Args:
            transform: ``"pandas"``, ``"polars"``, or ``"default"`` for NumPy arrays; None changes
                nothing.
        """
        outputs = ("default", "pandas", "polars")
        if transform not in (*outputs, None):
            raise ValueError(f"transform must be None or one of {outputs}, got {transform!r}")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # which clone() copies
        return self

    def _in_container(self, prediction: Array, X: Any, names: Any) -> Any:
        """An array (n, k), or the data frame that :meth:`set_output` asks for."""
        output = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        if output == "default":
            return prediction
        adapter, names = ADAPTERS_MANAGER.adapters[output], to_numpy(names)
        if output == "polars":
            names = names.astype(str)  # which alone may be names there
        return adapter.create_container(to_numpy(prediction), X, names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = True
        return tags


@dataclass(eq=False, repr=False)
class SinglePenalty(LinearModel):
    """The parameters of an estimator with one alpha and one tightness."""

    alpha: float = 1.0
    _: KW_ONLY
    tightness: float | None = None
    warm_start: bool = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from features X (n, d), dense or sparse.

        Args:
            X: features.
            y: labels (n,) of a classifier; targets (n, k) of a regressor, dense or sparse, or (n,)
                for one column of targets, where the domain of the loss is not the simplex.
            sample_weight: weights (n,) of the samples.
        """
        with unchanged_on_failure(self):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        settings = check_settings(self, self.tightness)
        data = self._check_data(X, y, sample_weight, settings)
        start = self._warm_start((data.n_scores, data.n_features))
        self._fit_final(data, settings, float(self.alpha), start)

    def _warm_start(self, shape: tuple[int, int]) -> tuple[Array, Array] | None:
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        if (fitted := tuple(self.coef_.shape)) != shape:
            raise ValueError(
                f"warm_start=True continues from coefficients of shape {fitted}, and "
                f"these data need {shape}; set warm_start=False to begin anew"
            )
        coef, intercept = to_numpy(self.coef_), to_numpy(self.intercept_)
        return coef.astype(np.float64), intercept.astype(np.float64)
