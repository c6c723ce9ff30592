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
from fitzpatrick.linear_model._path import PenaltyPath
from tests.helpers import seeded

from .data import LABELS, WORDS, X, Y

ALPHAS = [0.01, 1.0, 100.0]
GRID = {"alphas": ALPHAS, "refine": 0}
TIGHTNESSES = [0.0, 2.0]


def single_scores(folds, tightnesses=(None,), **options) -> np.ndarray:
    """The scores (folds, alphas, tightnesses) of single fits."""
    scores = np.empty((len(folds), len(ALPHAS), len(tightnesses)))
    for i, j, m in np.ndindex(scores.shape):
        model = ProportionRegressor(alpha=ALPHAS[j], tightness=tightnesses[m], **options)
        train, on = folds[i]
        scores[i, j, m] = negative_error(Y[on], model.fit(X[train], Y[train]).predict(X[on]))
    return scores


def negative_error(Y, prediction) -> float:
    return -metrics.squared_error(Y, prediction)


def squared_error(labels, probabilities, weights) -> float:
    one_hot = np.eye(probabilities.shape[1])[labels]
    return metrics.squared_error(one_hot, probabilities, sample_weight=weights)


GROUPS = seeded(0).integers(0, 6, 60)
HALVES = np.arange(60) < 30


@pytest.mark.parametrize(
    ("cv", "groups"),
    [
        (None, None),
        (2, None),
        (ShuffleSplit(2, random_state=0), None),
        (PredefinedSplit(np.repeat([-1, 0], [40, 20])), None),
        ([(HALVES, ~HALVES)], None),
        (GroupKFold(3), GROUPS),
    ],
)
def test_any_splitter(cv, groups) -> None:
    model = ProportionRegressorCV(**GRID, cv=cv).fit(X, Y, groups=groups)
    expected = single_scores(list(check_cv(cv).split(X, groups=groups)))
    np.testing.assert_allclose(model.scores_, expected[:, :, 0], rtol=1e-6)


def test_a_dev_set_chooses_and_never_enters_the_fit() -> None:
    model = ProportionRegressorCV(**GRID).fit(X[HALVES], Y[HALVES], dev=(X[~HALVES], Y[~HALVES]))
    expected = single_scores([(HALVES, ~HALVES)])
    np.testing.assert_allclose(model.scores_, expected[:, :, 0], rtol=1e-6)
    single = ProportionRegressor(alpha=model.alpha_).fit(X[HALVES], Y[HALVES])
    np.testing.assert_allclose(model.coef_, single.coef_, atol=1e-6)
    weights = np.arange(30.0)
    model = FitzpatrickClassifierCV(alphas=[1.0], tightnesses=[2.0], scoring="squared_error")
    model.fit(X[HALVES], LABELS[HALVES], dev=[X[~HALVES], LABELS[~HALVES], weights])
    error = squared_error(LABELS[~HALVES], model.predict_proba(X[~HALVES]), weights)
    assert model.scores_[0, 0, 0] == pytest.approx(-error, rel=1e-6)


def test_rounded_targets_of_a_dev_set_are_warned_about() -> None:
    with pytest.warns(UserWarning, match="a sum of one by up to 0.0") as caught:
        ProportionRegressorCV(**GRID).fit(X, Y, dev=(X, Y.round(2)))
    assert [warning.filename for warning in caught] == [__file__]


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
    ProportionRegressorCV(**GRID, cv=2, n_jobs=3).fit(X, Y)
    assert asked == [3]


def test_weights_count_in_scores_if_the_scorer_takes_them() -> None:
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
    error = squared_error(y[held_out], single.predict_proba(X[held_out]), weights[held_out])
    assert model.scores_[0, 0] == pytest.approx(-error, rel=1e-6)
    final = FitzpatrickClassifier().fit(X, y, product)
    np.testing.assert_allclose(model.coef_, final.coef_, atol=1e-6)


def test_unfinished_fits_of_the_path_are_counted() -> None:
    model = ProportionRegressorCV(alphas=[1e-3, 1e-4], refine=0, cv=2, max_iter=1, solver="lbfgs")
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, Y)
    assert any("4 of 4 fits of the path did not converge" in str(w.message) for w in caught)
    assert {warning.filename for warning in caught} == {__file__}  # where fit was called


def test_refinements_halve_the_distance_to_both_neighbors() -> None:
    """Around the best alpha of every tightness."""
    model = ProportionRegressorCV(alphas=[100.0, 0.01, 1.0], tightnesses=[0.0, 8.0], cv=2)
    model.fit(X, Y)
    assert (np.diff(model.alphas_) > 0).all()
    assert model.scores_.shape == (2, len(model.alphas_), 2)
    train, held_out = next(KFold(2).split(X))
    for j, scores in enumerate(model.scores_.mean(axis=0).T):
        at = int(np.argmax(scores))
        steps = np.diff(np.log10(model.alphas_))[max(at - 1, 0) : at + 1]
        np.testing.assert_allclose(steps, 2 / 2**3, rtol=1e-12)  # of two decades, thrice
        single = ProportionRegressor(alpha=model.alphas_[at], tightness=[0.0, 8.0][j])
        error = negative_error(Y[held_out], single.fit(X[train], Y[train]).predict(X[held_out]))
        assert model.scores_[0, at, j] == pytest.approx(error, rel=1e-6)
    single = ProportionRegressor(alpha=model.alpha_, tightness=model.tightness_).fit(X, Y)
    np.testing.assert_allclose(model.coef_, single.coef_, atol=1e-6)


