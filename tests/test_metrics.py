"""Metrics of proportions against their definitions and SciPy."""

import numpy as np
import pytest
import sklearn.metrics
from scipy import sparse
from scipy.spatial import distance
from scipy.stats import entropy
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB

from fitzpatrick import metrics
from tests.helpers import seeded

RNG = seeded(0)
P, Q = RNG.dirichlet(np.ones(4), 6), RNG.dirichlet(np.ones(4), 6)

BY_ROW = {
    "squared_error": lambda p, q: distance.sqeuclidean(p, q),
    "jensen_shannon": lambda p, q: distance.jensenshannon(p, q) ** 2,
    "kullback_leibler": entropy,
    "chebyshev": distance.chebyshev,
    "clark": lambda p, q: np.sqrt((((p - q) / (p + q)) ** 2).sum()),
    "canberra": distance.canberra,
    "cosine": lambda p, q: 1 - distance.cosine(p, q),
    "intersection": lambda p, q: 1 - distance.cityblock(p, q) / 2,
    "log_loss": lambda p, q: entropy(p) + entropy(p, q),
    "brier_score": distance.sqeuclidean,
}


@pytest.mark.parametrize("name", BY_ROW)
def test_mean_of_the_definition(name: str) -> None:
    rows = [BY_ROW[name](p, q) for p, q in zip(P, Q, strict=True)]
    metric = getattr(metrics, name)
    assert metric(P, Q) == pytest.approx(np.mean(rows), rel=1e-12)
    weights = RNG.uniform(0, 1, 6)
    expected = np.average(rows, weights=weights)
    assert metric(P, Q, sample_weight=weights) == pytest.approx(expected, rel=1e-12)
    assert metric(sparse.csr_array(P), Q.tolist()) == pytest.approx(np.mean(rows), rel=1e-12)


@pytest.mark.parametrize("name", [*BY_ROW, "calibration_error"])
def test_perfect_predictions(name: str) -> None:
    best = 1.0 if name in ("cosine", "intersection") else 0.0
    one_hot = np.eye(3)
    assert getattr(metrics, name)(one_hot, one_hot) == pytest.approx(best, abs=1e-14)


@pytest.mark.parametrize("name", ["canberra", "clark"])
def test_distances_of_negative_predictions(name: str) -> None:
    negative = RNG.standard_normal((6, 4))
    ratio = np.abs(P - negative) / (np.abs(P) + np.abs(negative))
    by_row = {
        "canberra": [distance.canberra(p, q) for p, q in zip(P, negative, strict=True)],
        "clark": np.sqrt(np.square(ratio).sum(axis=1)),
    }
    assert getattr(metrics, name)(P, negative) == pytest.approx(np.mean(by_row[name]), rel=1e-12)
    assert getattr(metrics, name)([[0.5, 0.5]], [[-0.5, 0.5]]) == 1.0


@pytest.mark.parametrize("weights", [None, RNG.uniform(0, 1, 200)], ids=["unweighted", "weighted"])
def test_class_labels(weights) -> None:
    """Against scikit-learn where it has the metric, and bin by bin where it has not."""
    labels, p = RNG.integers(4, size=200), RNG.dirichlet(np.full(4, 0.7), 200)
    one_hot = np.eye(4)[labels]
    expected = sklearn.metrics.log_loss(labels, p, sample_weight=weights)
    of_class = [
        sklearn.metrics.brier_score_loss(one_hot[:, j], p[:, j], sample_weight=weights)
        for j in range(4)
    ]
    share = np.ones(200) if weights is None else weights
    confidence, is_right = p.max(axis=1), p.argmax(axis=1) == labels
    error = 0.0
    for low in np.arange(15) / 15:
        inside = (confidence > low) & (confidence <= low + 1 / 15)
        if inside.any():
            accuracy, mean = (
                np.average(x[inside], weights=share[inside]) for x in (is_right, confidence)
            )
            error += share[inside].sum() / share.sum() * abs(accuracy - mean)
    for y in (labels, one_hot, sparse.csr_array(one_hot)):
        assert metrics.log_loss(y, p, sample_weight=weights) == pytest.approx(expected, rel=1e-12)
        brier = metrics.brier_score(y, p, sample_weight=weights)
        assert brier == pytest.approx(sum(of_class), rel=1e-12)
        actual = metrics.calibration_error(y, p, sample_weight=weights)
        assert actual == pytest.approx(error, rel=1e-12)


SHARES = np.asarray([[0.7, 0.3], [0.3, 0.7]])
ZEROS = [[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 1e-300, 0.0]]


