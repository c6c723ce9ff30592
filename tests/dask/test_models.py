"""Dask's models are those of one machine: coefficients, objective, iterations."""

import itertools
from typing import Any

import dask
import numpy as np
import pytest
from scipy import sparse

import fitzpatrick as fp
from fitzpatrick import dask as on_dask
from fitzpatrick import linear_model
from fitzpatrick.dask._data import ChunkedSums
from tests.helpers import TEST_ALL, seeded
from tests.linear_model.data import features, real_problem, targets

from .data import assert_same_model, chunked

X = features()
WEIGHTS = seeded(2).integers(0, 3, len(X)).astype(float)
LABELS = targets("fitzpatrick_logistic", X).argmax(axis=1)
# A strong penalty needs few iterations, each of which is several rounds.
OPTIONS: dict[str, Any] = {"alpha": 10.0, "standardize": True, "tol": 1e-10}


def pair(cls: str, *args: Any, **options: Any) -> tuple[Any, Any]:
    """The estimator on Dask, and that of one machine."""
    persist = options.pop("persist", True)
    on_one = getattr(linear_model, cls)(*args, **options)
    return getattr(on_dask, cls)(*args, persist=persist, **options), on_one


FORMS = np.asarray, sparse.csr_array
CURVED = [name for name in fp.loss_names() if name != "perceptron"]


@pytest.mark.parametrize(
    ("name", "form"),
    # the losses take turns: a design knows nothing of its loss
    list(itertools.product(CURVED, FORMS) if TEST_ALL else zip(CURVED, itertools.cycle(FORMS))),
)
def test_regressors_of_every_loss(name, form) -> None:
    y = targets(name, X)
    found, expected = pair("ProportionRegressor", name, **OPTIONS)
    found.fit(chunked(form(X)), chunked(y), chunked(WEIGHTS))
    assert_same_model(found, expected.fit(form(X), y, WEIGHTS))


def test_sparse_features_far_from_zero() -> None:
    far = features(seed=10)
    y = targets("fitzpatrick_logistic", far)
    found, expected = pair("ProportionRegressor")
    given = sparse.csr_array(far + 1e8)
    found.fit(chunked(given), chunked(y))
    assert found.status_.converged
    # as rounded as the scores are
    assert found.objective_ == pytest.approx(expected.fit(given, y).objective_, rel=1e-5)


def test_a_loss_without_curvature() -> None:
    """L-BFGS ends where it finds no lower point, which rounding errors decide."""
    y = targets("perceptron", X)
    found, expected = pair("ProportionRegressor", "perceptron", 100.0, tol=1e-3)
    found.fit(chunked(X), chunked(y))
    assert found.objective_ == pytest.approx(expected.fit(X, y).objective_, rel=1e-2)


@pytest.mark.parametrize("tightness", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "fitzpatrick_sparsemax"])
def test_tightness(name, tightness) -> None:
    y = targets(name, X)
    found, expected = pair("ProportionRegressor", name, tightness=tightness, **OPTIONS)
    assert_same_model(found.fit(chunked(X), chunked(y)), expected.fit(X, y))
    assert found.tightness_ == tightness


@pytest.mark.parametrize(
    ("form", "persist", "intercept", "standardize"),
    [
        design
        for design in itertools.product(FORMS, *[[True, False]] * 3)
        # every three of the four in all combinations
        if TEST_ALL or (design[0] is np.asarray, *design[1:]).count(True) % 2
    ],
)
def test_designs(form, persist, intercept, standardize) -> None:
    options = {"fit_intercept": intercept, "standardize": standardize, "persist": persist}
    found, expected = pair("FitzpatrickClassifier", "logistic", 10.0, **options)
    found.fit(chunked(form(X)), chunked(LABELS), chunked(WEIGHTS))
    assert_same_model(found, expected.fit(form(X), LABELS, WEIGHTS))


@pytest.mark.parametrize("solver", ["newton-cg", "lbfgs"])
@pytest.mark.parametrize("persist", [True, False])
def test_solvers(solver, persist, monkeypatch) -> None:
    """On targets whose kinks make steps short, which workers are told of then."""
    steps = []
    linearize = ChunkedSums.linearize

    def recorded(sums, parameters, step=None):
        steps.append(step)
        linearize(sums, parameters, step)

    monkeypatch.setattr(ChunkedSums, "linearize", recorded)
    y = targets("sparse_sigmoid", X)
    found, expected = pair(
        "ProportionRegressor", "sparse_sigmoid", solver=solver, persist=persist, **OPTIONS
    )
    assert_same_model(found.fit(chunked(X), chunked(y)), expected.fit(X, y))
    assert any(step is not None for step in steps) == (solver == "newton-cg")


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"c": 0.25}])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_classes_and_their_weights(k, class_weight, weights) -> None:
    words = np.asarray(["b", "c", "a", "d"])[LABELS % k]
    found, expected = pair("FitzpatrickClassifier", class_weight=class_weight, **OPTIONS)
    found.fit(chunked(X), chunked(words), chunked(weights))
    assert_same_model(found, expected.fit(X, words, weights))
    np.testing.assert_array_equal(found.classes_, expected.classes_)


def test_chunks_without_rows_that_count() -> None:
    weights = WEIGHTS.copy()
    weights[20:40] = 0  # all of the third and the fourth chunk
    labels = np.where(weights > 0, LABELS, 0)
    found, expected = pair("FitzpatrickClassifier", "logistic", **OPTIONS)
    found.fit(chunked(X, 10), chunked(labels, 10), chunked(weights, 10))
    assert_same_model(found, expected.fit(X, labels, weights))


def test_more_chunks_than_one_task_merges() -> None:
    found, expected = pair("FitzpatrickClassifier", "logistic", 30.0)
    assert_same_model(found.fit(chunked(X, 3), chunked(LABELS, 3)), expected.fit(X, LABELS))


