r"""Metrics of predicted proportions and class probabilities.

Each takes targets and predictions of shape (n, k), dense or sparse, computes one number per sample
and averages over the samples, with weights if given. :func:`log_loss`, :func:`brier_score` and
:func:`calibration_error` also take class labels 0, …, k − 1 of shape (n,) as targets.
``fitzpatrick.metrics.get_scorer(name)`` makes a scorer for scikit-learn's model selection out of
any of them.

Six of them are the usual ones of label distribution learning: Chebyshev, Clark, Canberra,
Kullback-Leibler, cosine and intersection.
"""

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher, get_close_matches
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import rel_entr, xlogy
from sklearn.base import is_classifier
from sklearn.metrics._scorer import _BaseScorer
from sklearn.utils import check_array

from ._array import Array, is_foreign, to_numpy
from ._validation import check_sparse
from ._weights import check_weights

__all__ = [
    "brier_score",
    "calibration_error",
    "canberra",
    "chebyshev",
    "clark",
    "cosine",
    "get_scorer",
    "intersection",
    "jensen_shannon",
    "kullback_leibler",
    "log_loss",
    "metric_names",
    "sparsity",
    "squared_error",
    "squared_errors",
]


def squared_error(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Squared error summed over classes, :math:`\|y - \hat y\|^2`: the paper's test error.

    Example:
        >>> squared_error([[1.0, 0.0]], [[0.5, 0.5]])
        0.5
    """
    return _mean(squared_errors(y_true, y_pred), sample_weight)


def squared_errors(y_true: Any, y_pred: Any) -> Array:
    """The squared error of each sample, shape (n,), whose mean is :func:`squared_error`."""
    y_true, y_pred = _pair(y_true, y_pred)
    return np.asarray(np.square(y_true - y_pred).sum(axis=1))


def jensen_shannon(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Jensen-Shannon divergence
    :math:`\tfrac12 KL(y, m) + \tfrac12 KL(\hat y, m)`, :math:`m = (y + \hat y)/2`, in nats.

    Between 0 and log 2, and finite where the predictions have zeros.

    Example:
        >>> round(jensen_shannon([[1.0, 0.0]], [[0.0, 1.0]]), 4)  # log 2
        0.6931
    """
    y_true, y_pred = _pair(y_true, y_pred)
    middle = (y_true + y_pred) / 2
    terms = rel_entr(y_true, middle) + rel_entr(y_pred, middle)
    return _mean(terms.sum(axis=1) / 2, sample_weight)


def kullback_leibler(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Kullback-Leibler divergence :math:`\sum_j y_j \log(y_j / \hat y_j)` in nats.

    Infinite where a prediction is 0 and its target is not, which happens with sparse links;
    :func:`jensen_shannon` stays finite.

    Example:
        >>> round(kullback_leibler([[1.0, 0.0]], [[0.5, 0.5]]), 4)
        0.6931
    """
    y_true, y_pred = _pair(y_true, y_pred)
    return _mean(rel_entr(y_true, y_pred).sum(axis=1), sample_weight)


def chebyshev(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Chebyshev distance :math:`\max_j |y_j - \hat y_j|`.

    Example:
        >>> chebyshev([[0.5, 0.5, 0.0]], [[0.25, 0.5, 0.25]])
        0.25
    """
    y_true, y_pred = _pair(y_true, y_pred)
    return _mean(np.abs(y_true - y_pred).max(axis=1), sample_weight)


def clark(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Clark distance :math:`\sqrt{\sum_j (y_j - \hat y_j)^2 / (|y_j| + |\hat y_j|)^2}`.

    Classes that are zero in both count 0.

    Example:
        >>> clark([[1.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]), clark([[1.0, 0.0]], [[0.5, 0.5]]) > 1
        (0.0, True)
    """
    y_true, y_pred = _pair(y_true, y_pred)
    ratio = _ratio(y_true - y_pred, np.abs(y_true) + np.abs(y_pred))
    return _mean(np.sqrt(np.square(ratio).sum(axis=1)), sample_weight)


def canberra(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Canberra distance :math:`\sum_j |y_j - \hat y_j| / (|y_j| + |\hat y_j|)`.

    Classes that are zero in both count 0.

    Example:
        >>> canberra([[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
        2.0
    """
    y_true, y_pred = _pair(y_true, y_pred)
    ratio = _ratio(np.abs(y_true - y_pred), np.abs(y_true) + np.abs(y_pred))
    return _mean(ratio.sum(axis=1), sample_weight)


def cosine(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Cosine similarity :math:`\langle y, \hat y\rangle / (\|y\| \|\hat y\|)`; higher is better.

    Example:
        >>> cosine([[1.0, 0.0]], [[0.0, 1.0]])
        0.0
    """
    y_true, y_pred = _pair(y_true, y_pred)
    norms = np.linalg.norm(y_true, axis=1) * np.linalg.norm(y_pred, axis=1)
    return _mean(_ratio((y_true * y_pred).sum(axis=1), norms), sample_weight)


def intersection(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Intersection similarity :math:`\sum_j \min(y_j, \hat y_j)`; higher is better.

    Example:
        >>> intersection([[0.5, 0.5, 0.0]], [[0.25, 0.5, 0.25]])
        0.75
    """
    y_true, y_pred = _pair(y_true, y_pred)
    return _mean(np.minimum(y_true, y_pred).sum(axis=1), sample_weight)


def sparsity(y_pred: Any, *, sample_weight: Any = None) -> float:
    """Share of the classes whose prediction is exactly 0.

    Example:
        >>> sparsity([[0.5, 0.5, 0.0, 0.0]])
        0.5
    """
    y_pred = _rows(y_pred, "y_pred")
    return _mean((y_pred == 0).mean(axis=1), sample_weight)


def log_loss(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Log loss :math:`-\sum_j y_j \log \hat y_j` in nats, of class labels or proportions.

    Infinite where a prediction is 0 and its target is not. For proportions the least that it can
    be is their entropy, which :func:`kullback_leibler` subtracts.

    Args:
        y_true: class labels 0, …, k − 1 of shape (n,), or proportions of shape (n, k).
        y_pred: probabilities of shape (n, k).
        sample_weight: weights of the samples, shape (n,).

    Example:
        >>> round(log_loss([0, 1], [[0.9, 0.1], [0.2, 0.8]]), 4)
        0.1643
    """
    y_true, y_pred = _class_pair(y_true, y_pred)
    return _mean(-xlogy(y_true, y_pred).sum(axis=1), sample_weight)


def brier_score(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Brier score :math:`\|y - \hat y\|^2`, summed over classes: between 0 and 2.

    It is :func:`squared_error`, which takes no labels. For two classes some authors halve it.

    Args:
        y_true: class labels 0, …, k − 1 of shape (n,), or proportions of shape (n, k).
        y_pred: probabilities of shape (n, k).
        sample_weight: weights of the samples, shape (n,).

    Example:
        >>> round(brier_score([0, 1], [[0.9, 0.1], [0.2, 0.8]]), 4)
        0.05
    """
    return squared_error(*_class_pair(y_true, y_pred), sample_weight=sample_weight)


def calibration_error(
    y_true: Any, y_pred: Any, *, n_bins: int = 15, sample_weight: Any = None
) -> float:
    r"""Expected calibration error of the most probable class, :math:`\sum_b w_b |a_b - c_b|`.

    Samples are put into bins of equal width by their highest probability. Bin b holds the share
    :math:`w_b` of the weight, :math:`a_b` is how often its predictions are right and
    :math:`c_b` its mean highest probability. A prediction against proportions is right to the
    extent of the proportion of its class.

    Args:
        y_true: class labels 0, …, k − 1 of shape (n,), or proportions of shape (n, k).
        y_pred: probabilities of shape (n, k).
        n_bins: how many bins divide [0, 1].
        sample_weight: weights of the samples, shape (n,).

    Example:
        >>> round(calibration_error([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.8, 0.2]]), 4)
        0.2333
    """
    if not (isinstance(n_bins, Integral) and n_bins >= 1):
        raise ValueError(f"n_bins must be an integer of at least 1, got {n_bins!r}")
    y_true, y_pred = _class_pair(y_true, y_pred)
    top = y_pred.argmax(axis=1)[:, None]
    confidence, hit = (np.take_along_axis(y, top, axis=1)[:, 0] for y in (y_pred, y_true))
    weights = check_weights(sample_weight, confidence)
    weights = np.ones_like(confidence) if weights is None else weights / weights.max()
    # a bin holds its upper end
    bins = np.clip(np.ceil(confidence * n_bins).astype(int) - 1, 0, n_bins - 1)
    gaps = np.bincount(bins, weights * (hit - confidence), n_bins)
    return float(np.abs(gaps).sum() / weights.sum())


def kendall_tau(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Kendall's τ-b between rankings, averaged: 1 for the same order, −1 for its reverse.

    Pairs that are tied in one ranking count for neither side. A sample in which all items of either
    ranking are tied counts 0.

    Args:
        y_true: ranks, or any numbers in whose order the items are, shape (n, k).
        y_pred: the same of the predictions, increasing in the same direction.
        sample_weight: weights of the samples, shape (n,).

    Example:
        >>> round(kendall_tau([[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [1, 3, 2]]), 4)
        0.6667
    """
    y_true, y_pred = _pair(y_true, y_pred)
    first, second = np.triu_indices(y_true.shape[1], 1)
    true, predicted = (np.sign(y[:, first] - y[:, second]) for y in (y_true, y_pred))
    sizes = np.sqrt(np.sum(true**2, axis=1) * np.sum(predicted**2, axis=1))
    return _mean(_ratio(np.sum(true * predicted, axis=1), sizes), sample_weight)


def spearman(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Spearman's ρ between rankings, averaged over samples: the correlation of the ranks.

    Tied items share the mean of their ranks. A sample in which all items of either ranking are tied
    counts 0. It takes the arguments of :func:`kendall_tau`.

    Example:
        >>> round(spearman([[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [1, 3, 2]]), 4)
        0.75
    """
    from scipy.stats import rankdata  # which takes long to load

    ranks = [rankdata(y, axis=1) for y in _pair(y_true, y_pred)]
    true, predicted = (rank - np.mean(rank, axis=1, keepdims=True) for rank in ranks)
    sizes = np.sqrt(np.sum(true**2, axis=1) * np.sum(predicted**2, axis=1))
    return _mean(_ratio(np.sum(true * predicted, axis=1), sizes), sample_weight)


def _sparsity_score(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:  # noqa: ARG001  # scorers pass it
    """The signature that scikit-learn's scorers call."""
    return sparsity(y_pred, sample_weight=sample_weight)


# name → metric, whether higher is better
_METRICS: dict[str, tuple[Callable[..., float], bool]] = {
    "squared_error": (squared_error, False),
    "jensen_shannon": (jensen_shannon, False),
    "kullback_leibler": (kullback_leibler, False),
    "chebyshev": (chebyshev, False),
    "clark": (clark, False),
    "canberra": (canberra, False),
    "cosine": (cosine, True),
    "intersection": (intersection, True),
    "sparsity": (_sparsity_score, True),
    "log_loss": (log_loss, False),
    "brier_score": (brier_score, False),
    "calibration_error": (calibration_error, False),
}


# Metrics of rankings; they do not apply to proportions.
_RANKING_METRICS: dict[str, Callable[..., float]] = {
    "kendall_tau": kendall_tau,
    "spearman": spearman,
}


def metric_names() -> list[str]:
    """Names of the metrics of proportions, which :func:`get_scorer` knows, sorted."""
    return sorted(_METRICS)


def mean_metric_names() -> list[str]:
    """Names of the metrics that are means over samples, which add up over parts of the data."""
    return [name for name in metric_names() if name != "calibration_error"]


def names_near(name: Any, others: Sequence[str] = ()) -> str:
    """The names of the metrics, the nearest first; the nearest of all may be one of the others."""
    near = sorted(_METRICS, key=lambda known: -SequenceMatcher(None, str(name), known).ratio())
    best = get_close_matches(str(name), [*near, *others], n=1)
    hint = f"did you mean {best[0]!r}? The" if best else "the"
    return f"{hint} names are {', '.join(near)}"


def get_scorer(name: str) -> Any:
    """A scikit-learn scorer of a metric; distances are negated, so that higher is better.

    What is scored are the predictions of a regressor, and the probabilities of a classifier
    against one-hot rows of its classes; for ``"kendall_tau"`` and ``"spearman"`` the ranks of a
    :class:`~fitzpatrick.linear_model.LabelRanker`.

    Example:
        >>> import numpy as np
        >>> from sklearn.model_selection import cross_val_score
        >>> from fitzpatrick.linear_model import ProportionRegressor
        >>> X = np.arange(12.0).reshape(-1, 1) / 6 - 1
        >>> Y = np.hstack([X**2, 1 - X**2])
        >>> scores = cross_val_score(ProportionRegressor(), X, Y, scoring=get_scorer("chebyshev"))
        >>> (scores < 0).all()
        np.True_
    """
    if name in _RANKING_METRICS:
        return _RankingScorer(_RANKING_METRICS[name], 1, {})
    if name not in _METRICS:
        raise ValueError(f"unknown metric {name!r}; {names_near(name)}")
    metric, higher_is_better = _METRICS[name]
    return _ProportionScorer(metric, 1 if higher_is_better else -1, {})


class _ProportionScorer(_BaseScorer):  # type: ignore[misc]  # scikit-learn has no types
    """A scorer that asks a classifier for its probabilities."""

    def _score(
        self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any
    ) -> float:
        if is_classifier(estimator):
            y_true = _one_hot(y_true, estimator.classes_)
            y_pred = estimator.predict_proba(X)
        else:
            y_true = _as_columns(y_true)
            y_pred = _as_columns(method_caller(estimator, "predict", X, pos_label=None))
        return float(self._sign * self._score_func(y_true, y_pred, **kwargs))


class _RankingScorer(_BaseScorer):  # type: ignore[misc]  # scikit-learn has no types
    """A scorer of rankings in the form that the estimator was fitted with."""

    def _score(
        self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any
    ) -> float:
        ranks = method_caller(estimator, "predict", X, pos_label=None)
        return float(self._score_func(estimator.as_ranks(y_true), ranks, **kwargs))


def _one_hot(labels: Any, classes: Array) -> Array:
    labels, classes = (
        to_numpy(array) if is_foreign(array) else np.asarray(array) for array in (labels, classes)
    )
    rows = labels[:, None] == classes
    unknown = labels[~rows.any(axis=1)]
    if unknown.size:
        raise ValueError(
            f"y holds labels that the classifier was not fitted with: "
            f"{np.unique(unknown)[:5].tolist()}; its classes are {classes[:20].tolist()}"
        )
    return rows


def _as_columns(y: Any) -> Any:
    """Targets (n,) of a model with one output as one column."""
    y = to_numpy(y) if is_foreign(y) else y
    return y if sparse.issparse(y) or np.ndim(y) != 1 else np.reshape(y, (-1, 1))


def _rows(y: Any, name: str) -> Array:
    y = to_numpy(y) if is_foreign(y) else y
    if not sparse.issparse(y) and np.ndim(y) == 1:
        raise ValueError(
            f"{name} must have shape (n, k), got {np.shape(y)}; one sample of k classes is "
            f"[{name}], and one column of n samples is np.reshape({name}, (-1, 1))"
        )
    check_sparse(y, name)
    y = check_array(y, accept_sparse=True, dtype="numeric", ensure_all_finite=False)
    y = np.asarray(y.toarray() if sparse.issparse(y) else y, dtype=np.float64)
    bad = np.argwhere(~np.isfinite(y))
    if len(bad):
        raise ValueError(
            f"{name} holds {y[tuple(bad[0])]} in row {bad[0][0]}, column {bad[0][1]}; "
            "metrics need finite numbers"
        )
    return y


def _pair(y_true: Any, y_pred: Any) -> tuple[Array, Array]:
    y_true, y_pred = _rows(y_true, "y_true"), _rows(y_pred, "y_pred")
    if y_true.shape != y_pred.shape:
        raise ValueError(
            f"y_true and y_pred must have the same shape, got {y_true.shape} and {y_pred.shape}"
        )
    return y_true, y_pred


def _class_pair(y_true: Any, y_pred: Any) -> tuple[Array, Array]:
    """Targets as rows, of labels too, and probabilities."""
    y_true = to_numpy(y_true) if is_foreign(y_true) else y_true
    if sparse.issparse(y_true) or np.ndim(y_true) != 1:
        return _pair(y_true, y_pred)
    labels, y_pred = np.asarray(y_true), _rows(y_pred, "y_pred")
    n, k = y_pred.shape
    if len(labels) != n:
        raise ValueError(f"y_true has {len(labels)} labels for the {n} rows of y_pred")
    if not np.issubdtype(labels.dtype, np.integer) or np.any((labels < 0) | (labels >= k)):
        raise ValueError(
            f"y_true must hold class labels, integers from 0 to {k - 1} for the {k} columns of "
            "y_pred; np.searchsorted(model.classes_, y) makes them of a classifier's labels"
        )
    return np.eye(k)[labels], y_pred


def _ratio(numerator: Array, denominator: Array) -> Array:
    """The quotient, 0 where both are 0."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0)


def _mean(values: Array, sample_weight: Any) -> float:
    weights = check_weights(sample_weight, values)
    if weights is not None:
        weights = weights / weights.max()  # their sum may overflow
    return float(np.average(values, weights=weights))
