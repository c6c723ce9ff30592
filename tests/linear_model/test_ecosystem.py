"""At home in scikit-learn: pipelines, searches, persistence, feature names, memory."""

import pickle
import runpy
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import skops.io
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

import fitzpatrick as fp
from fitzpatrick import datasets, engines
from fitzpatrick.datasets import load_dataset
from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
    _objective,
    fit_path,
)
from fitzpatrick.preprocessing import label_proportions
from tests.helpers import seeded

from .data import LABELS, WORDS, X, Y

MODELS = [
    (ProportionRegressor(), Y),
    (FitzpatrickClassifierCV(alphas=[0.1, 1.0], cv=2), WORDS),
    (ProportionRegressor(loss=fp.FitzpatrickLoss(fp.regularizers.Tsallis(1.3))), Y),
]


@pytest.mark.parametrize(("model", "y"), MODELS)
def test_pickle_and_skops_keep_the_model(model, y) -> None:
    expected = model.fit(X, y).predict(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), expected)
    dumped = skops.io.dumps(model)
    loaded = skops.io.loads(dumped, trusted=skops.io.get_untrusted_types(data=dumped))
    np.testing.assert_array_equal(loaded.predict(X), expected)
    assert loaded.status_ is model.status_


@pytest.mark.parametrize("n_threads", [1, 2])
def test_threads_are_those_that_were_asked_for(n_threads: int, monkeypatch) -> None:
    seen, bound = [], []
    evaluate, bind = _objective.Objective.evaluate, engines.bind_like

    def spied_evaluate(self, parameters):
        seen.append({p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"})
        return evaluate(self, parameters)

    def spied_bind(*args):
        bound.append(args[-1])
        return bind(*args)

    monkeypatch.setattr(_objective.Objective, "evaluate", spied_evaluate)
    monkeypatch.setattr(engines, "bind_like", spied_bind)
    with threadpool_limits(2, user_api="blas"):
        FitzpatrickClassifier(n_threads=n_threads, tol=0.1).fit(X, LABELS)
    assert bound == [n_threads]
    assert seen
    assert all(max(threads) == n_threads for threads in seen)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.coo_matrix])
def test_default_score_takes_sparse_targets(form) -> None:
    model = ProportionRegressor().fit(X, form(Y))
    for weights in (None, np.arange(len(X))):
        assert model.score(X, form(Y), weights) == model.score(X, Y, weights)
    search = GridSearchCV(ProportionRegressor(), {"alpha": [0.1, 10.0]}, cv=2)
    expected = search.fit(X, Y).cv_results_["mean_test_score"]
    found = search.fit(X, sparse.csr_array(Y)).cv_results_["mean_test_score"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_predictions_are_those_of_the_loss_that_was_fitted() -> None:
    regressor = ProportionRegressor().fit(X, Y)
    classifier = FitzpatrickClassifier().fit(X, LABELS)
    expected = regressor.predict(X), classifier.predict_proba(X)
    regressor.set_params(loss="squared")
    classifier.set_params(loss="sparsemax")
    np.testing.assert_array_equal(regressor.predict(X), expected[0])
    np.testing.assert_array_equal(classifier.predict_proba(X), expected[1])
    assert regressor.loss_ == "fitzpatrick_logistic"


@pytest.mark.parametrize("k", [2, 4])
def test_a_reference_by_class_decides_about_the_class_too(k: int) -> None:
    reference = np.append(0.7, np.full(k - 1, 0.3 / (k - 1)))
    loss = fp.FitzpatrickLoss(fp.regularizers.FDivergence("hellinger", reference=reference))
    model = FitzpatrickClassifier(loss, alpha=10.0).fit(X, LABELS % k)
    best = model.predict_proba(X).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), best)
    scores = model.decision_function(X)
    assert (best != (scores > 0 if k == 2 else scores.argmax(axis=1))).any()


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


@pytest.fixture
def frames():
    pandas = pytest.importorskip("pandas")
    index = pandas.Index(range(100, 100 + len(X)), name="plot")
    columns = list("abcde"), ["ash", "birch", "cedar", "date"]
    return [pandas.DataFrame(Z, index, names) for Z, names in zip((X, Y), columns, strict=True)]


def test_names_of_targets_and_classes(frames) -> None:
    X_frame, Y_frame = frames
    model = ProportionRegressorCV(alphas=[1.0], cv=2).fit(X_frame, Y_frame)
    assert list(model.target_names_in_) == list(Y_frame.columns)
    assert isinstance(model.predict(X_frame), np.ndarray)  # as scikit-learn's regressors
    framed = clone(model).set_output(transform="pandas")
    framed = clone(framed).fit(X_frame, Y_frame).predict(X_frame)
    assert list(framed.columns) == list(Y_frame.columns)
    assert framed.index.equals(X_frame.index)
    np.testing.assert_array_equal(framed, model.predict(X_frame))
    model.fit(X_frame, Y)
    assert not hasattr(model, "target_names_in_")
    assert list(model.set_output(transform="pandas").predict(X_frame)) == ["y0", "y1", "y2", "y3"]
    assert isinstance(model.set_output(transform="default").predict(X_frame), np.ndarray)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X_frame[list("edcba")])
    model = FitzpatrickClassifier().set_output(transform="pandas").fit(X_frame, WORDS)
    for method in ("predict_proba", "predict_log_proba", "predict_link"):
        assert list(getattr(model, method)(X_frame).columns) == list(model.classes_)
    assert isinstance(model.predict(X_frame), np.ndarray)
    assert model.score(X_frame, WORDS) > 0.5


@pytest.mark.parametrize("dtype", [">f8", ">f4", "<f2", "longdouble"])
def test_foreign_floats(dtype: str) -> None:
    x, y, weights = X.astype(dtype), Y.astype(dtype), np.ones(len(X), dtype)
    proportions = label_proportions(y.astype(np.float64))
    expected = ProportionRegressor().fit(x.astype(np.float64), proportions)
    model = ProportionRegressor().fit(x, y, weights)
    assert model.coef_.dtype.isnative
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    (path,) = fit_path(x, y, "fitzpatrick_logistic", [1.0], sample_weight=weights).models
    np.testing.assert_allclose(path.coef, expected.coef_, atol=1e-6)
    labels = FitzpatrickClassifier().fit(x, LABELS.astype(">i4")).predict(x)
    np.testing.assert_array_equal(labels, FitzpatrickClassifier().fit(X, LABELS).predict(X))


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sklearn_proportions", ["fitzpatrick_sparsemax", "tightness", "squared error"]),
        ("shortest_path", ["largest gap", "more than the best ones", "one path for all"]),
        ("ordinal_levels", ["order simplex: ", "classes without an order: "]),
        ("sklearn_classifier", ["best parameters", "test accuracy", "sparsemax keeps"]),
    ],
)
def test_example(name: str, words: list[str], capsys, monkeypatch) -> None:
    def few_rows(name: str) -> datasets.Dataset:
        data = load_dataset(name)
        rows = replace(data.train, X=data.train.X[:150], Y=data.train.Y[:150])
        return replace(data, train=rows)

    monkeypatch.setattr(datasets, "load_dataset", few_rows)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert all(word in out for word in words)