def test_fewer_samples_than_features() -> None:
    wide = features(30, 40)
    found, expected = pair("FitzpatrickClassifier", "logistic", 3.0)
    found.fit(chunked(wide, 11), chunked(LABELS[:30], 11))
    assert_same_model(found, expected.fit(wide, LABELS[:30]))


def test_single_precision() -> None:
    single = X.astype(np.float32)
    found, expected = pair("FitzpatrickClassifier", "logistic", **OPTIONS)
    found.fit(chunked(single), chunked(LABELS))
    expected.fit(single, LABELS)
    assert found.coef_.dtype == np.float32
    # sums of 60 rows in float32, at a condition of about 10
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=100 * np.finfo(np.float32).eps)


@pytest.mark.parametrize("k", [5, 12])
def test_losses_whose_hessian_has_no_entries(k) -> None:
    """C column by column, or from random signs, which are those of the whole data."""
    loss = fp.FitzpatrickLoss(fp.regularizers.SquaredNorm(fp.sets.L2Ball()))
    y = 0.05 * seeded(0).normal(size=(len(X), k))
    found, expected = pair("ProportionRegressor", loss, 3.0, tol=1e-10)
    assert_same_model(found.fit(chunked(X), chunked(y)), expected.fit(X, y))


def test_many_classes() -> None:
    y = targets("logistic", X, k=70)
    found, expected = pair("ProportionRegressor", "logistic", 3.0)
    assert_same_model(found.fit(chunked(X), chunked(y)), expected.fit(X, y))


def test_columns_that_are_constant_or_far_from_zero() -> None:
    shifted = X.copy()
    shifted[:, 1] = 7.0
    shifted[:, 2] += 1e6
    shifted[:, 3] *= 1e-6
    found, expected = pair("FitzpatrickClassifier", "logistic", **OPTIONS)
    found.fit(chunked(shifted), chunked(LABELS))
    expected.fit(shifted, LABELS)
    assert not found.coef_[:, 1].any()
    # a mean of 1e6 leaves 1e-10 of the deviations from it
    np.testing.assert_allclose(
        found.predict_proba(shifted), expected.predict_proba(shifted), atol=1e-8
    )


def test_warm_starts_are_those_of_one_machine() -> None:
    found, expected = pair("FitzpatrickClassifier", "logistic", warm_start=True, **OPTIONS)
    for model, data in ((found, (chunked(X), chunked(LABELS))), (expected, (X, LABELS))):
        model.fit(*data)
        model.alpha = 1.0
        model.fit(*data)
    assert_same_model(found, expected)


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_local_schedulers(scheduler) -> None:
    found, expected = pair("FitzpatrickClassifier", "sparsemax", **OPTIONS)
    with dask.config.set(scheduler=scheduler):
        found.fit(chunked(X), chunked(LABELS))
        prediction = found.predict(chunked(X)).compute()
    assert_same_model(found, expected.fit(X, LABELS))
    np.testing.assert_array_equal(prediction, expected.predict(X))


@pytest.mark.parametrize(("name", "form"), [*zip(["yeast", "scene"], FORMS, strict=True)])
def test_real_data(name, form) -> None:
    X, y = real_problem(name)
    weights = seeded(0).integers(1, 4, len(X)).astype(float)
    options = {"standardize": True, "tol": 1e-10}
    found, expected = pair("ProportionRegressor", "fitzpatrick_logistic", 100.0, **options)
    found.fit(chunked(form(X), 700), chunked(y, 700), chunked(weights, 700))
    assert_same_model(found, expected.fit(form(X), y, weights), rel=1e-8)


# Paths


def test_paths_of_proportions_and_labels() -> None:
    for y in (targets("fitzpatrick_logistic", X), LABELS):
        args = ("fitzpatrick_logistic", [30.0, 3.0])
        options: dict[str, Any] = {"tightness": 0.5, "standardize": True}
        found = on_dask.fit_path(chunked(X), chunked(y), *args, **options)
        expected = linear_model.fit_path(X, y, *args, **options)
        np.testing.assert_allclose(found.coefs, expected.coefs, atol=1e-10)
        assert [m.n_iter for m in found.models] == [m.n_iter for m in expected.models]


def test_a_path_may_be_stopped_and_resumed() -> None:
    args = (chunked(X), chunked(LABELS), "logistic")
    whole = on_dask.fit_path(*args, [30.0, 10.0], resumable=True)
    seen: list[Any] = []
    first = on_dask.fit_path(
        *args, [30.0, 10.0], resumable=True, callback=seen.append, stop=lambda model: True
    )
    assert len(first.models) == len(seen) == 1
    start = first.models[0].coef, first.models[0].intercept
    second = on_dask.fit_path(*args, [10.0], start=start, resumable=True)
    np.testing.assert_array_equal(second.coefs[0], whole.coefs[1])


@pytest.mark.parametrize(
    ("cls", "scoring"),
    [("FitzpatrickClassifierCV", None), ("ProportionRegressorCV", "jensen_shannon")],
)
def test_the_choice_on_a_dev_set(cls, scoring) -> None:
    y = LABELS if cls.startswith("F") else targets("fitzpatrick_logistic", X)
    dev = (X[:31], y[:31], WEIGHTS[:31])
    found, expected = pair(
        cls, alphas=[100.0, 3.0], tightnesses=[0.0, 1.0], scoring=scoring, tol=1e-10
    )
    found.fit(chunked(X), chunked(y), dev=tuple(chunked(part, 7) for part in dev))
    expected.fit(X, y, dev=dev)
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-12)
    assert (found.alpha_, found.tightness_) == (expected.alpha_, expected.tightness_)
    assert_same_model(found, expected)
