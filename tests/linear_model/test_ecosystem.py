"""At home in scikit-learn: pipelines, searches, persistence, feature names, memory."""

import pickle
import tracemalloc

import numpy as np
import pytest
import skops.io
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

import fitzpatrick as fp
from fitzpatrick import engines, metrics
from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
    _objective,
)
from fitzpatrick.linear_model._estimators import LinearModel
from tests.helpers import seeded

from .data import features, targets

X = features()
Y = targets("fitzpatrick_logistic", X)


def fitted():
    labels = np.asarray(["a", "b", "c", "d"])[Y.argmax(axis=1)]
    return [
        ProportionRegressor().fit(X, Y),
        ProportionRegressorCV(alphas=[0.1, 1.0], cv=2).fit(X, Y),
        FitzpatrickClassifier().fit(X, labels),
        FitzpatrickClassifierCV(alphas=[0.1, 1.0], cv=2).fit(X, labels),
        ProportionRegressor(loss=fp.FitzpatrickLoss(fp.regularizers.Tsallis(1.3))).fit(X, Y),
    ]


@pytest.mark.parametrize("i", range(5))
def test_pickle_and_skops_keep_the_model(i: int) -> None:
    model = fitted()[i]
    expected = model.predict(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), expected)
    dumped = skops.io.dumps(model)
    loaded = skops.io.loads(dumped, trusted=skops.io.get_untrusted_types(data=dumped))
    np.testing.assert_array_equal(loaded.predict(X), expected)
    assert loaded.status_ is model.status_


def test_clone_copies_parameters_only() -> None:
    for model in fitted():
        copy = clone(model)
        assert copy.get_params() == model.get_params()
        assert not hasattr(copy, "coef_")


def test_pipeline_and_grid_search() -> None:
    pipeline = make_pipeline(StandardScaler(), ProportionRegressor())
    search = GridSearchCV(
        pipeline,
        {
            "proportionregressor__alpha": [0.1, 10.0],
            "proportionregressor__loss": ["logistic", "fitzpatrick_sparsemax"],
        },
        scoring=metrics.get_scorer("squared_error"),
        cv=3,
        error_score="raise",
    ).fit(X, Y)
    assert search.best_score_ < 0
    assert search.predict(X).shape == Y.shape


@pytest.mark.parametrize("name", sorted(set(metrics.metric_names()) - {"sparsity"}))
def test_every_metric_is_a_scorer(name: str) -> None:
    scores = cross_val_score(ProportionRegressor(), X, Y, scoring=metrics.get_scorer(name), cv=2)
    sign = 1 if name in ("cosine", "intersection") else -1
    for score, (train, held_out) in zip(scores, KFold(2).split(X), strict=True):
        prediction = ProportionRegressor().fit(X[train], Y[train]).predict(X[held_out])
        expected = sign * getattr(metrics, name)(Y[held_out], prediction)
        assert score == pytest.approx(expected, rel=1e-12)


def test_threads_are_those_that_were_asked_for(monkeypatch) -> None:
    labels = Y.argmax(axis=1)  # of a problem so small that the default is one thread
    seen = []
    evaluate, bind = _objective.Objective.evaluate, engines.bind_like

    def spied_evaluate(self, parameters):
        blas = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        seen.append({pool["num_threads"] for pool in blas})
        return evaluate(self, parameters)

    def spied_bind(omega, tightness, y, n_classes, like, n_threads):
        seen.append(n_threads)
        return bind(omega, tightness, y, n_classes, like, n_threads)

    monkeypatch.setattr(_objective.Objective, "evaluate", spied_evaluate)
    monkeypatch.setattr(engines, "bind_like", spied_bind)
    FitzpatrickClassifier(n_threads=1, tol=0.1).fit(X, labels)
    assert seen[0] == 1
    assert len(seen) > 1
    assert all(threads == {1} for threads in seen[1:])
    seen.clear()
    with threadpool_limits(2, user_api="blas"):
        FitzpatrickClassifier(n_threads=2, tol=0.1).fit(X, labels)
    assert seen[0] == 2
    assert all(2 in threads for threads in seen[1:])


