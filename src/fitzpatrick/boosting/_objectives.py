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
from typing import Any, TypedDict, Unpack

import numpy as np
from scipy import sparse

from .. import engines
from .._validation import as_targets
from ..engines.rows import for_each_block, resolve_threads
from ..engines.targets import Scratch, wrap_targets
from ..losses import Loss, get_loss

FLOOR = 0.05
_FACTORS: dict[Any, Any] = {"diagonal": 1.0, "double": 2.0, "majorizer": None}
# Rows that are treated at once; their arrays stay in the second-level cache.
_BLOCK_BYTES = 1 << 18


class ObjectiveOptions(TypedDict, total=False):
    """Options of the objectives."""

    n_classes: int | None
    tightness: float | None
    hessian: str | float
    floor: float


class Objective:
    """A loss at the targets of a set of samples, as LightGBM and XGBoost call it."""

    def __init__(
        self,
        loss: str | Loss,
        y: Any,
        n_classes: int | None = None,
        tightness: float | None = None,
        hessian: str | float = "diagonal",
        floor: float = FLOOR,
        n_threads: int | None = None,
    ) -> None:
        loss = get_loss(loss, tightness)
        self._omega: Any = loss.regularizer
        self._tightness = loss.tightness
        if not self._omega.is_row_wise:
            raise TypeError(
                f"the Hessian of {loss!r} has no diagonal form; boost with a loss of a separable "
                "regularizer"
            )
        if not floor > 0:
            raise ValueError(f"floor must be positive, got {floor}")
        self._floor = floor / (1 + loss.tightness)
        self._factor: Any = _FACTORS.get(hessian, hessian)  # of the diagonal; None stands for d
        if isinstance(self._factor, str) or not (self._factor is None or 0 < self._factor < np.inf):
            raise ValueError(
                f"hessian must be one of {', '.join(map(repr, _FACTORS))} or a positive number, "
                f"got {hessian!r}"
            )
        y, domain = y if sparse.issparse(y) else np.asarray(y), self._omega.domain
        y = y[:, None] if y.ndim == 1 and not domain.has_labels else y
        k = y.shape[1] if y.ndim == 2 else n_classes or int(y.max(initial=0)) + 1
        self.shape = int(y.shape[0]), int(k)  # of the targets and of the scores
        y = as_targets(y, self.shape, domain)
        self._targets = wrap_targets(y, self.shape, np.dtype(np.float64))
        self._n_threads = resolve_threads(n_threads)
        self._bound = engines.bind_trusted(
            self._omega, self._tightness, self._targets, self._n_threads
        )

    def scores(self, predictions: Any) -> np.ndarray:
        """θ of shape (n, k), from the scores as a library hands them over."""
        theta = np.asarray(predictions, dtype=np.float64)
        if theta.ndim == 1:
            theta = theta.reshape(self.shape, order="F")
        if theta.shape != self.shape:
            raise ValueError(
                f"the targets have shape {self.shape}, and the library's scores {theta.shape}: set "
                "num_class to the number of targets, and give the objective the targets of the "
                "training samples"
            )
        return theta

    def __call__(self, predictions: Any, data: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Gradients and numbers h of all samples, times the weights of the library's data set.

        They are (n, k), or (n,) for one score per sample, in float32 and by columns: what the
        libraries store.
        """
        p = self._bound.y_star(self.scores(predictions))
        weights = weights_of(data)
        gradient, h = (np.empty(self.shape, np.float32, order="F") for _ in range(2))

        def work(rows: slice, scratch: Scratch) -> None:
            y, at = self._targets.dense(rows, scratch), p[rows]
            np.subtract(at, y, out=gradient[rows], casting="same_kind")
            np.maximum(self._curvature(at, y), self._floor, out=h[rows], casting="same_kind")
            if weights is not None:
                gradient[rows] *= weights[rows, None]
                h[rows] *= weights[rows, None]

        for_each_block(self.shape, p.itemsize, self._n_threads, work, _BLOCK_BYTES)
        return (gradient[:, 0], h[:, 0]) if self.shape[1] == 1 else (gradient, h)

    def _curvature(self, p: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The numbers h, from maximizers p and targets y, without a floor."""
        if not self._omega.has_curvature:
            return np.zeros_like(p)
        d: np.ndarray = self._omega.slope(p, y, self._tightness)
        if self._factor is None or not self._omega.is_coupled:
            return d if self._factor is None else self._factor * d
        total = d.sum(axis=1, keepdims=True)
        share = d / np.where(total > 0, total, 1.0)
        return np.asarray(self._factor * d * (1 - share))

    def __deepcopy__(self, memo: Any) -> "Objective":
        return self  # LightGBM copies its parameters, and need not copy all targets

    def mean_loss(self, predictions: Any, data: Any = None) -> float:
        """The loss, averaged over the samples with the weights of the library's data set."""
        values = self._bound.value(self.scores(predictions))
        return float(np.average(values, weights=weights_of(data)))


def weights_of(data: Any) -> np.ndarray | None:
    """Weights of the samples that a library's data set holds, or None."""
    weights = None if data is None else data.get_weight()
    return None if weights is None or len(weights) == 0 else np.asarray(weights, dtype=np.float64)


def lightgbm_objective(
    loss: str | Loss, y: Any, **options: Unpack[ObjectiveOptions]
) -> Callable[[Any, Any], tuple[np.ndarray, np.ndarray]]:
    """An objective for ``lightgbm.train``: ``params={"objective": …, "num_class": k}``.

    Args:
        loss: a name of :func:`fitzpatrick.loss_names`, or a loss.
        y: targets of the training samples, (n, k) or class indices (n,); the label of the
            ``Dataset`` is not looked at. Weights of the ``Dataset`` count.
        options: ``n_classes``, k, needed with class indices where the highest may be absent;
            ``tightness``, which replaces the loss's own; ``hessian``, one of ``"diagonal"``, the
            default, ``"majorizer"``, ``"double"``, or a factor of the diagonal; ``floor``, the
            least entry of the Hessian in units of 1/(1 + c), by default 0.05.

    Example:
        >>> import numpy as np
        >>> objective = lightgbm_objective("logistic", np.asarray([[0.5, 0.5], [0.0, 1.0]]))
        >>> gradient, hessian = objective(np.zeros((2, 2)), None)
        >>> gradient
        array([[ 0. ,  0. ],
               [ 0.5, -0.5]], dtype=float32)
        >>> hessian
        array([[0.25, 0.25],
               [0.25, 0.25]], dtype=float32)
    """
    return Objective(loss, y, **options)


def xgboost_objective(
    loss: str | Loss, y: Any, **options: Unpack[ObjectiveOptions]
) -> Callable[[Any, Any], tuple[np.ndarray, np.ndarray]]:
    """An objective for ``xgboost.train(…, obj=…)`` with ``num_class`` k; else as LightGBM's."""
    return Objective(loss, y, **options)


def lightgbm_metric(
    loss: str | Loss, y: Any, *, n_classes: int | None = None, tightness: float | None = None
) -> Callable[[Any, Any], tuple[str, float, bool]]:
    """The mean loss at the targets of a validation set, as ``feval`` of ``lightgbm.train``."""
    metric = xgboost_metric(loss, y, n_classes=n_classes, tightness=tightness)
    return lambda predictions, data: (*metric(predictions, data), False)


def xgboost_metric(
    loss: str | Loss, y: Any, *, n_classes: int | None = None, tightness: float | None = None
) -> Callable[[Any, Any], tuple[str, float]]:
    """The mean loss at the targets of a validation set, as ``custom_metric`` of XGBoost."""
    mean_loss = Objective(loss, y, n_classes, tightness).mean_loss
    return lambda predictions, data: ("mean_loss", mean_loss(predictions, data))


def catboost_objective(loss: str | Loss, tightness: float | None = None) -> Any:
    """An objective for ``CatBoost(loss_function=…)`` with targets (n, k) as labels of its pool.

    CatBoost takes the full Hessian of each sample. It asks for one sample at a time, which is
    slow: LightGBM and XGBoost ask for all at once. Needs the package catboost.
    """
    try:
        from catboost import MultiTargetCustomObjective
    except ImportError as error:
        raise ImportError("catboost_objective needs the package catboost") from error
    found = get_loss(loss, tightness)

    class CatBoostObjective(MultiTargetCustomObjective):  # type: ignore[misc]  # has no types
        """Negative derivatives: CatBoost goes uphill."""

        no_jit = True  # CatBoost would try to compile the method, and warn that it cannot

        def calc_ders_multi(self, approxes: Any, targets: Any, weight: float) -> tuple[Any, Any]:
            theta, y = np.asarray(approxes)[None], np.asarray(targets)[None]
            k = theta.shape[1]
            bound = engines.bind(found.regularizer, found.tightness, y, k)
            operator = bound.hessian_operator(theta)
            hessian = np.vstack([operator(row[None]) for row in np.eye(k)])
            gradient = bound.gradient(theta)[0]
            return (-weight * gradient).tolist(), (-weight * hessian).tolist()

    return CatBoostObjective()
