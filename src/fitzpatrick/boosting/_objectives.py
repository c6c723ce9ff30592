r"""Gradients and Hessians of the losses, as boosting libraries ask for them.

The Hessian of a loss in the scores of a sample is diag(d), less :math:`dd^\top/\langle d, 1\rangle`
on the simplex. Trees need one number per score, h > 0. Three are offered:

- ``"diagonal"``: :math:`d_i - d_i^2/\langle d, 1\rangle`, the Hessian's own.
- ``"majorizer"``: d, which bounds the Hessian from above (the difference has rank one).
- ``"double"``: twice the diagonal, which also does, by Gershgorin's circles; XGBoost's 2p(1 − p).

A number multiplies the diagonal: LightGBM's own objective has k/(k − 1). Sparse links have zero
slopes outside of their support and for a class that is alone in it, where a step g/h would be
endless: h is at least ``floor`` times 1/(1 + c), the largest slope of the squared norm's links.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from .. import engines
from .._weights import check_weights
from ..losses import Loss, get_loss

FLOOR = 0.05
_FACTORS = {"diagonal": 1.0, "double": 2.0, "majorizer": 1.0}


class Derivatives:
    """A loss at the targets of a set of samples: values, gradients and the numbers h.

    Args:
        loss: a name or a loss.
        y: targets (n, k), dense or sparse, or class indices (n,).
        n_classes: k; needed with class indices, where the highest may be absent.
        tightness: replaces the loss's own.
        hessian: ``"diagonal"``, ``"majorizer"``, ``"double"``, or a factor of the diagonal.
        floor: least h, in units of 1/(1 + c).
        sample_weight: (n,), or None.
    """

    def __init__(
        self,
        loss: str | Loss,
        y: Any,
        *,
        n_classes: int | None = None,
        tightness: float | None = None,
        hessian: str | float = "diagonal",
        floor: float = FLOOR,
        sample_weight: Any = None,
    ) -> None:
        self.loss = get_loss(loss, tightness) if tightness is not None else get_loss(loss)
        y = y if sparse.issparse(y) else np.asarray(y)
        if y.ndim == 1 and not self.loss.regularizer.domain.has_labels:
            y = y[:, None]
        if y.ndim == 1:
            n_classes = int(y.max()) + 1 if n_classes is None else n_classes
        self.shape = int(y.shape[0]), int(y.shape[1]) if y.ndim == 2 else int(n_classes or 0)
        omega, c = self.loss.regularizer, self.loss.tightness
        self.bound = engines.bind(omega, c, y, self.shape[1])
        self._by_factor = _check_hessian(hessian)
        if not floor > 0:
            raise ValueError(f"floor must be positive, got {floor}")
        self._floor = floor / (1 + c)
        weights = check_weights(sample_weight, np.empty((self.shape[0], 0)))
        self.weights = None if weights is None else weights[:, None]

    def scores(self, predictions: Any) -> np.ndarray:
        """θ of shape (n, k), from the scores as a library hands them over."""
        theta = np.asarray(predictions, dtype=np.float64)
        if theta.ndim == 1:
            theta = theta.reshape(self.shape, order="F")
        if theta.shape != self.shape:
            raise ValueError(
                f"the targets have shape {self.shape}, and the library's scores {theta.shape}: set "
                "num_class to the number of targets, and give the objective those of the "
                "training samples"
            )
        return theta

    def __call__(self, predictions: Any) -> tuple[np.ndarray, np.ndarray]:
        """Gradients and numbers h, (n, k) each, with the weights of the samples."""
        theta = self.scores(predictions)
        gradient = self.bound.gradient(theta)
        operator = self.bound.hessian_operator(theta)
        if operator.d is None:
            raise TypeError(
                f"the Hessian of {self.loss!r} has no diagonal form; boost with a loss of a "
                "separable regularizer"
            )
        h = operator.d
        if self._by_factor is not None:
            if operator.total is not None:
                total = np.where(operator.total > 0, operator.total, 1.0)[:, None]
                h = h * (1 - h / total)
            h = h * self._by_factor
        h = np.maximum(h, self._floor)
        if self.weights is not None:
            gradient, h = gradient * self.weights, h * self.weights
        return gradient, h

    def mean_loss(self, predictions: Any, weights: Any = None) -> float:
        """The loss, averaged over the samples, with weights of a library's data set, or our own."""
        values = self.bound.value(self.scores(predictions))
        if weights is None or len(weights) == 0:
            weights = None if self.weights is None else self.weights[:, 0]
        return float(np.average(values, weights=weights))


def _check_hessian(hessian: str | float) -> float | None:
    """A factor of the diagonal, or None for the majorizer d."""
    if isinstance(hessian, str):
        if hessian not in _FACTORS:
            raise ValueError(
                f"hessian must be one of {', '.join(map(repr, _FACTORS))} or a number, "
                f"got {hessian!r}"
            )
        return None if hessian == "majorizer" else _FACTORS[hessian]
    if not (np.isfinite(hessian) and hessian > 0):
        raise ValueError(f"hessian must be a positive number, got {hessian}")
    return float(hessian)