def test_default_score_is_r2_and_accuracy() -> None:
    assert 0 < ProportionRegressor(alpha=0.01).fit(X, Y).score(X, Y) < 1
    iris, labels = load_iris(return_X_y=True)
    assert FitzpatrickClassifier(alpha=0.01).fit(iris, labels).score(iris, labels) > 0.9


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.coo_matrix])
def test_default_score_takes_sparse_targets(form) -> None:
    model = ProportionRegressor().fit(X, form(Y))
    assert model.score(X, form(Y)) == model.score(X, Y)
    weights = np.arange(len(X))
    assert model.score(X, form(Y), weights) == model.score(X, Y, weights)
    search = GridSearchCV(ProportionRegressor(), {"alpha": [0.1, 10.0]}, cv=2)
    expected = search.fit(X, Y).cv_results_["mean_test_score"]
    found = search.fit(X, sparse.csr_array(Y)).cv_results_["mean_test_score"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_predictions_are_those_of_the_loss_that_was_fitted() -> None:
    labels = Y.argmax(axis=1)
    regressor = ProportionRegressor().fit(X, Y)
    classifier = FitzpatrickClassifier().fit(X, labels)
    expected = regressor.predict(X), classifier.predict_proba(X)
    regressor.set_params(loss="squared")
    classifier.set_params(loss="sparsemax")
    np.testing.assert_array_equal(regressor.predict(X), expected[0])
    np.testing.assert_array_equal(classifier.predict_proba(X), expected[1])
    assert regressor.loss_ == "fitzpatrick_logistic"


def test_log_probabilities_have_no_finite_zeros() -> None:
    iris, labels = load_iris(return_X_y=True)
    model = FitzpatrickClassifier("fitzpatrick_sparsemax", alpha=0.01).fit(iris, labels)
    logs = model.predict_log_proba(iris)
    assert np.isneginf(logs).any()
    np.testing.assert_array_equal(np.isneginf(logs), model.predict_proba(iris) == 0)
    np.testing.assert_allclose(np.exp(logs), model.predict_proba(iris), rtol=1e-12)


@pytest.mark.parametrize("loss", ["logistik", 3, None])
def test_a_wrong_loss_is_no_error_before_a_fit(loss) -> None:
    model = ProportionRegressor(loss=loss)
    assert "ProportionRegressor" in model._repr_html_()
    assert "ProportionRegressor" in make_pipeline(StandardScaler(), model)._repr_html_()
    assert not ProportionRegressor().__sklearn_tags__().target_tags.single_output
    assert ProportionRegressor("squared").__sklearn_tags__().target_tags.single_output
    with pytest.raises((ValueError, TypeError), match="loss"):
        model.fit(X, Y)


def test_the_base_of_the_estimators_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        LinearModel()


def test_feature_names_pass_through_a_pipeline() -> None:
    pandas = pytest.importorskip("pandas", reason="set_output makes pandas data frames")
    names = ["a", "b", "c", "d", "e"]
    frame = pandas.DataFrame(X, columns=names)
    scaler = StandardScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, ProportionRegressorCV(alphas=[1.0], cv=2)).fit(frame, Y)
    assert list(pipeline[-1].feature_names_in_) == names
    model = ProportionRegressor().fit(frame, Y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[names[::-1]])


def test_sparse_features_are_never_densified() -> None:
    n, d = 400, 20000
    rng = seeded(0)
    wide = sparse.csr_array(
        (rng.random(n * 5), rng.integers(0, d, n * 5), np.arange(0, n * 5 + 1, 5)), shape=(n, d)
    )
    y = rng.integers(0, 3, n)
    tracemalloc.start()
    FitzpatrickClassifier(tol=1e-4).fit(wide, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * d * 8 / 4  # a quarter of what the dense matrix would take
