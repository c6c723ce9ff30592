"""Dask's models are those of one machine: coefficients, objective, iterations."""

import itertools
import pickle
from typing import Any

import dask
import numpy as np
import pytest
from scipy import sparse

import fitzpatrick as fp
from fitzpatrick import dask as on_dask
from fitzpatrick import linear_model
from fitzpatrick.dask import _chunks
from fitzpatrick.dask._collections import read_inputs
from fitzpatrick.dask._data import ChunkedData, ChunkedSums
from fitzpatrick.linear_model._checks import FitSettings
from fitzpatrick.linear_model._sums import LocalSums
from tests.helpers import TEST_ALL, seeded
from tests.linear_model.data import LABELS, WEIGHTS, X, Y, features, targets

from .data import assert_same_model, chunked

# A strong penalty needs few iterations, each of which is several rounds.
OPTIONS: dict[str, Any] = {"alpha": 10.0, "standardize": True, "tol": 1e-10}


def pair(cls: str, *args: Any, **options: Any) -> tuple[Any, Any]:
    """The estimator on Dask, and that of one machine."""
    persist = options.pop("persist", True)
    on_one = getattr(linear_model, cls)(*args, **options)
    return getattr(on_dask, cls)(*args, persist=persist, **options), on_one


FORMS = np.asarray, sparse.csr_array
CURVED = [name for name in fp.loss_names() if name != "perceptron"]
NO_ENTRIES = fp.FitzpatrickLoss(fp.regularizers.SquaredNorm(fp.sets.L2Ball()))
NOISE = 0.05 * seeded(0).normal(size=(len(X), 12))
FEW = np.where((np.arange(60) >= 20) & (np.arange(60) < 40), 0.0, WEIGHTS)  # two chunks of ten
REGRESSIONS: list[tuple[Any, ...]] = [  # loss, y, rows of a chunk, weights, options
    # the losses take turns: a design knows nothing of its loss
    *((name, targets(name, X), 25, WEIGHTS, {}) for name in (CURVED if TEST_ALL else CURVED[::3])),
    ("fitzpatrick_sparsemax", targets("sparsemax", X), 25, None, {"tightness": 2.0}),
    ("fitzpatrick_logistic", targets("logistic", X), 25, None, {"tightness": 0.5}),
    ("logistic", targets("logistic", X, k=70), 25, None, {}),  # the diagonal of C alone
    (NO_ENTRIES, NOISE[:, :5], 25, None, {"standardize": False}),  # C column by column
    (NO_ENTRIES, NOISE, 25, None, {"standardize": False}),  # C from random signs
    ("logistic", targets("logistic", X), 3, None, {}),  # more chunks than one task merges
    ("logistic", targets("logistic", X), 10, FEW, {}),  # chunks without rows that count
    ("sparsemax", sparse.csr_array(targets("sparsemax", X)), (25, 0, 35), WEIGHTS, {}),  # no rows
]


@pytest.mark.parametrize(
    ("case", "form"),
    list(
        itertools.product(REGRESSIONS, FORMS)
        if TEST_ALL
        else zip(REGRESSIONS, itertools.cycle(FORMS))
    ),
)
def test_regressors(case, form) -> None:
    name, y, rows, weights, options = case
    found, expected = pair("ProportionRegressor", name, **{**OPTIONS, **options})
    found.fit(chunked(form(X), rows), chunked(y, rows), chunked(weights, rows))
    assert_same_model(found, expected.fit(form(X), y, weights))
    assert found.tightness_ == expected.tightness_


