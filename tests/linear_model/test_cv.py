"""Choosing alpha: folds, dev sets, scores, and the path behind them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, ShuffleSplit

from fitzpatrick import metrics
from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
)

from .data import features, targets

ALPHAS = [0.01, 1.0, 100.0]


def problem(n: int = 60):
    X = features(n)
    return X, targets("fitzpatrick_logistic", X)


def test_scores_are_those_of_single_fits() -> None:
    X, Y = problem()
    folds = KFold(3, shuffle=True, random_state=0)
    model = ProportionRegressorCV(alphas=ALPHAS, cv=folds, standardize=True).fit(X, Y)
    expected = np.empty((3, len(ALPHAS)))
    for i, (train, held_out) in enumerate(folds.split(X)):
        for j, alpha in enumerate(ALPHAS):
            single = ProportionRegressor(alpha=alpha, standardize=True).fit(X[train], Y[train])
            error = metrics.squared_error(Y[held_out], single.predict(X[held_out]))
            expected[i, j] = -error
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-6)
    best = ALPHAS[expected.mean(axis=0).argmax()]
    assert model.alpha_ == best
    assert model.best_score_ == pytest.approx(expected.mean(axis=0).max())
    refit = ProportionRegressor(alpha=best, standardize=True).fit(X, Y)
    np.testing.assert_allclose(model.coef_, refit.coef_, atol=1e-6)


def test_default_alphas_are_the_papers() -> None:
    X, Y = problem(30)
    model = ProportionRegressorCV(cv=2, tol=1e-5).fit(X, Y)
    np.testing.assert_allclose(model.alphas_, 10.0 ** np.arange(-4, 5))
    assert model.scores_.shape == (2, 9)


def test_a_dev_set_chooses_and_never_enters_the_fit() -> None:
    X, Y = problem()
    model = ProportionRegressorCV(alphas=ALPHAS).fit(X[:40], Y[:40], dev=(X[40:], Y[40:]))
    assert model.scores_.shape == (1, 3)
    errors = [
        metrics.squared_error(
            Y[40:], ProportionRegressor(alpha=alpha).fit(X[:40], Y[:40]).predict(X[40:])
        )
        for alpha in ALPHAS
    ]
    np.testing.assert_allclose(-model.scores_[0], errors, rtol=1e-6)
    single = ProportionRegressor(alpha=model.alpha_).fit(X[:40], Y[:40])
    np.testing.assert_allclose(model.coef_, single.coef_, atol=1e-6)


@pytest.mark.parametrize(
    "cv",
    [
        None,
        2,
        ShuffleSplit(2, random_state=0),
        PredefinedSplit(np.repeat([-1, 0], [40, 20])),
        [(np.arange(30), np.arange(30, 60))],
    ],
)
def test_any_splitter(cv) -> None:
    X, Y = problem()
    model = ProportionRegressorCV(alphas=ALPHAS, cv=cv).fit(X, Y)
    assert model.scores_.shape[1] == 3
    assert model.alpha_ in ALPHAS


def test_groups_reach_the_splitter() -> None:
    X, Y = problem()
    groups = np.repeat(np.arange(6), 10)
    model = ProportionRegressorCV(alphas=ALPHAS, cv=GroupKFold(3)).fit(X, Y, groups=groups)
    assert model.scores_.shape == (3, 3)


def test_jobs_and_sparse_data_change_nothing() -> None:
    X, Y = problem()
    one = ProportionRegressorCV(alphas=ALPHAS, cv=2).fit(X, Y)
    two = ProportionRegressorCV(alphas=ALPHAS, cv=2, n_jobs=2).fit(X, Y)
    np.testing.assert_allclose(one.scores_, two.scores_, rtol=1e-10)
    sparse_model = ProportionRegressorCV(alphas=ALPHAS, cv=2)
    sparse_model.fit(sparse.csr_array(X), sparse.csr_array(Y))
    np.testing.assert_allclose(sparse_model.scores_, one.scores_, rtol=1e-6)


def test_weights_count_in_fits_and_scores() -> None:
    X, Y = problem()
    weights = np.repeat([1.0, 3.0], 30)
    folds = [(np.arange(0, 60, 2), np.arange(1, 60, 2))]
    model = ProportionRegressorCV(alphas=[1.0], cv=folds).fit(X, Y, weights)
    train, held_out = folds[0]
    single = ProportionRegressor().fit(X[train], Y[train], weights[train])
    error = metrics.squared_error(
        Y[held_out], single.predict(X[held_out]), sample_weight=weights[held_out]
    )
    assert model.scores_[0, 0] == pytest.approx(-error, rel=1e-6)


def test_equal_scores_choose_the_strongest_penalty() -> None:
    X, y = load_iris(return_X_y=True)
    model = FitzpatrickClassifierCV(alphas=[0.1, 1.0], scoring=lambda *_: 1.0, cv=2).fit(X, y)
    assert model.alpha_ == 1.0


@pytest.mark.parametrize("scoring", [None, "accuracy", "neg_log_loss"])
def test_classifier_chooses(scoring) -> None:
    X, y = load_iris(return_X_y=True)
    names = np.asarray(["a", "b", "c"])[y]
    model = FitzpatrickClassifierCV(alphas=[1e-2, 1e3], cv=3, scoring=scoring).fit(X, names)
    assert model.alpha_ == 1e-2
    assert model.score(X, names) > 0.9
    single = FitzpatrickClassifier(alpha=1e-2).fit(X, names)
    np.testing.assert_array_equal(model.predict(X), single.predict(X))


def test_metrics_go_by_name() -> None:
    X, Y = problem()
    model = ProportionRegressorCV(alphas=ALPHAS, cv=2, scoring="intersection").fit(X, Y)
    assert (model.scores_ > 0).all()


def test_columns_constant_in_a_fold_only_are_no_error() -> None:
    X, Y = problem()
    X[:30, 0] = 1.0
    folds = [(np.arange(30), np.arange(30, 60))]
    model = ProportionRegressorCV(alphas=ALPHAS, cv=folds, standardize=True).fit(X, Y)
    assert np.isfinite(model.scores_).all()


def test_unfinished_fits_of_the_path_are_counted() -> None:
    X, Y = problem()
    model = ProportionRegressorCV(alphas=[1e-3, 1e-4], cv=2, max_iter=1, solver="lbfgs")
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, Y)
    assert any("4 of 4 fits of the path did not converge" in str(w.message) for w in caught)


def test_nan_scores_are_an_error() -> None:
    X, Y = problem()
    with pytest.raises(ValueError, match=r"gave NaN for alphas \[0.01, 1.0, 100.0\]"):
        ProportionRegressorCV(alphas=ALPHAS, cv=2, scoring=lambda *_: np.nan).fit(X, Y)