def lightgbm_objective(
    loss: str | Loss,
    y: Any,
    *,
    n_classes: int | None = None,
    tightness: float | None = None,
    hessian: str | float = "diagonal",
    floor: float = FLOOR,
) -> Callable[[Any, Any], tuple[np.ndarray, np.ndarray]]:
    """An objective for ``lightgbm.train``: ``params={"objective": …, "num_class": k}``.

    Args:
        loss: a name of :func:`fitzpatrick.loss_names`, or a loss.
        y: targets of the training samples, (n, k) or class indices (n,); the label of the
            ``Dataset`` is not looked at. Weights of the ``Dataset`` count.
        n_classes: k, needed with class indices where the highest may be absent.
        tightness: replaces the loss's own.
        hessian: ``"diagonal"``, ``"majorizer"``, ``"double"``, or a factor of the diagonal.
        floor: least entry of the Hessian, in units of 1/(1 + c).

    Example:
        >>> import numpy as np
        >>> objective = lightgbm_objective("logistic", np.asarray([[0.5, 0.5], [0.0, 1.0]]))
        >>> gradient, hessian = objective(np.zeros((2, 2)), None)
        >>> gradient
        array([[ 0. ,  0. ],
               [ 0.5, -0.5]])
        >>> hessian
        array([[0.25, 0.25],
               [0.25, 0.25]])
    """
    derivatives = Derivatives(
        loss, y, n_classes=n_classes, tightness=tightness, hessian=hessian, floor=floor
    )

    def objective(predictions: Any, data: Any) -> tuple[np.ndarray, np.ndarray]:
        return flat_if_single(_weighted(derivatives(predictions), data))

    return objective


def xgboost_objective(
    loss: str | Loss,
    y: Any,
    *,
    n_classes: int | None = None,
    tightness: float | None = None,
    hessian: str | float = "diagonal",
    floor: float = FLOOR,
) -> Callable[[Any, Any], tuple[np.ndarray, np.ndarray]]:
    """An objective for ``xgboost.train(…, obj=…)`` with ``num_class`` k; else as LightGBM's."""
    return lightgbm_objective(
        loss, y, n_classes=n_classes, tightness=tightness, hessian=hessian, floor=floor
    )


def flat_if_single(pair: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Columns (n,) where there is one score per sample, as LightGBM wants them."""
    return (pair[0].ravel(), pair[1].ravel()) if pair[0].shape[1] == 1 else pair


def _weighted(pair: tuple[np.ndarray, np.ndarray], data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian, times the weights that a library's data set holds."""
    weights = data.get_weight() if data is not None else None
    if weights is None or len(weights) == 0:
        return pair
    column = np.asarray(weights, dtype=np.float64)[:, None]
    return pair[0] * column, pair[1] * column


def lightgbm_metric(
    loss: str | Loss, y: Any, *, n_classes: int | None = None, tightness: float | None = None
) -> Callable[[Any, Any], tuple[str, float, bool]]:
    """The mean loss at the targets of a validation set, as ``feval`` of ``lightgbm.train``."""
    derivatives = Derivatives(loss, y, n_classes=n_classes, tightness=tightness)

    def metric(predictions: Any, data: Any) -> tuple[str, float, bool]:
        weights = data.get_weight() if data is not None else None
        return "mean_loss", derivatives.mean_loss(predictions, weights), False

    return metric


def xgboost_metric(
    loss: str | Loss, y: Any, *, n_classes: int | None = None, tightness: float | None = None
) -> Callable[[Any, Any], tuple[str, float]]:
    """The mean loss at the targets of a validation set, as ``custom_metric`` of XGBoost."""
    metric = lightgbm_metric(loss, y, n_classes=n_classes, tightness=tightness)
    return lambda predictions, data: metric(predictions, data)[:2]


def catboost_objective(loss: str | Loss, tightness: float | None = None) -> Any:
    """An objective for ``CatBoost(loss_function=…)`` with targets (n, k) as labels of its pool.

    CatBoost takes the full Hessian of each sample. It asks for one sample at a time, which is
    slow: LightGBM and XGBoost ask for all at once. Needs the package catboost.
    """
    try:
        from catboost import MultiTargetCustomObjective
    except ImportError as error:
        raise ImportError("catboost_objective needs the package catboost") from error
    found = get_loss(loss, tightness) if tightness is not None else get_loss(loss)

    class Objective(MultiTargetCustomObjective):  # type: ignore[misc]  # catboost has no types
        """Negative derivatives: CatBoost goes uphill."""

        def calc_ders_multi(self, approxes: Any, targets: Any, weight: float) -> tuple[Any, Any]:
            theta, y = np.asarray(approxes)[None], np.asarray(targets)[None]
            bound = engines.bind(found.regularizer, found.tightness, y, theta.shape[1])
            operator, k = bound.hessian_operator(theta), theta.shape[1]
            hessian = np.vstack([operator(row[None]) for row in np.eye(k)])
            gradient = bound.gradient(theta)[0]
            return (-weight * gradient).tolist(), (-weight * hessian).tolist()

    return Objective()
