"""Label ranking: for each sample an order of the same items, such as ``a>c>b``."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from .._array import Array
from ..losses import FitzpatrickLoss, Loss
from ..metrics import kendall_tau
from ..regularizers import SquaredNorm
from ..sets import Permutahedron
from ._estimators import ProportionRegressor

# Names of losses: True if they live on the permutahedron, and their tightness. Not the perceptron,
# which is zero where all coefficients are, so that the penalty would leave them there.
_LOSSES = {
    "sparsemap": (True, 0.0),
    "fitzpatrick_sparsemap": (True, 1.0),
    "squared": (False, 0.0),
    "fitzpatrick_squared": (False, 1.0),
}


def read_rankings(
    rankings: Sequence[str], items: Sequence[str] | None = None
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Ranks of items from rankings such as ``"a>c=d>b"``: 1 for the first item.

    Every ranking has all items. Items between ``=`` are tied: they share the mean of their ranks.

    Args:
        rankings: one for each sample, items from the best on.
        items: their names, in the order of the columns; by default the items of the first ranking,
            sorted.

    Returns:
        Ranks, shape (n, k), and the k names.

    Example:
        >>> ranks, items = read_rankings(["a>c>b", "b>a=c"])
        >>> ranks
        array([[1. , 3. , 2. ],
               [2.5, 1. , 2.5]])
        >>> items.tolist()
        ['a', 'b', 'c']
    """
    texts = [str(text) for text in rankings]
    if not texts:
        raise ValueError("there are no rankings to read")
    names = sorted(dict(_places(texts[0]))) if items is None else [str(item) for item in items]
    places = np.empty((len(texts), len(names)))
    for i, text in enumerate(texts):
        found = _places(text)
        place = dict(found)
        unknown, missing = sorted({*place} - {*names}), sorted({*names} - {*place})
        if unknown or missing or len(found) != len(names):
            problem = f"leaves out {missing[:5]}" if missing else "names an item twice"
            if unknown:
                problem = f"has items that the others do not have: {unknown[:5]}"
            raise ValueError(
                f"ranking {i}, {text!r}, {problem}; every ranking orders all of {names[:20]}, as "
                "in 'a>b>c', or 'a>b=c' for a tie"
            )
        places[i] = [place[name] for name in names]
    return rankdata(places, axis=1), np.asarray(names)


def _places(text: str) -> list[tuple[str, int]]:
    """The items of a ranking, and the number of the group of equals that each is in."""
    groups = enumerate(text.split(">"))
    return [(name.strip(), place) for place, group in groups for name in group.split("=")]


def write_rankings(ranks: Any, items: Sequence[str]) -> list[str]:
    """Rankings such as ``"a>c=d>b"`` from ranks (n, k) and the names of the items.

    Example:
        >>> write_rankings([[1, 3, 2], [2.5, 1, 2.5]], ["a", "b", "c"])
        ['a>c>b', 'b>a=c']
    """
    texts, names = [], np.asarray([str(item) for item in items])
    for row in np.asarray(ranks):
        groups = [names[row == rank].tolist() for rank in np.unique(row)]
        texts.append(">".join("=".join(group) for group in groups))
    return texts


