"""Predictions stay lazy, and they and scores are those of one machine."""

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV

from fitzpatrick import linear_model
from fitzpatrick.dask import FitzpatrickClassifier, ProportionRegressor
from tests.linear_model.data import LABELS, WEIGHTS, X, Y
from tests.test_guides import run_guide

from .data import assert_same_model, chunked

COLUMNS = [f"x{j}" for j in range(X.shape[1])]


@pytest.fixture(scope="module")
def classifier() -> FitzpatrickClassifier:
    return FitzpatrickClassifier("sparsemax", 3.0).fit(chunked(X), chunked(LABELS))


@pytest.fixture(scope="module")
def regressor() -> ProportionRegressor:
    return ProportionRegressor("sparsemax", 3.0).fit(chunked(X), chunked(Y))


METHODS = ["predict", "predict_proba", "predict_link", "predict_log_proba", "decision_function"]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_predictions(classifier, regressor, form) -> None:
    methods = [(classifier, name) for name in METHODS]
    for model, method in [*methods, (regressor, "predict"), (regressor, "predict_scores")]:
        for rows, atol in ((X, 1e-12), (X.astype(np.float32), 1e-5)):
            prediction = getattr(model, method)(chunked(form(rows)))
            assert isinstance(prediction, da.Array)
            expected = getattr(model, method)(rows)  # in memory
            assert isinstance(expected, np.ndarray)
            assert (prediction.shape, prediction.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(prediction.compute(), expected, atol=atol)


@pytest.mark.parametrize("weights", [None, np.where(np.arange(60) < 30, 0.0, WEIGHTS)])
def test_scores(classifier, regressor, weights) -> None:
    for model, y in ((classifier, LABELS), (regressor, Y), (regressor, sparse.csr_array(Y))):
        for rows in (25, (25, 0, 35)):
            for given in (chunked(y, rows), y):
                score = model.score(chunked(X, rows), given, chunked(weights, rows))
                assert isinstance(score, float)
                # sums of 60 numbers in another order
                assert score == pytest.approx(model.score(X, y, weights), rel=1e-12)


def test_targets_that_are_constant_or_one_per_sample() -> None:
    y = np.column_stack([X[:, 0], np.ones(len(X))])
    model = ProportionRegressor("squared").fit(chunked(X), chunked(y))
    assert float(model.score(chunked(X), chunked(y))) == pytest.approx(model.score(X, y), rel=1e-9)
    y = np.abs(X[:, 0])
    model = ProportionRegressor("poisson", 3.0).fit(chunked(X), chunked(y))
    expected = linear_model.ProportionRegressor("poisson", 3.0).fit(X, y)
    assert_same_model(model, expected)
    assert model.predict(chunked(X)).shape == (len(X),)
    np.testing.assert_allclose(model.predict(chunked(X)).compute(), expected.predict(X), rtol=1e-8)


# Data frames


@pytest.fixture(scope="module")
def frame() -> dd.DataFrame:
    return dd.from_pandas(pd.DataFrame(X, columns=COLUMNS), npartitions=3)


def test_data_frames(frame) -> None:
    names = ["oak", "ash", "elm", "fir"]
    y = dd.from_pandas(pd.DataFrame(Y, columns=names), npartitions=3)
    model = ProportionRegressor("fitzpatrick_logistic", 3.0).fit(frame, y)
    expected = linear_model.ProportionRegressor("fitzpatrick_logistic", 3.0).fit(X, Y)
    assert_same_model(model, expected)
    assert model.feature_names_in_.tolist() == COLUMNS
    assert model.target_names_in_.tolist() == names
    np.testing.assert_allclose(model.predict(frame).compute(), expected.predict(X), atol=1e-10)
    table = model.set_output(transform="pandas").predict(frame).compute()
    assert table.columns.tolist() == names
    assert table.index.tolist() == list(range(len(X)))
    np.testing.assert_allclose(table.to_numpy(), expected.predict(X), atol=1e-10)
    with pytest.raises(ValueError, match="not in polars; use set_output"):
        model.set_output(transform="polars").predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[COLUMNS[::-1]])


def test_classes_of_a_series_and_partitions_without_rows(frame) -> None:
    words = np.asarray(["oak", "ash", "elm", "fir"])[LABELS]
    y, weights = (dd.from_pandas(pd.Series(part), npartitions=3) for part in (words, WEIGHTS))
    rows, y, weights = (dd.concat([part, part[frame.x0 > 1e9]]) for part in (frame, y, weights))
    model = FitzpatrickClassifier("logistic", 3.0).fit(rows, y, weights)
    expected = linear_model.FitzpatrickClassifier("logistic", 3.0).fit(X, words, WEIGHTS)
    assert_same_model(model, expected)
    assert model.classes_.tolist() == ["ash", "elm", "fir", "oak"]
    np.testing.assert_array_equal(model.predict(rows).compute(), expected.predict(X))
    assert float(model.score(rows, y)) == pytest.approx(expected.score(X, words), rel=1e-12)


# Estimators as scikit-learn knows them


def test_a_grid_search() -> None:
    grid = {"alpha": [1.0, 1e3]}
    plain = linear_model.FitzpatrickClassifier("logistic")
    for scoring in (None, "accuracy"):
        search = GridSearchCV(FitzpatrickClassifier("logistic"), grid, scoring=scoring, cv=2)
        search.set_params(error_score="raise").fit(chunked(X), chunked(LABELS))
        expected = GridSearchCV(plain, grid, scoring=scoring, cv=2).fit(X, LABELS)
        for name in ("mean_test_score", "rank_test_score"):
            found = search.cv_results_[name]
            np.testing.assert_allclose(found, expected.cv_results_[name], atol=1e-12)


def test_callbacks_stay_here() -> None:
    seen: list[linear_model.Iteration] = []
    model = FitzpatrickClassifier("logistic", 3.0, callback=seen.append)
    model.fit(chunked(X), chunked(LABELS))
    assert [iteration.iteration for iteration in seen] == list(range(model.n_iter_ + 1))
    assert model.predict(chunked(X)).compute().shape == (len(X),)
    copy = pickle.loads(pickle.dumps(model.set_params(callback=None)))
    np.testing.assert_array_equal(copy.predict(chunked(X)).compute(), model.predict(X))


def test_the_guide_runs_as_it_is_written() -> None:
    names = run_guide("scaling.md")
    assert float(names["model"].score(names["X"], names["y"])) > 0.9
