"""Sets with coverage: simulated coverage, supports of sparse links, bad input."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from fitzpatrick.conformal import ConformalClassifier
from fitzpatrick.linear_model import FitzpatrickClassifier
from fitzpatrick.regularizers import SquaredNorm, Tsallis
from fitzpatrick.sets import Simplex
from tests.helpers import seeded


class Fixed(BaseEstimator):
    """A classifier whose scores are its features."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.classes_ = np.arange(k)

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return X

    def predict_proba(self, X):
        p = np.exp(X - X.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, X):
        return X.argmax(axis=1)


def draw(rng: np.random.Generator, n: int, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
    theta = rng.normal(size=(n, k)) * 2
    noisy = theta + rng.gumbel(size=(n, k))
    return theta, noisy.argmax(axis=1)


@pytest.mark.parametrize("measure", ["probability", "support"])
@pytest.mark.parametrize("coverage", [0.8, 0.95])
def test_coverage(measure: str, coverage: float) -> None:
    """Over many calibrations the coverage is between the level and 1/(n + 1) above it."""
    rng = seeded(1)
    n, repeats, fresh = 99, 100, 500
    found = []
    for _ in range(repeats):
        model = ConformalClassifier(Fixed(5), coverage, measure=measure, prefit=True)
        model.fit(*draw(rng, n))
        theta, y = draw(rng, fresh)
        found.append(model.predict_set(theta)[np.arange(fresh), y].mean())
    # the coverage of one calibration is beta distributed, with less than 0.5/√n of deviation
    slack = 5 * 0.5 / np.sqrt(n) / np.sqrt(repeats)
    assert coverage - slack <= np.mean(found) <= coverage + 1 / (n + 1) + slack


@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_the_set_is_the_support_of_the_link_at_the_temperature(alpha: float) -> None:
    rng = seeded(2)
    model = ConformalClassifier(Fixed(6), 0.7, measure="support", alpha=alpha, prefit=True)
    model.fit(*draw(rng, 200, 6))
    theta, _ = draw(rng, 100, 6)
    omega = Tsallis(alpha) if alpha < 2 else SquaredNorm(Simplex())
    support = omega.link(theta / model.threshold_) > 0
    np.testing.assert_array_equal(model.predict_set(theta), support)
    # 100 · 0.55 is 55.00000000000001, and means the 55th
    model = ConformalClassifier(Fixed(2), 0.55, prefit=True)
    scores = np.stack([np.zeros(99), np.arange(99) / 20], axis=1)
    model.fit(scores, np.zeros(99, int))
    badness = 1 - Fixed(2).predict_proba(scores)[:, 0]
    assert model.threshold_ == np.sort(badness)[54]
    # the last of 9 scores, at a coverage of 9/10
    scores = np.stack([np.zeros(9), np.arange(9.0)], axis=1)
    model = ConformalClassifier(Fixed(2), 0.9, prefit=True).fit(scores, np.zeros(9, int))
    assert model.threshold_ == 1 - Fixed(2).predict_proba(scores)[8, 0]
    few = ConformalClassifier(Fixed(5), 0.99, prefit=True).fit(*draw(rng, 20))
    assert few.threshold_ == np.inf
    assert few.predict_set(np.zeros((3, 5))).all()


def test_estimators_of_either_library() -> None:
    rng = seeded(3)
    X = rng.normal(size=(300, 4))
    y = np.asarray(["no", "yes"])[(X[:, 0] + rng.normal(size=300) > 0).astype(int)]
    for base in (LogisticRegression(), FitzpatrickClassifier("fitzpatrick_entmax15")):
        for measure in ("probability", "support"):
            model = ConformalClassifier(base, 0.9, measure=measure, random_state=0).fit(X, y)
            assert model.n_calibration_ == 75
            sets = model.predict_set(X)
            assert sets.shape == (300, 2)
            # the predicted class is the best one: it is in every set that is not empty
            chosen = np.searchsorted(model.classes_, model.predict(X))
            assert (sets[np.arange(300), chosen] | ~sets.any(axis=1)).all()


def test_scikit_learn_conventions() -> None:
    results = check_estimator(ConformalClassifier(GaussianNB()), on_skip=None, on_fail=None)
    assert [each for each in results if each["status"] == "failed"] == []


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"coverage": 1.5}, [0, 1, 2], "coverage must be between"),
        ({"measure": "aps"}, [0, 1, 2], "measure must be"),
        ({"alpha": 1.0}, [0, 1, 2], "alpha must be above 1"),
        ({}, [0, 1, 7], "was not fitted to: 7"),
        ({}, [0, 1], "inconsistent"),
        ({"prefit": False, "estimator": SVC()}, None, "give the labels"),
    ],
)
def test_bad_input(parameters, y, message: str) -> None:
    given = {"estimator": Fixed(3), "prefit": True, **parameters}
    with pytest.raises(ValueError, match=message):
        ConformalClassifier(**given).fit(np.zeros((3, 3)), y)


def test_scores_of_pairs() -> None:
    pairs = SVC(decision_function_shape="ovo")
    with pytest.raises(ValueError, match="one score per class"):
        ConformalClassifier(pairs, measure="support", random_state=0).fit(*draw(seeded(6), 60, 3))
