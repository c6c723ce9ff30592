"""Choosing alpha: folds, dev sets, scores, and the path behind them."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    check_cv,
)

from fitzpatrick import metrics
from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    Iteration,
    ProportionRegressor,
    ProportionRegressorCV,
    _cv,
)
from tests.helpers import seeded

from .data import features, targets

ALPHAS = [0.01, 1.0, 100.0]
GRID = {"alphas": ALPHAS, "refine": 0}
TIGHTNESSES = [0.0, 2.0]


def problem(n: int = 60):
    X = features(n)
    return X, targets("fitzpatrick_logistic", X)


def single_scores(X, Y, folds) -> np.ndarray:
    """The scores of a single fit for each fold and alpha."""
    models = [ProportionRegressor(alpha=alpha) for alpha in ALPHAS]
    return np.asarray(
        [
            [negative_error(Y[on], m.fit(X[train], Y[train]).predict(X[on])) for m in models]
            for train, on in folds
        ]
    )


def negative_error(Y, prediction) -> float:
    return -metrics.squared_error(Y, prediction)


def test_a_dev_set_chooses_and_never_enters_the_fit() -> None:
    X, Y = problem()
    model = ProportionRegressorCV(**GRID).fit(X[:40], Y[:40], dev=(X[40:], Y[40:]))
    expected = single_scores(X, Y, [(np.arange(40), np.arange(40, 60))])
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-6)
    single = ProportionRegressor(alpha=model.alpha_).fit(X[:40], Y[:40])
    np.testing.assert_allclose(model.coef_, single.coef_, atol=1e-6)
    weights = np.arange(20.0)
    model = ProportionRegressorCV(alphas=[1.0]).fit(X[:40], Y[:40], dev=[X[40:], Y[40:], weights])
    error = metrics.squared_error(Y[40:], model.predict(X[40:]), sample_weight=weights)
    assert model.scores_[0, 0] == pytest.approx(-error, rel=1e-6)


GROUPS = seeded(0).integers(0, 6, 60)


@pytest.mark.parametrize(
    ("cv", "groups"),
    [
        (None, None),
        (2, None),
        (ShuffleSplit(2, random_state=0), None),
        (PredefinedSplit(np.repeat([-1, 0], [40, 20])), None),
        ([(np.arange(60) < 30, np.arange(60) >= 30)], None),
        (GroupKFold(3), GROUPS),
    ],
)
def test_any_splitter(cv, groups) -> None:
    X, Y = problem()
    model = ProportionRegressorCV(**GRID, cv=cv).fit(X, Y, groups=groups)
    expected = single_scores(X, Y, check_cv(cv).split(X, groups=groups))
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-6)


@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error"])
def test_sparse_data_change_nothing(scoring) -> None:
    X, Y = problem()
    model = ProportionRegressorCV(**GRID, cv=2, scoring=scoring)
    expected = model.fit(X, Y).scores_
    for form in (sparse.csr_array, sparse.coo_matrix):
        np.testing.assert_allclose(model.fit(form(X), form(Y)).scores_, expected, rtol=1e-6)


def test_jobs_are_joblibs(monkeypatch) -> None:
    asked = []

    def parallel(n_jobs):
        def call(jobs):
            for function, arguments, options in jobs:  # as they reach another process
                function, arguments = pickle.loads(pickle.dumps((function, arguments)))
                yield function(*arguments, **options)

        asked.append(n_jobs)
        return lambda jobs: list(call(jobs))

    monkeypatch.setattr(_cv, "Parallel", parallel)
    X, Y = problem()
    ProportionRegressorCV(**GRID, cv=2, n_jobs=3).fit(X, Y)
    assert asked == [3]


def test_one_output() -> None:
    X = features()
    y = targets("poisson", X, k=1)[:, 0]
    model = ProportionRegressorCV("poisson", ALPHAS, cv=2).fit(X, y)
    column = ProportionRegressorCV("poisson", ALPHAS, cv=2).fit(X, y[:, None])
    np.testing.assert_array_equal(model.scores_, column.scores_)
    assert model.predict(X).shape == (60,)


def test_weights_count_in_scores_if_the_scorer_takes_them() -> None:
    X, Y = problem()
    weights = np.repeat([1.0, 3.0], 30)
    folds = KFold(2, shuffle=True, random_state=0)

    def weighted(model, X, Y, sample_weight=None) -> float:
        return -metrics.squared_error(Y, model.predict(X), sample_weight=sample_weight)

    def scores(scoring) -> np.ndarray:
        return ProportionRegressorCV(**GRID, cv=folds, scoring=scoring).fit(X, Y, weights).scores_

    plain = scores(lambda model, X, Y: negative_error(Y, model.predict(X)))
    train, on = next(folds.split(X))
    single = ProportionRegressor(alpha=ALPHAS[0]).fit(X[train], Y[train], weights[train])
    assert plain[0, 0] == pytest.approx(negative_error(Y[on], single.predict(X[on])), rel=1e-6)
    np.testing.assert_array_equal(scores(make_scorer(lambda y, p: negative_error(y, p))), plain)
    np.testing.assert_array_equal(scores(None), scores(weighted))
    assert (np.abs(scores(None) - plain) > 1e-6).all()


def test_class_weights_count_in_the_fits_and_not_in_the_scores() -> None:
    X, y = load_iris(return_X_y=True)
    weights = seeded(0).uniform(0.0, 2.0, len(X))
    by_class = np.asarray([1.0, 5.0, 0.2])
    folds = StratifiedKFold(2)
    model = FitzpatrickClassifierCV(
        alphas=[1.0], cv=folds, scoring="squared_error", class_weight=dict(enumerate(by_class))
    ).fit(X, y, weights)
    train, held_out = next(folds.split(X, y))
    product = by_class[y] * weights
    single = FitzpatrickClassifier().fit(X[train], y[train], product[train])
    error = metrics.squared_error(
        np.eye(3)[y[held_out]], single.predict_proba(X[held_out]), sample_weight=weights[held_out]
    )
    assert model.scores_[0, 0] == pytest.approx(-error, rel=1e-6)
    final = FitzpatrickClassifier().fit(X, y, product)
    np.testing.assert_allclose(model.coef_, final.coef_, atol=1e-6)


def test_unfinished_fits_of_the_path_are_counted() -> None:
    X, Y = problem()
    model = ProportionRegressorCV(alphas=[1e-3, 1e-4], refine=0, cv=2, max_iter=1, solver="lbfgs")
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, Y)
    assert any("4 of 4 fits of the path did not converge" in str(w.message) for w in caught)
    assert {warning.filename for warning in caught} == {__file__}  # where fit was called


def test_refinements_halve_the_distance_to_both_neighbours() -> None:
    X, Y = problem()
    model = ProportionRegressorCV(alphas=[100.0, 0.01, 1.0], cv=2).fit(X, Y)
    assert (np.diff(model.alphas_) > 0).all()
    assert model.scores_.shape == (2, len(model.alphas_))
    at = int(np.searchsorted(model.alphas_, model.alpha_))
    steps = np.diff(np.log10(model.alphas_))[max(at - 1, 0) : at + 1]
    np.testing.assert_allclose(steps, 2 / 2**3, rtol=1e-12)  # of two decades, thrice
    folds = KFold(2)
    for alpha, found in zip(model.alphas_, model.scores_.T, strict=True):
        train, held_out = next(folds.split(X))
        single = ProportionRegressor(alpha=alpha).fit(X[train], Y[train])
        assert found[0] == pytest.approx(negative_error(Y[held_out], single.predict(X[held_out])))
    np.testing.assert_allclose(
        model.coef_, ProportionRegressor(alpha=model.alpha_).fit(X, Y).coef_, atol=1e-6
    )


def test_every_tightness_is_refined_around_its_own_best() -> None:
    X, Y = problem()
    options = {"loss": "fitzpatrick_logistic", "alphas": [0.1, 1.0, 10.0, 100.0], "cv": 2}
    both = ProportionRegressorCV(tightnesses=[0.0, 8.0], **options).fit(X, Y)
    assert both.scores_.shape == (2, len(both.alphas_), 2)
    assert np.isfinite(both.scores_).all()
    for j, tightness in enumerate((0.0, 8.0)):
        alone = ProportionRegressorCV(tightnesses=[tightness], **options).fit(X, Y)
        assert set(alone.alphas_) <= set(both.alphas_)
        at = np.searchsorted(both.alphas_, alone.alphas_)
        np.testing.assert_allclose(both.scores_[:, at, j], alone.scores_[:, :, 0], rtol=1e-5)


@pytest.mark.parametrize("alphas", [[2.0], [0.0, 1.0], [1.0, 1.2, 1.4]])
def test_where_there_is_nothing_between_alphas_there_is_nothing_to_refine(alphas: list) -> None:
    model = ProportionRegressorCV(alphas=alphas, cv=2).fit(*problem())
    np.testing.assert_array_equal(model.alphas_, alphas)


@pytest.mark.parametrize("loss", ["fitzpatrick_logistic", "fitzpatrick_sparsemax"])
def test_cross_validation_is_the_grid_by_brute_force(loss: str) -> None:
    X = features()
    Y = targets(loss, X)
    folds = KFold(3, shuffle=True, random_state=0)
    model = ProportionRegressorCV(loss, ALPHAS, tightnesses=TIGHTNESSES, cv=folds, refine=0)
    model.set_params(standardize=True, tol=1e-9).fit(X, Y)
    expected = np.empty((3, len(ALPHAS), len(TIGHTNESSES)))
    for i, (train, held_out) in enumerate(folds.split(X)):
        for j, alpha in enumerate(ALPHAS):
            for m, tightness in enumerate(TIGHTNESSES):
                single = ProportionRegressor(loss, alpha, tightness=tightness, tol=1e-9)
                single.set_params(standardize=True).fit(X[train], Y[train])
                prediction = single.predict(X[held_out])
                expected[i, j, m] = -metrics.squared_error(Y[held_out], prediction)
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-6)
    mean = expected.mean(axis=0)
    j, m = np.unravel_index(mean.argmax(), mean.shape)
    assert (model.alpha_, model.tightness_) == (ALPHAS[j], TIGHTNESSES[m])
    assert model.best_score_ == pytest.approx(mean.max())
    np.testing.assert_array_equal(model.tightnesses_, TIGHTNESSES)
    refit = ProportionRegressor(loss, model.alpha_, tightness=model.tightness_, standardize=True)
    np.testing.assert_allclose(model.coef_, refit.fit(X, Y).coef_, atol=1e-6)


def test_shapes_without_tightnesses_are_those_of_alphas_alone() -> None:
    X, Y = problem()
    model = ProportionRegressorCV(**GRID, tightnesses=[1.0], cv=2)
    scores = model.fit(X, Y).scores_
    assert scores.shape == (2, 3, 1)
    np.testing.assert_array_equal(
        model.set_params(tightnesses=None).fit(X, Y).scores_, scores[..., 0]
    )
    assert not hasattr(model, "tightnesses_")
    assert model.tightness_ == 1.0


def test_classifier_chooses_alpha_and_tightness_on_a_dev_set() -> None:
    X, y = load_iris(return_X_y=True)
    train, dev = np.arange(0, 150, 2), np.arange(1, 150, 2)
    model = FitzpatrickClassifierCV(
        alphas=[0.1, 1.0], tightnesses=TIGHTNESSES, scoring="kullback_leibler", refine=0
    ).fit(X[train], y[train], dev=(X[dev], y[dev]))
    assert model.scores_.shape == (1, 2, 2)
    j, m = np.unravel_index(model.scores_[0].argmax(), (2, 2))
    assert (model.alpha_, model.tightness_) == ([0.1, 1.0][j], TIGHTNESSES[m])
    single = FitzpatrickClassifier(alpha=model.alpha_, tightness=model.tightness_)
    single.fit(X[train], y[train])
    np.testing.assert_allclose(model.predict_proba(X), single.predict_proba(X), atol=1e-6)


def test_equal_scores_choose_the_strongest_penalty_and_the_first_tightness() -> None:
    X, y = load_iris(return_X_y=True)
    model = FitzpatrickClassifierCV(
        alphas=[0.1, 1.0], tightnesses=[2.0, 0.0], scoring=lambda *_: 1.0, cv=2
    ).fit(X, y)
    assert (model.alpha_, model.tightness_) == (1.0, 2.0)


def test_callbacks_see_every_fit() -> None:
    seen: list[Iteration] = []
    model = ProportionRegressorCV(alphas=[0.1, 1.0], refine=1, cv=3, callback=seen.append)
    model.fit(*problem())
    starts = [now.alpha for now in seen if now.iteration == 0]
    middle = 10.0**-0.5
    assert starts == pytest.approx([1.0, 0.1] * 3 + [middle] * 3 + [model.alpha_])  # by folds
    assert seen[-1].iteration == model.n_iter_


@pytest.mark.parametrize("name", ["jensen_shannon", "chebyshev"])
def test_scorers_in_a_grid_search(name: str) -> None:
    """They go by name in our CV estimators, and by get_scorer in scikit-learn's."""
    X, Y = problem()
    words = np.asarray(["ash", "birch", "cedar", "date"])[Y.argmax(axis=1)]
    grid = {"alpha": [0.1, 10.0]}
    for model, cv_model, y in (
        (ProportionRegressor(), ProportionRegressorCV, Y),
        (FitzpatrickClassifier(), FitzpatrickClassifierCV, words),
    ):
        search = GridSearchCV(model, grid, scoring=metrics.get_scorer(name), cv=3).fit(X, y)
        expected = cv_model(alphas=grid["alpha"], refine=0, scoring=name, cv=3).fit(X, y)
        assert search.best_params_["alpha"] == expected.alpha_
        assert search.best_score_ == pytest.approx(expected.best_score_, rel=1e-6)