def test_chunks_have_random_signs_of_their_own(monkeypatch) -> None:
    """Errors of estimates with the same signs would add up."""
    signs: dict[bytes, int] = {}
    estimate = LocalSums._mean_curvature

    def see(self: LocalSums, *args: Any) -> float:
        signs[self._signs.tobytes()] = self.n_samples
        return estimate(self, *args)

    monkeypatch.setattr(LocalSums, "_mean_curvature", see)
    model, _ = pair("ProportionRegressor", NO_ENTRIES, **{**OPTIONS, "standardize": False})
    model.fit(chunked(X, 15), chunked(NOISE, 15))
    assert list(signs.values()) == [15] * (len(X) // 15)


@pytest.mark.parametrize("k", [2, 4])
def test_sums_over_chunks_do_not_grow(k, monkeypatch) -> None:
    """Workers keep them, and hand them to one another: buffers are not theirs to keep."""
    parts: list[tuple[LocalSums, int]] = []
    bind = _chunks.bind

    def measured(*args: Any) -> LocalSums:
        part = bind(*args)
        parts.append((part, len(pickle.dumps(part))))
        return part

    monkeypatch.setattr(_chunks, "bind", measured)
    model, _ = pair("FitzpatrickClassifier", "logistic", **OPTIONS)
    model.fit(chunked(X, 30), chunked(LABELS % k, 30))
    assert len(parts) == 2
    for part, size in parts:
        assert len(pickle.dumps(part)) - size < 8 * part.n_samples  # not a number per row


@pytest.mark.parametrize("persist", [True, False])
def test_curvature_is_that_of_the_point_asked_for(persist: bool) -> None:
    """Which need not be the latest point: a prediction may be worse than where it came from."""
    settings = FitSettings(fp.get_loss("logistic"))
    inputs = read_inputs(chunked(X), chunked(Y))
    sums = ChunkedData(inputs, _chunks.numbers_of, settings, persist=persist).sums(settings)
    shape = 3, sums.space.n_parameters, sums.n_scores
    point, other, direction = seeded(0).standard_normal(shape)
    products = []
    for latest in (point, other):
        sums.evaluate(latest)
        products.append(sums.product(sums.linearize(point), direction))
    np.testing.assert_array_equal(*products)


def test_steps_that_overflow_in_some_chunks() -> None:
    X = seeded(1).standard_normal((200, 5))
    X = X[np.argsort(X.sum(axis=1))]
    y = seeded(2).poisson(np.exp(X.sum(axis=1) + 5)).astype(float)
    found, expected = pair("ProportionRegressor", "poisson")
    assert_same_model(found.fit(chunked(X), chunked(y)), expected.fit(X, y), rel=1e-8)


def test_objectives_that_rounding_decides() -> None:
    """Sparse features far from zero, and L-BFGS, which ends where it finds no lower point."""
    far = features(seed=10)
    cases = [
        (sparse.csr_array(far + 1e8), targets("logistic", far), "fitzpatrick_logistic", 1.0, 1e-5),
        (X, targets("perceptron", X), "perceptron", 100.0, 1e-2),
    ]
    for given, y, loss, alpha, rel in cases:
        found, expected = pair("ProportionRegressor", loss, alpha, tol=1e-3 if rel > 1e-5 else 1e-8)
        found.fit(chunked(given), chunked(y))
        assert found.status_.converged
        assert found.objective_ == pytest.approx(expected.fit(given, y).objective_, rel=rel)


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
        return linearize(sums, parameters, step)

    monkeypatch.setattr(ChunkedSums, "linearize", recorded)
    y = targets("sparse_sigmoid", X)
    options = {"solver": solver, "persist": persist, **OPTIONS}
    found, expected = pair("ProportionRegressor", "sparse_sigmoid", **options)
    assert_same_model(found.fit(chunked(X), chunked(y)), expected.fit(X, y))
    assert any(step is not None for step in steps) == (solver == "newton-cg")


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize(
    ("class_weight", "weights"), [(None, None), ("balanced", WEIGHTS), ({"c": 0.25}, WEIGHTS)]
)
def test_classes_and_their_weights(k, class_weight, weights) -> None:
    words = np.asarray(["b", "c", "a", "d"])[LABELS % k]
    found, expected = pair("FitzpatrickClassifier", class_weight=class_weight, **OPTIONS)
    found.fit(chunked(X), chunked(words), chunked(weights))
    assert_same_model(found, expected.fit(X, words, weights))
    np.testing.assert_array_equal(found.classes_, expected.classes_)


def test_features_of_other_shapes_and_types() -> None:
    wide, shifted = features(30, 40), X.copy()  # fewer samples than features
    shifted[:, 1] = 7.0
    shifted[:, 2] += 1e6
    shifted[:, 3] *= 1e-6
    stepped = X.copy()  # columns that are constant in the first chunk, above or below the others
    stepped[:11, 1:3] = [100.0, -100.0]
    # a mean of 1e6 leaves 1e-10 of the deviations from it; sums of 60 rows in float32, at a
    # condition of about 10
    single = 100 * float(np.finfo(np.float32).eps)
    for given, atol in (
        (wide, 1e-10),
        (X.astype(np.float32), single),
        (shifted, 1e-8),
        (stepped, 1e-10),
    ):
        y = LABELS[: len(given)]
        found, expected = pair("FitzpatrickClassifier", "logistic", **OPTIONS)
        found.fit(chunked(given, 11), chunked(y, 11))
        expected.fit(given, y)
        assert found.coef_.dtype == given.dtype
        probabilities = found.predict_proba(given), expected.predict_proba(given)
        np.testing.assert_allclose(*probabilities, atol=atol)
        np.testing.assert_array_equal(found.coef_ == 0, expected.coef_ == 0)


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_local_schedulers_and_warm_starts(scheduler) -> None:
    found, expected = pair("FitzpatrickClassifier", "logistic", warm_start=True, **OPTIONS)
    with dask.config.set(scheduler=scheduler):
        for alpha in (10.0, 1.0):
            found.set_params(alpha=alpha).fit(chunked(X), chunked(LABELS))
            assert_same_model(found, expected.set_params(alpha=alpha).fit(X, LABELS))
        prediction = found.predict(chunked(X)).compute()
    np.testing.assert_array_equal(prediction, expected.predict(X))


# Paths


def test_paths() -> None:
    order = np.argsort(LABELS)  # the first chunk has no sample of the last class
    for rows, y in ((X, Y), (X[order], LABELS[order])):
        args = ("fitzpatrick_logistic", [30.0, 3.0])
        options: dict[str, Any] = {"tightness": 0.5, "standardize": True, "resumable": True}
        found = on_dask.fit_path(chunked(rows), chunked(y), *args, **options)
        expected = linear_model.fit_path(rows, y, *args, **options)
        np.testing.assert_allclose(found.coefs, expected.coefs, atol=1e-10)
        assert [m.n_iter for m in found.models] == [m.n_iter for m in expected.models]
    seen: list[Any] = []
    options |= {"callback": seen.append, "stop": lambda model: True}
    assert (
        len(on_dask.fit_path(chunked(rows), chunked(y), *args, **options).models) == len(seen) == 1
    )
    options |= {"start": (seen[0].coef, seen[0].intercept), "stop": None}
    again = on_dask.fit_path(chunked(rows), chunked(y), args[0], [3.0], **options)
    np.testing.assert_array_equal(again.coefs[0], found.coefs[1])


@pytest.mark.parametrize(
    ("cls", "scoring"),
    [("FitzpatrickClassifierCV", None), ("ProportionRegressorCV", "jensen_shannon")],
)
def test_the_choice_on_a_dev_set(cls, scoring) -> None:
    y = LABELS if cls.startswith("F") else Y
    dev = (X[:31], y[:31], WEIGHTS[:31])
    found, expected = pair(
        cls, alphas=[300.0, 30.0], tightnesses=[0.0, 1.0], scoring=scoring, tol=1e-10, refine=1
    )
    found.fit(chunked(X), chunked(y), dev=tuple(chunked(part, 7) for part in dev))
    expected.fit(X, y, dev=dev)
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-12)
    assert (found.alpha_, found.tightness_) == (expected.alpha_, expected.tightness_)
    assert_same_model(found, expected)