def test_refinements_start_at_the_next_stronger_penalty(monkeypatch) -> None:
    """Each fold at its own coefficients, in single precision."""
    paths, models = [], PenaltyPath.models

    def recorded(self, alphas, start=None):
        paths.append((start, list(models(self, alphas, start))))
        return iter(paths[-1][1])

    monkeypatch.setattr(PenaltyPath, "models", recorded)
    ProportionRegressorCV(alphas=ALPHAS, cv=2, refine=1).fit(X, Y)
    for (_, whole), (start, finer) in zip(paths[:2], paths[2:4], strict=True):
        nearest = min(
            (model for model in whole if model.alpha > finer[0].alpha),
            key=lambda model: model.alpha,
        )
        np.testing.assert_array_equal(start[0], nearest.coef.astype(np.float32))
        np.testing.assert_array_equal(start[1], nearest.intercept.astype(np.float32))


@pytest.mark.parametrize("alphas", [[2.0], [0.0, 1.0], [1.0, 1.1, 1.2]])
def test_where_there_is_nothing_between_alphas_there_is_nothing_to_refine(alphas: list) -> None:
    model = ProportionRegressorCV(alphas=alphas, cv=2).fit(X, Y)
    np.testing.assert_array_equal(model.alphas_, alphas)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.coo_matrix])
def test_cross_validation_is_the_grid_by_brute_force(form) -> None:
    folds = KFold(2, shuffle=True, random_state=0)
    options = {"standardize": True, "tol": 1e-9}
    model = ProportionRegressorCV(**GRID, tightnesses=TIGHTNESSES, cv=folds, **options)
    model.fit(form(X), form(Y))
    expected = single_scores(list(folds.split(X)), TIGHTNESSES, **options)
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-6)
    mean = expected.mean(axis=0)
    j, m = np.unravel_index(mean.argmax(), mean.shape)
    assert (model.alpha_, model.tightness_) == (ALPHAS[j], TIGHTNESSES[m])
    assert model.best_score_ == pytest.approx(mean.max())
    np.testing.assert_array_equal(model.tightnesses_, TIGHTNESSES)
    refit = ProportionRegressor(alpha=model.alpha_, tightness=model.tightness_, **options)
    np.testing.assert_allclose(model.coef_, refit.fit(X, Y).coef_, atol=1e-6)
    own = model.set_params(tightnesses=None).fit(X, Y)  # which is 1
    assert own.scores_.shape == (2, 3)
    assert not hasattr(own, "tightnesses_")


def test_equal_scores_choose_the_strongest_penalty_and_the_first_tightness() -> None:
    model = FitzpatrickClassifierCV(alphas=[0.01, 0.1, 1.0], tightnesses=[2.0, 0.0], refine=1, cv=2)
    model.set_params(scoring=lambda *_: 1.0).fit(X, LABELS)
    assert (model.alpha_, model.tightness_) == (1.0, 2.0)
    np.testing.assert_allclose(model.alphas_, [0.01, 0.1, 10.0**-0.5, 1.0])


def test_callbacks_see_every_fit() -> None:
    seen: list[Iteration] = []
    model = ProportionRegressorCV(alphas=[0.1, 1.0], refine=1, cv=3, callback=seen.append)
    model.fit(X, Y)
    starts = [now.alpha for now in seen if now.iteration == 0]
    middle = 10.0**-0.5
    assert starts == pytest.approx([1.0, 0.1] * 3 + [middle] * 3 + [model.alpha_])  # by folds
    assert seen[-1].iteration == model.n_iter_


def test_scorers_in_a_grid_search() -> None:
    """They go by name in our CV estimators, and by get_scorer in scikit-learn's."""
    name = "jensen_shannon"
    grid = {"alpha": [0.1, 10.0]}
    for model, cv_model, y in (
        (ProportionRegressor(), ProportionRegressorCV, Y),
        (FitzpatrickClassifier(), FitzpatrickClassifierCV, WORDS),
    ):
        search = GridSearchCV(model, grid, scoring=metrics.get_scorer(name), cv=3).fit(X, y)
        expected = cv_model(alphas=grid["alpha"], refine=0, scoring=name, cv=3).fit(X, y)
        assert search.best_params_["alpha"] == expected.alpha_
        assert search.best_score_ == pytest.approx(expected.best_score_, rel=1e-6)
