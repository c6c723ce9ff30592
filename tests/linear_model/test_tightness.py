"""The tightness as a hyperparameter: optima, searches, cross-validation, paths."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, KFold

import fitzpatrick as fp
from fitzpatrick import metrics
from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
    fit_path,
)

from .data import features, real_problem, targets

FAMILIES = [
    name for name in fp.loss_names() if fp.get_loss(name).tightness == 1 and "poisson" not in name
]
TIGHTNESSES = [0.0, 0.5, 1.0, 2.0]
ALPHAS = [0.01, 1.0, 100.0]


@pytest.mark.parametrize("tightness", [0.5, 2.0])
@pytest.mark.parametrize("loss", [*FAMILIES, "fitzpatrick_poisson"])
def test_optimum(loss: str, tightness: float) -> None:
    """Stationary for the loss of that tightness, and where another solver ends."""
    X = features()
    Y = targets(loss, X)
    model = ProportionRegressor(loss, 0.5, tightness=tightness, tol=1e-9).fit(X, Y)
    other = clone(model).set_params(solver="lbfgs").fit(X, Y)
    exact = fp.get_loss(loss, tightness)
    assert model.tightness_ == tightness
    assert model.status_.converged
    residual = exact.gradient(Y, model.predict_scores(X))
    scale = np.linalg.norm(exact.gradient(Y, np.zeros(Y.shape)).T @ X)
    assert np.linalg.norm(residual.T @ X + 0.5 * model.coef_) <= 1e-6 * scale
    assert np.linalg.norm(residual.sum(axis=0)) <= 1e-6 * scale
    value = exact.value(Y, model.predict_scores(X)).sum() + 0.25 * np.square(model.coef_).sum()
    assert model.objective_ == pytest.approx(value, rel=1e-10)
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize("tightness", [0.5, 2.0])
def test_optimum_of_real_data_by_scipy(tightness: float) -> None:
    X, Y = (array[:300] for array in real_problem("yeast"))
    exact = fp.get_loss("fitzpatrick_logistic", tightness)

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W = flat.reshape(Y.shape[1], X.shape[1])
        values, residual = exact.value_and_gradient(Y, X @ W.T)
        return values.sum() + 5 * np.square(W).sum(), (residual.T @ X + 10 * W).ravel()

    start = np.zeros(Y.shape[1] * X.shape[1])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-14})
    model = ProportionRegressor(alpha=10.0, tightness=tightness, fit_intercept=False).fit(X, Y)
    assert model.objective_ == pytest.approx(found.fun, rel=1e-8)
    assert model.objective_ <= found.fun * (1 + 1e-12)


def test_none_is_the_losss_own() -> None:
    X = features()
    Y = targets("logistic", X)
    for name, tightness in (("logistic", 0.0), ("fitzpatrick_logistic", 1.0)):
        own = ProportionRegressor(name).fit(X, Y)
        same = ProportionRegressor("fitzpatrick_logistic", tightness=tightness).fit(X, Y)
        np.testing.assert_array_equal(own.coef_, same.coef_)
        assert own.tightness_ == same.tightness_ == tightness
    loss = fp.FitzpatrickLoss(fp.regularizers.Negentropy(), 0.5)
    assert ProportionRegressor(loss).fit(X, Y).tightness_ == 0.5
    assert ProportionRegressor(loss, tightness=2).fit(X, Y).tightness_ == 2.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "logistic", "tightness": 0.5}, "for tightness=0.5 use 'fitzpatrick_logistic'"),
        ({"tightness": -1.0}, r"'tightness' parameter .* in the range \[0.0, inf\) or None"),
        ({"tightness": np.inf}, r"'tightness' parameter .* in the range \[0.0, inf\) or None"),
        ({"tightness": np.nan}, r"'tightness' parameter .* in the range \[0.0, inf\) or None"),
        ({"tightness": "tight"}, "'tightness' parameter .* must be a float"),
    ],
)
@pytest.mark.parametrize("cls", [ProportionRegressor, FitzpatrickClassifier])
def test_tightness_without_sense(cls, parameters, message: str) -> None:
    X = features()
    Y = targets("logistic", X)
    with pytest.raises(ValueError, match=message):
        cls(**parameters).fit(X, Y if cls is ProportionRegressor else Y.argmax(axis=1))


@pytest.mark.parametrize(
    ("tightnesses", "message"),
    [
        ([], "tightnesses must be a sequence of numbers"),
        ([0.5, 0.5], "tightnesses must differ"),
        ([0.5, -1.0], r"tightnesses\[1\] must be a finite number of at least 0, got -1"),
    ],
)
def test_tightnesses_without_sense(tightnesses, message: str) -> None:
    X = features()
    with pytest.raises(ValueError, match=message):
        ProportionRegressorCV(tightnesses=tightnesses).fit(X, targets("logistic", X))
    with pytest.raises(ValueError, match="use 'fitzpatrick_logistic'"):
        ProportionRegressorCV("logistic", tightnesses=[0, 1]).fit(X, targets("logistic", X))


def test_grid_search_over_the_tightness() -> None:
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(
        FitzpatrickClassifier(alpha=0.1),
        {"tightness": TIGHTNESSES, "loss": ["fitzpatrick_logistic", "fitzpatrick_sparsemax"]},
        scoring=metrics.get_scorer("squared_error"),
        cv=3,
        error_score="raise",
    ).fit(X, y)
    scores = dict(
        zip(
            [(p["loss"], p["tightness"]) for p in search.cv_results_["params"]],
            search.cv_results_["mean_test_score"],
            strict=True,
        )
    )
    assert len(set(scores.values())) == len(scores)
    assert search.best_estimator_.tightness_ == search.best_params_["tightness"]
    model = clone(search.best_estimator_).set_params(tightness=0.25)
    assert model.get_params()["tightness"] == 0.25
    assert model.fit(X, y).tightness_ == 0.25


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
    X = features()
    Y = targets("logistic", X)
    plain = ProportionRegressorCV(alphas=ALPHAS, refine=0, cv=2).fit(X, Y)
    one = ProportionRegressorCV(alphas=ALPHAS, refine=0, tightnesses=[1.0], cv=2).fit(X, Y)
    assert plain.scores_.shape == (2, 3)
    assert one.scores_.shape == (2, 3, 1)
    np.testing.assert_array_equal(plain.scores_, one.scores_[:, :, 0])
    assert not hasattr(plain, "tightnesses_")
    assert plain.tightness_ == one.tightness_ == 1.0


def test_classifier_chooses_alpha_and_tightness_on_a_dev_set() -> None:
    X, y = load_iris(return_X_y=True)
    train, dev = np.arange(0, 150, 2), np.arange(1, 150, 2)
    model = FitzpatrickClassifierCV(
        alphas=[0.1, 1.0], tightnesses=TIGHTNESSES, scoring="kullback_leibler", refine=0
    ).fit(X[train], y[train], dev=(X[dev], y[dev]))
    assert model.scores_.shape == (1, 2, 4)
    j, m = np.unravel_index(model.scores_[0].argmax(), (2, 4))
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


@pytest.mark.parametrize("resumable", [True, False])
def test_path_is_that_of_single_fits(resumable: bool) -> None:
    X = features()
    Y = targets("fitzpatrick_logistic", X)
    seen: list[float] = []
    path = fit_path(
        X,
        Y,
        "fitzpatrick_logistic",
        [10.0, 1.0, 0.1],
        tightness=0.5,
        standardize=True,
        tol=1e-10,
        resumable=resumable,
        callback=lambda model: seen.append(model.alpha),
    )
    assert seen == path.alphas.tolist() == [10.0, 1.0, 0.1]
    for model, coef, intercept in zip(path.models, path.coefs, path.intercepts, strict=True):
        single = ProportionRegressor(alpha=model.alpha, tightness=0.5, standardize=True, tol=1e-10)
        single.fit(X, Y)
        np.testing.assert_allclose(coef, single.coef_, atol=1e-7)
        np.testing.assert_allclose(intercept, single.intercept_, atol=1e-7)
        regressor = ProportionRegressor.from_model(model, "fitzpatrick_logistic", tightness=0.5)
        np.testing.assert_allclose(regressor.predict(X), single.predict(X), atol=1e-7)
        assert regressor.tightness_ == 0.5


def test_a_resumable_path_is_resumed_bit_by_bit() -> None:
    X = features()
    Y = targets("fitzpatrick_sparsemax", X)
    alphas = [100.0, 1.0, 0.1, 0.01]
    options = {"tightness": 2.0, "resumable": True}
    whole = fit_path(X, Y, "fitzpatrick_sparsemax", alphas, **options)
    first = fit_path(X, Y, "fitzpatrick_sparsemax", alphas[:2], **options).models[-1]
    start = first.coef, first.intercept
    rest = fit_path(X, Y, "fitzpatrick_sparsemax", alphas[2:], start=start, **options)
    np.testing.assert_array_equal(rest.coefs, whole.coefs[2:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"solver": "sag"}, "'solver' parameter of fit_path must be a str among .*Got 'sag'"),
        ({"tol": 0.0}, "'tol' parameter of fit_path"),
        ({"loss": "perceptron", "solver": "newton-cg"}, "needs curvature"),
        ({"alphas": [1.0, 1.0]}, "alphas must differ"),
        ({"tightness": -1.0}, "tightness"),
        ({"Y": np.full((60, 4), 0.5)}, "it sums to 2, not 1"),
        ({"X": np.full((60, 5), np.nan)}, "Input X contains NaN"),
    ],
)
def test_paths_check_their_arguments(change, message: str) -> None:
    X = features()
    arguments = {"X": X, "Y": targets("logistic", X), "loss": "fitzpatrick_logistic", "alphas": [1]}
    with pytest.raises(ValueError, match=message):
        fit_path(**{**arguments, **change})