@dataclass(eq=False, repr=False)
class LabelRanker(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Linear model that orders items for each sample, learned from rankings.

    A ranking of k items is a vertex of the permutahedron: the first item has k, the last one 1, and
    tied items share the mean. The model minimizes
    :math:`\sum_i L(y_i, W x_i + b) + \tfrac{\alpha}{2}\|W\|^2` and predicts the order of the
    scores. Unlike the squared loss, a loss on the permutahedron is zero for scores that are in
    order and far enough apart.

    Args:
        loss: ``"sparsemap"``, ``"fitzpatrick_sparsemap"``, ``"squared"`` or
            ``"fitzpatrick_squared"``.
        alpha: strength of the penalty, at least 0.
        tightness: replaces the loss's own: 0 is a Fenchel-Young loss, 1 a Fitzpatrick loss.
        fit_intercept: True to learn b.
        standardize: True if the model sees features of mean 0 and standard deviation 1.
        tol: precision of the fit, as in :class:`ProportionRegressor`.
        max_iter: most iterations of the solver.

    Attributes:
        items_: names of the items, in the order of the columns of scores and ranks.
        regressor_: the fitted :class:`ProportionRegressor`.
        coef_: W, shape (k, d).
        intercept_: b, shape (k,).

    Example:
        >>> X = np.asarray([[-1.0], [-0.5], [0.5], [1.0]])
        >>> model = LabelRanker(alpha=0.1).fit(X, ["a>b>c", "a>b>c", "c>b>a", "c>b>a"])
        >>> model.predict([[0.7], [-2.0]])
        array([[3., 2., 1.],
               [1., 2., 3.]])
        >>> model.predict_rankings([[0.7]])
        ['c>b>a']
    """

    loss: str = "fitzpatrick_sparsemap"
    alpha: float = 1.0
    _: KW_ONLY
    tightness: float | None = None
    fit_intercept: bool = True
    standardize: bool = True
    tol: float = 1e-6
    max_iter: int = 1000

    def _loss(self, k: int) -> Loss:
        if self.loss not in _LOSSES:
            raise ValueError(f"loss must be one of {', '.join(_LOSSES)}, got {self.loss!r}")
        has_set, tightness = _LOSSES[self.loss]
        omega = SquaredNorm(Permutahedron(k)) if has_set else SquaredNorm()
        return FitzpatrickLoss(omega, tightness if self.tightness is None else self.tightness)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from features X (n, d) and rankings.

        Args:
            X: features, dense or sparse.
            y: rankings such as ``"a>b>c"``, or ranks (n, k), 1 for the first item, the columns of
                which may have names.
            sample_weight: weights (n,) of the samples.
        """
        ranks, items = _read(y)
        check_consistent_length(X, ranks)
        k = ranks.shape[1]
        if k < 2:
            raise ValueError("LabelRanker needs rankings of at least two items")
        shared = ("fit_intercept", "standardize", "tol", "max_iter")
        options = {name: getattr(self, name) for name in shared}
        regressor = ProportionRegressor(self._loss(k), self.alpha, **options)
        self.regressor_ = regressor.fit(X, k + 1 - ranks, sample_weight)
        self.items_ = items
        for name in ("coef_", "intercept_", "n_features_in_"):
            setattr(self, name, getattr(regressor, name))
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores of the items, shape (n, k); the highest is the first."""
        check_is_fitted(self, "regressor_")
        return self.regressor_.predict_scores(X)

    def predict(self, X: Any) -> Array:
        """Ranks of the items, shape (n, k), 1 for the first; equal scores share their ranks."""
        return rankdata(-np.asarray(self.decision_function(X)), axis=1)

    def predict_rankings(self, X: Any) -> list[str]:
        """Rankings such as ``"a>c>b"``."""
        return write_rankings(self.predict(X), self.items_)

    def as_ranks(self, y: Any) -> Array:
        """Ranks (n, k) of rankings in the form of the fit."""
        check_is_fitted(self, "regressor_")
        return _read(y, self.items_)[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Kendall's τ of the predictions, averaged over the samples."""
        return kendall_tau(self.as_ranks(y), self.predict(X), sample_weight=sample_weight)


def _read(y: Any, items: Any = None) -> tuple[Any, Any]:
    """Ranks and items of rankings as text, or as ranks."""
    values = np.asarray(y)
    if values.ndim == 1:
        if values.dtype.kind not in "OUST":
            raise ValueError(
                "y must hold rankings such as 'a>b>c', or ranks of shape (n, k), got numbers of "
                f"shape {values.shape}"
            )
        return read_rankings(values.tolist(), items)
    if values.ndim != 2 or values.dtype.kind not in "iuf":
        raise ValueError(
            f"ranks must be numbers of shape (n, k), got shape {values.shape} and dtype "
            f"{values.dtype}"
        )
    ranks = values.astype(float)
    expected = rankdata(ranks, axis=1) if np.isfinite(ranks).all() else np.full_like(ranks, np.nan)
    wrong = np.flatnonzero((ranks != expected).any(axis=1))
    if len(wrong):
        raise ValueError(
            f"row {wrong[0]} of the ranks is {ranks[wrong[0]].tolist()}, and should hold each of "
            f"1, …, {ranks.shape[1]} once, with the mean of their ranks for tied items; "
            "scipy.stats.rankdata(-scores, axis=1) makes ranks of scores"
        )
    names = getattr(y, "columns", None)
    found = np.asarray([f"y{j}" for j in range(ranks.shape[1])] if names is None else names)
    if items is not None and (len(found) != len(items)):
        raise ValueError(f"ranks have {len(found)} columns, and the fit had {len(items)} items")
    return ranks, found
