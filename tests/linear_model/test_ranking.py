"""Label ranking: the reader, the metrics, the estimator."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, spearmanr
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from fitzpatrick import metrics
from fitzpatrick.linear_model import LabelRanker, read_rankings, write_rankings
from tests.helpers import assert_close, seeded

LOSSES = ("sparsemap", "fitzpatrick_sparsemap", "squared", "fitzpatrick_squared")


def draw(n: int = 80, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    """Rankings of four items by noisy linear scores."""
    rng = seeded(seed)
    X = rng.normal(size=(n, 3))
    scores = X @ rng.normal(size=(3, 4)) + 0.3 * rng.normal(size=(n, 4))
    return X, [">".join("abcd"[j] for j in order) for order in np.argsort(-scores, axis=1)]


def test_reader_and_writer() -> None:
    texts = ["b>a=c>d", "a>b>c>d", "a=b=c=d"]
    ranks, items = read_rankings(texts)
    assert items.tolist() == list("abcd")
    assert_close(ranks, [[2.5, 1, 2.5, 4], [1, 2, 3, 4], [2.5] * 4], rtol=0, atol=0)
    assert write_rankings(ranks, items) == ["b>a=c>d", "a>b>c>d", "a=b=c=d"]
    other, _ = read_rankings([" d > c>b = a"], items=["d", "c", "b", "a"])
    assert_close(other, [[1, 2, 3.5, 3.5]], rtol=0, atol=0)


def test_metrics_are_those_of_scipy() -> None:
    true, predicted = seeded(1).integers(0, 4, size=(2, 30, 6))
    rows = list(zip(true, predicted, strict=True))
    expected = np.mean([kendalltau(*row).statistic for row in rows])
    assert_close(metrics.kendall_tau(true, predicted), expected, rtol=1e-12, atol=0)
    expected = np.mean([spearmanr(*row).statistic for row in rows])
    assert_close(metrics.spearman(true, predicted), expected, rtol=1e-12, atol=0)
    assert metrics.kendall_tau([[1, 2]], [[1, 1]]) == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_learns_to_rank(loss: str) -> None:
    X, y = draw()
    model = LabelRanker(loss, alpha=0.1).fit(X, y)
    assert model.score(X, y) > 0.7
    assert model.items_.tolist() == list("abcd")
    assert model.coef_.shape == (4, 3)
    assert model.intercept_.shape == (4,)
    rankings = model.predict_rankings(X[:5])
    assert_close(model.as_ranks(rankings), model.predict(X[:5]), rtol=0, atol=0)
    frame = pd.DataFrame(read_rankings(y)[0], columns=list("abcd"))
    same = LabelRanker(loss, alpha=0.1).fit(X, frame)
    assert_close(same.coef_, model.coef_, rtol=0, atol=0)
    assert same.items_.tolist() == list("abcd")
    tied = LabelRanker("squared", alpha=1e-3).fit([[-1.0], [1.0]], ["a>b=c", "b=c>a"])
    assert_close(tied.predict([[1.0]]), [[3, 1.5, 1.5]], rtol=0, atol=0)


def test_weights_are_repetitions() -> None:
    X, y = draw(40)
    weights = seeded(2).integers(0, 3, len(X))
    rows = np.repeat(np.arange(len(X)), weights)
    model, given = LabelRanker("squared"), np.asarray(y)
    expected = model.fit(X[rows], given[rows]).coef_
    assert_close(model.fit(X, given, weights).coef_, expected, rtol=1e-6, atol=1e-9)
    score = model.score(X[rows], given[rows])
    assert_close(model.score(X, given, weights), score, rtol=1e-12, atol=0)


def test_scorers_and_searches() -> None:
    X, y = draw(40)
    model = LabelRanker("sparsemap", alpha=0.1)
    for name in ("kendall_tau", "spearman"):
        scores = cross_val_score(model, X, y, cv=3, scoring=metrics.get_scorer(name))
        assert np.all(scores > 0.3)
    search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.5
    assert clone(model).get_params() == model.get_params()


RANKINGS = [
    (["a>b>c", "a>x>c"], r"ranking 1, 'a>x>c', has items that the others do not have: \['x'\]"),
    (["a>b>c", "a>b"], r"leaves out \['c'\]"),
    (["a>b", "a>b>a"], "names an item twice"),
    ([], "there are no rankings"),
]
TARGETS = [
    (np.ones((4, 2)), r"row 0 of the ranks is \[1.0, 1.0\], and should hold each of 1, …, 2"),
    (np.full((4, 2), np.nan), "row 0 of the ranks"),
    (np.ones(4), "y must hold rankings such as 'a>b>c'"),
    (["a"] * 4, "rankings of at least two items"),
    (["a>b"] * 3, "inconsistent numbers of samples"),
]


def test_errors() -> None:
    X, y = draw(10)
    model = LabelRanker().fit(X, y)
    for call, message in (
        *((partial(read_rankings, rankings), message) for rankings, message in RANKINGS),
        *((partial(LabelRanker().fit, X[:4], targets), message) for targets, message in TARGETS),
        (partial(LabelRanker("logistic").fit, X, y), "loss must be one of sparsemap"),
        (partial(model.score, X[:1], ["a>b>c>e"]), "has items that the others do not have"),
        (partial(model.score, X[:1], [[1, 2]]), "ranks have 2 columns, and the fit had 4 items"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