def test_known_values() -> None:
    for found, expected in (
        (metrics.kullback_leibler([[0.5, 0.5]], [[1.0, 0.0]]), np.inf),
        (metrics.jensen_shannon([[1.0, 0.0]], [[0.0, 1.0]]), np.log(2)),
        (metrics.canberra([[1.0, 0.0]], [[1.0, 0.0]]), 0.0),
        (metrics.calibration_error(SHARES, SHARES), 0.0),
        (metrics.calibration_error([[1.0, 0.0], [1.0, 0.0]], SHARES), 0.2),
        # a bin holds its upper end: a half is in the first of two
        (metrics.calibration_error([0, 1], [[0.5, 0.5], [0.75, 0.25]], n_bins=2), 0.625),
        (metrics.calibration_error([0, 1], [[1.0, 0.0], [0.0, 1.0]], n_bins=1), 0.0),
        (metrics.sparsity(ZEROS), 0.5),
        (metrics.sparsity(ZEROS, sample_weight=[1.0, 0.0]), 0.75),
    ):
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2]], ids=["two classes", "three classes"])
@pytest.mark.parametrize("name", BY_ROW)
def test_scorers_ask_a_classifier_for_probabilities(name: str, labels: list[int]) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[np.isin(y, labels)], y[np.isin(y, labels)]
    names = np.asarray(["a", "b", "c"])[y]
    model = GaussianNB().fit(X, names)
    one_hot = np.eye(len(labels))[y]
    expected = getattr(metrics, name)(one_hot, model.predict_proba(X))
    sign = 1 if name in ("cosine", "intersection") else -1
    scorer = metrics.get_scorer(name)
    assert scorer(model, X, names) == pytest.approx(sign * expected, rel=1e-12)
    weights = RNG.uniform(0, 1, len(X))
    expected = getattr(metrics, name)(one_hot, model.predict_proba(X), sample_weight=weights)
    score = scorer(model, X, names, sample_weight=weights)
    assert score == pytest.approx(sign * expected, rel=1e-12)
    assert np.isfinite(cross_val_score(model, X, names, scoring=scorer, cv=2)).all()


def test_scorers_name_labels_that_the_classifier_does_not_know() -> None:
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X[:100], y[:100])
    with pytest.raises(ValueError, match=r"not fitted with: \[2\]; its classes are \[0, 1\]"):
        metrics.get_scorer("squared_error")(model, X, y)


def test_scorers_take_models_with_one_output() -> None:
    class Model(RegressorMixin, BaseEstimator):
        def predict(self, X):
            return X[:, 0]

    score = metrics.get_scorer("squared_error")(Model(), np.asarray([[1.0], [4.0]]), [1.0, 2.0])
    assert score == -2.0  # higher is better


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.squared_error(P, Q[:3]), r"same shape, got \(6, 4\) and \(3, 4\)"),
        (lambda: metrics.cosine(P, Q * np.nan), "y_pred holds nan in row 0, column 0"),
        (lambda: metrics.cosine(np.ones((2, 2, 2)), Q), "Found array with dim 3"),
        (lambda: metrics.cosine([0.2, 0.8], [0.5, 0.5]), r"y_true must have shape \(n, k\), got"),
        (lambda: metrics.cosine(P, Q + 1j), "Complex data not supported"),
        (lambda: metrics.cosine(P, Q.astype(str)), "not compatible with arrays of bytes/strings"),
        (lambda: metrics.clark(P, Q, sample_weight=[1.0]), r"expected \(6,\)"),
        (lambda: metrics.clark(P, Q, sample_weight=np.zeros(6)), "zero for all samples"),
        (lambda: metrics.clark(P, Q, sample_weight=-np.ones(6)), "Negative values"),
        (lambda: metrics.get_scorer("cosin"), "unknown metric 'cosin'; did you mean 'cosine'"),
        (lambda: metrics.log_loss([0, 4], Q[:2]), "class labels, integers from 0 to 3"),
        (lambda: metrics.log_loss([0.5, 1.0], Q[:2]), "class labels, integers from 0 to 3"),
        (lambda: metrics.brier_score([0, 1], Q), "2 labels for the 6 rows of y_pred"),
        (lambda: metrics.calibration_error(P, Q, n_bins=0), "at least 1, got 0"),
    ],
)
def test_errors(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_huge_weights_and_tensors() -> None:
    weights = np.linspace(0.5, 1.0, 6)
    expected = metrics.chebyshev(P, Q, sample_weight=weights)
    found = metrics.chebyshev(P, Q, sample_weight=1.7e308 * weights)
    assert found == pytest.approx(expected, rel=1e-14)
    torch = pytest.importorskip("torch")
    assert metrics.chebyshev(torch.asarray(P), torch.asarray(Q)) == metrics.chebyshev(P, Q)
