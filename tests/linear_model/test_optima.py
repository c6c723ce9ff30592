"""Optima that are known: real data, scikit-learn's models, and the stationarity condition."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fitzpatrick as fp
from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    ProportionRegressor,
    ProportionRegressorCV,
    Status,
    _design,
)
from fitzpatrick.preprocessing import label_proportions
from tests.helpers import seeded

from .data import LABELS, X, Y, features, penalty_path, real_problem, targets

FORMS = [np.asarray, sparse.csr_array, sparse.csc_array]
SMOOTH = [name for name in fp.loss_names() if name != "perceptron"]
FAMILIES = [name for name in fp.loss_names() if fp.get_loss(name).tightness == 1]
KNOWN = [
    ("scene", 1.0, "fitzpatrick_logistic", 119.94581633353),
    ("scene", 1.0, "fitzpatrick_sparsemax", 22.63497723613),
    ("yeast", 0.01, "logistic", 1555.04965214045),
    ("yeast", 0.01, "fitzpatrick_sparsemax", 64.57156729737),
]


@pytest.mark.parametrize(("name", "alpha", "loss", "optimum"), KNOWN)
def test_known_optima_of_real_data(name: str, alpha: float, loss: str, optimum: float) -> None:
    X, Y = real_problem(name)
    model = ProportionRegressor(loss, alpha, fit_intercept=False, tol=1e-8).fit(X, Y)
    assert model.objective_ == pytest.approx(optimum, rel=1e-11)


COUNTS = targets("poisson", X, k=1)[:, 0]
NEWTON = {"solver": "newton-cg", "tol": 1e-10, "max_iter": 10000}
BY_NEWTON = LogisticRegression(C=1 / 0.7, **NEWTON)
PEERS = [  # ours, theirs, data
    *((FitzpatrickClassifier("logistic", 0.7, tol=1e-10), BY_NEWTON, load(return_X_y=True))
      for load in (load_iris, load_breast_cancer)),
    (ProportionRegressor("squared", 3.0, tol=1e-12), Ridge(alpha=3.0), (X, targets("squared", X))),
    (ProportionRegressor("poisson", 0.1 * len(X), tol=1e-10),
     PoissonRegressor(alpha=0.1, solver="newton-cholesky", tol=1e-10), (X, COUNTS)),
]  # fmt: skip


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("ours", "theirs", "data"), PEERS)
def test_peers(ours, theirs, data, fit_intercept: bool) -> None:
    X, y = data
    X = StandardScaler().fit_transform(X)
    ours, theirs = (
        clone(model).set_params(fit_intercept=fit_intercept).fit(X, y) for model in (ours, theirs)
    )
    np.testing.assert_allclose(ours.coef_.reshape(theirs.coef_.shape), theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(
        np.squeeze(ours.intercept_), np.squeeze(theirs.intercept_), atol=1e-6
    )
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)
    if isinstance(theirs, LogisticRegression):
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
        assert ours.decision_function(X).shape == theirs.decision_function(X).shape


@pytest.mark.parametrize(
    ("loss", "tightness"),
    [*((name, None) for name in SMOOTH), *((name, c) for name in FAMILIES for c in (0.5, 2.0))],
)
def test_both_solvers_reach_the_same_stationary_point(loss: str, tightness: float | None) -> None:
    Y = targets(loss, X)
    weights = seeded(2).uniform(0.5, 2.0, len(X))
    exact = fp.get_loss(loss, tightness)
    zero = exact.gradient(Y, np.zeros(Y.shape)) * weights[:, None]
    scale = np.linalg.norm(zero.T @ X) + np.linalg.norm(zero.sum(axis=0))
    model = ProportionRegressor(loss, 0.5, tightness=tightness, tol=1e-7)
    for solver in ("newton-cg", "lbfgs"):
        model.set_params(solver=solver).fit(X, Y, weights)
        assert model.tightness_ == exact.tightness
        theta = model.predict_scores(X)
        value = weights @ exact.value(Y, theta) + 0.25 * np.square(model.coef_).sum()
        assert model.objective_ == pytest.approx(value, rel=1e-10)
        residual = exact.gradient(Y, theta) * weights[:, None]
        assert np.linalg.norm(residual.T @ X + 0.5 * model.coef_) <= 1e-5 * scale
        assert np.linalg.norm(residual.sum(axis=0)) <= 1e-5 * scale


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("as_sparse", [None, sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_standardize_is_a_standard_scaler_in_front(as_sparse, fit_intercept: bool) -> None:
    X = np.where(seeded(3).random((60, 5)) < 0.5, 0.0, features())
    Y = targets("fitzpatrick_logistic", X)
    scaler = StandardScaler().fit(X)
    outside = ProportionRegressor(fit_intercept=fit_intercept, tol=1e-9)
    outside.fit(scaler.transform(X), Y)
    inside = ProportionRegressor(fit_intercept=fit_intercept, standardize=True, tol=1e-9)
    inside.fit(X if as_sparse is None else as_sparse(X), Y)
    assert inside.objective_ == pytest.approx(outside.objective_, rel=1e-10)
    expected = outside.predict(scaler.transform(X))
    np.testing.assert_allclose(inside.predict(X), expected, atol=1e-8)
    np.testing.assert_allclose(inside.coef_, outside.coef_ / scaler.scale_, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [True, False])
def test_means_and_deviations_of_long_columns(dtype, weighted: bool) -> None:
    rng = seeded(0)
    X = (1000 + rng.standard_normal((50000, 2))).astype(dtype)
    weights = rng.uniform(0.0, 2.0, len(X)) if weighted else None
    shift, scale = _design.measure(X, weights, center=True, standardize=True)
    exact = X.astype(np.longdouble)
    mean = np.average(exact, axis=0, weights=weights)
    deviation = np.sqrt(np.average((exact - mean) ** 2, axis=0, weights=weights))
    np.testing.assert_allclose(shift, mean.astype(float), rtol=1e-15)
    np.testing.assert_allclose(scale, deviation.astype(float), rtol=1e-12)


@pytest.mark.parametrize("shape", [(60, 5), (12, 40)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_rotation_changes_nothing_but_the_work(monkeypatch, shape, fit_intercept: bool) -> None:
    X = features(*shape)
    Y = targets("fitzpatrick_logistic", X)
    weights = seeded(4).uniform(0.5, 2.0, len(X))
    coefs = []
    for pays in (True, False):
        monkeypatch.setattr(_design, "rotation_pays", lambda *_, pays=pays: pays)
        model = ProportionRegressor(fit_intercept=fit_intercept, tol=1e-10)
        coefs.append(model.fit(X, Y, weights).coef_)
    np.testing.assert_allclose(coefs[0], coefs[1], atol=1e-7)


@pytest.mark.parametrize("form", FORMS[:2])
def test_weights_are_repetitions_and_zero_removes(form) -> None:
    weights = seeded(5).integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), weights)
    for standardize in (True, False):
        model = ProportionRegressor(standardize=standardize, tol=1e-10)
        weighted = model.fit(form(X), Y, weights).coef_
        expected = model.fit(form(X[repeated]), Y[repeated]).coef_
        np.testing.assert_allclose(weighted, expected, atol=1e-8)


def test_class_weights_and_sample_weights_multiply() -> None:
    X, y = load_iris(return_X_y=True)
    by_class = np.asarray([1.0, 2.0, 0.5])
    weights = seeded(0).uniform(0.0, 2.0, len(X))
    one = FitzpatrickClassifier(class_weight=dict(enumerate(by_class)), tol=1e-9)
    other = FitzpatrickClassifier(tol=1e-9).fit(X, y, by_class[y] * weights)
    np.testing.assert_allclose(one.fit(X, y, weights).coef_, other.coef_, atol=1e-7)
    theirs = LogisticRegression(class_weight="balanced", **NEWTON).fit(X, y, weights)
    balanced = FitzpatrickClassifier("logistic", class_weight="balanced", tol=1e-10)
    np.testing.assert_allclose(balanced.fit(X, y, weights).coef_, theirs.coef_, atol=1e-6)
    # a class without weight is passed over
    weights = np.where(y == 2, 0.0, np.where(y == 1, 3.0, 1.0))
    equal = FitzpatrickClassifier("logistic", tol=1e-10).fit(X, y, np.where(y == 2, 0.0, 2.0))
    np.testing.assert_allclose(balanced.fit(X, y, weights).coef_, equal.coef_, atol=1e-7)


# with seeds on which, on one machine or another, rounding hides the way to a small gradient
@pytest.mark.parametrize(
    ("dtype", "standardize", "seed"),
    [("float64", True, 0), ("float64", True, 29), ("float64", False, 10), ("float64", False, 12),
     *(("float32", False, seed) for seed in range(4))],
)  # fmt: skip
def test_sparse_features_far_from_zero(dtype: str, standardize: bool, seed: int) -> None:
    """In single precision they are rounded at 1e-3 or less; the fit does not end early."""
    X, is_single = features(seed=seed), dtype == "float32"
    Y = targets("fitzpatrick_logistic", X)
    model = ProportionRegressor(standardize=standardize)
    near = model.fit(X, Y).objective_
    given = sparse.csr_array((X + (1e4 if is_single else 1e8)).astype(dtype))
    far = model.fit(given, Y)
    assert far.status_.converged
    assert far.objective_ == pytest.approx(near, rel=8e-3 if is_single else 1e-5)
    if is_single:  # what rounds 1e4 leaves of a gradient is a thousand times what tol asks for
        assert far.status_ is not Status.CONVERGED
        shift = np.linalg.norm(given.mean(axis=0)) / np.sqrt(X.var(axis=0).sum())
        found = penalty_path(given, Y, "fitzpatrick_logistic")._stopping.cancellation
        assert found == pytest.approx(shift, rel=1e-3)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array])
def test_sparse_features_in_any_state(form, standardize: bool) -> None:
    dense = np.where(seeded(3).random((60, 5)) < 0.5, 0.0, features())
    halves = sparse.coo_array(dense / 2)
    twice = [np.concatenate([part, part[::-1]]) for part in (halves.data, halves.row, halves.col)]
    major = twice[1] if form is sparse.csr_array else twice[2]
    order = np.argsort(major, kind="stable")
    minor = (twice[2] if form is sparse.csr_array else twice[1])[order]
    indptr = np.append(0, np.cumsum(np.bincount(major)))
    X = form((twice[0][order], minor, indptr), shape=dense.shape)  # in halves, out of order
    np.testing.assert_allclose(X.toarray(), dense)
    parts = X.data, X.indices, X.indptr
    before = [part.copy() for part in parts]
    for part in parts:
        part.flags.writeable = False
    model = ProportionRegressor(standardize=standardize, tol=1e-9)
    coef, prediction = model.fit(X, Y).coef_, model.predict(X)
    for part, expected in zip(parts, before, strict=True):
        np.testing.assert_array_equal(part, expected)
    np.testing.assert_allclose(coef, model.fit(dense, Y).coef_, atol=1e-8)
    np.testing.assert_allclose(prediction, model.predict(dense), atol=1e-8)


def test_two_classes_of_proportions_are_the_classifier_at_half_the_penalty() -> None:
    labels = LABELS % 2
    for loss in ("fitzpatrick_logistic", "entmax15"):
        one = ProportionRegressor(loss, 2.0, tol=1e-10).fit(X, np.eye(2)[labels])
        other = FitzpatrickClassifier(loss, 1.0, tol=1e-10).fit(X, labels)
        np.testing.assert_allclose(one.predict(X), other.predict_link(X), atol=1e-8)


@pytest.mark.parametrize("loss", ["fitzpatrick_logistic", "sparsemax"])
def test_single_precision_stays_and_agrees(loss: str) -> None:
    for alpha in (1e8, 1.0, 1e-4):
        double = ProportionRegressor(loss, alpha).fit(X, Y)
        for form in (np.asarray, sparse.csr_array):
            single = ProportionRegressor(loss, alpha).fit(form(X.astype(np.float32)), Y)
            assert single.status_.converged
            assert single.coef_.dtype == single.intercept_.dtype == np.float32
            assert single.predict(X.astype(np.float32)).dtype == np.float32
            assert single.objective_ == pytest.approx(double.objective_, rel=1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [0.0, 0.1, -3e7])
def test_constant_columns_are_standardized_as_scikit_learn_does(form, value: float) -> None:
    constant = X.copy()
    constant[:, [1, 4]] = value
    model = FitzpatrickClassifier("logistic", standardize=True, tol=1e-12)
    model.fit(form(constant), LABELS)
    np.testing.assert_array_equal(model.coef_[:, [1, 4]], 0.0)
    peer = make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cholesky", tol=1e-10))
    expected = peer.fit(constant, LABELS).predict_proba(constant)
    # both stop at a gradient norm of about 1e-10, and the curvature is at least alpha = 1
    np.testing.assert_allclose(model.predict_proba(constant), expected, atol=1e-8)
    without = FitzpatrickClassifier("logistic", standardize=True, tol=1e-12)
    without.fit(form(X[:, [0, 2, 3]]), LABELS)
    np.testing.assert_allclose(model.coef_[:, [0, 2, 3]], without.coef_, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("dtype", "value"), [(np.float32, 0.1), (np.float64, -3e7)])
def test_columns_that_are_constant_but_for_rounding(form, dtype, value: float) -> None:
    rng = seeded(0)
    n = 5003  # the mean of so many numbers is not what each of them is
    long = np.column_stack([rng.standard_normal(n), np.full(n, value)]).astype(dtype)
    long[0, 1] = np.nextafter(long[0, 1], dtype(np.inf))
    model = FitzpatrickClassifier(standardize=True, tol=1e-3).fit(form(long), np.arange(n) % 2)
    assert model.coef_[0, 1] == 0.0
    assert model.coef_[0, 0] != 0.0


@pytest.mark.parametrize("form", FORMS[:2])
def test_columns_that_are_constant_on_the_fitted_rows(form) -> None:
    constant = X.copy()
    constant[:40, 2] = 0.1
    weights = np.repeat([1.0, 0.0], [40, 20])
    model = ProportionRegressor("logistic", standardize=True, warm_start=True).fit(form(X), Y)
    model.fit(form(constant), Y, weights)  # from coefficients that are not zero
    np.testing.assert_array_equal(model.coef_[:, 2], 0.0)
    # the first fold is fitted to rows on which the column is constant
    folds = PredefinedSplit(np.repeat([1, 0], [40, 20]))
    search = ProportionRegressorCV(alphas=[0.1, 1.0], standardize=True, cv=folds)
    assert np.isfinite(search.fit(form(constant), Y).scores_).all()
    assert search.coef_[:, 2].any()
    model.fit(form(np.ones(X.shape)), Y)  # the intercept alone
    np.testing.assert_allclose(model.predict(np.ones((1, 5)))[0], Y.mean(axis=0), atol=1e-7)


def test_rounded_targets_are_proportions() -> None:
    """What their own dtype rounded in silence, shares of a few digits with a warning."""
    long = features(400, 8)
    single = targets("fitzpatrick_logistic", long, k=6).astype(np.float32)
    for rounded in (single.astype(np.float16), single, sparse.csr_array(single)):
        model = ProportionRegressor().fit(long, rounded)
        assert model.status_ is Status.CONVERGED
        expected = ProportionRegressor().fit(long, label_proportions(rounded.astype(float)))
        assert model.n_iter_ == expected.n_iter_
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-10)
    printed = Y.round(2)
    assert 0.005 < np.abs(printed.sum(axis=1) - 1).max() <= 0.02
    expected = ProportionRegressor().fit(X, label_proportions(printed)).coef_
    for form in (np.asarray, sparse.csr_array):
        with pytest.warns(UserWarning, match=r"a sum of one by up to 0\.01.* divided by its sum"):
            model = ProportionRegressor().fit(X, form(printed))
        np.testing.assert_allclose(model.coef_, expected, rtol=1e-9)  # but for the order of sums
