"""Choosing alpha: folds, dev sets, scores, and the path behind them."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
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
    ProportionRegressor,
    ProportionRegressorCV,
    _cv,
)
from tests.helpers import seeded

from .data import features, targets

ALPHAS = [0.01, 1.0, 100.0]
GRID = {"alphas": ALPHAS, "refine": 0}


def problem(n: int = 60):
    X = features(n)
    return X, targets("fitzpatrick_logistic", X)


def single_predictions(X, Y, folds, **parameters) -> list:
    """Targets and predictions of a single fit for each fold and alpha."""
    return [
        [
            (
                Y[held_out],
                ProportionRegressor(alpha=alpha, **parameters)
                .fit(X[train], Y[train])
                .predict(X[held_out]),
            )
            for alpha in ALPHAS
        ]
        for train, held_out in folds
    ]


def single_scores(X, Y, folds, score, **parameters) -> np.ndarray:
    """``score(Y, prediction)`` of these."""
    found = single_predictions(X, Y, folds, **parameters)
    return np.asarray([[score(*pair) for pair in pairs] for pairs in found])


def negative_error(Y, prediction) -> float:
    return -metrics.squared_error(Y, prediction)


def test_scores_are_those_of_single_fits() -> None:
    X, Y = problem()
    folds = KFold(3, shuffle=True, random_state=0)
    model = ProportionRegressorCV(**GRID, cv=folds, standardize=True).fit(X, Y)
    expected = single_scores(X, Y, folds.split(X), negative_error, standardize=True)
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-6)
    best = ALPHAS[expected.mean(axis=0).argmax()]
    assert model.alpha_ == best
    assert model.best_score_ == pytest.approx(expected.mean(axis=0).max())
    refit = ProportionRegressor(alpha=best, standardize=True).fit(X, Y)
    np.testing.assert_allclose(model.coef_, refit.coef_, atol=1e-6)


def test_default_alphas_are_the_papers() -> None:
    X, Y = problem(30)
    model = ProportionRegressorCV(cv=2, tol=1e-5, refine=0).fit(X, Y)
    np.testing.assert_allclose(model.alphas_, 10.0 ** np.arange(-4, 5))
    assert model.scores_.shape == (2, 9)


def test_a_dev_set_chooses_and_never_enters_the_fit() -> None:
    X, Y = problem()
    model = ProportionRegressorCV(**GRID).fit(X[:40], Y[:40], dev=(X[40:], Y[40:]))
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


def test_a_dev_set_may_have_weights_and_be_a_list() -> None:
    X, Y = problem()
    weights = np.arange(20.0)
    model = ProportionRegressorCV(alphas=[1.0]).fit(X[:40], Y[:40], dev=[X[40:], Y[40:], weights])
    prediction = ProportionRegressor().fit(X[:40], Y[:40]).predict(X[40:])
    error = metrics.squared_error(Y[40:], prediction, sample_weight=weights)
    assert model.scores_[0, 0] == pytest.approx(-error, rel=1e-6)
    plain = ProportionRegressorCV(alphas=[1.0]).fit(X[:40], Y[:40], dev=[X[40:], Y[40:]])
    expected = -metrics.squared_error(Y[40:], prediction)
    assert plain.scores_[0, 0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, Y: (X, 10 * Y), "dev: y is not in the domain.*it sums to 10, not 1"),
        (lambda X, Y: (X, Y[:, :3] / Y[:, :3].sum(axis=1)[:, None]), "dev: .*same shape"),
        (lambda X, Y: (X, Y[:3]), r"dev: .*inconsistent numbers of samples: \[20, 3\]"),
        (lambda X, Y: (X, Y * np.nan), "dev: Input y contains NaN in row 0, column 0"),
        (lambda X, Y: (X[:, :2], Y), "dev: X has 2 features, but .* is expecting 5"),
        (lambda X, Y: (X, Y, -np.ones(20)), "dev: Negative values"),
        (lambda X, Y: (X, Y, X, Y), r"dev must be a pair \(X_dev, y_dev\) or a triple"),
    ],
)
def test_a_dev_set_is_checked(change, message: str) -> None:
    X, Y = problem()
    with pytest.raises(ValueError, match=message):
        ProportionRegressorCV(**GRID).fit(X[:40], Y[:40], dev=change(X[40:], Y[40:]))


def test_labels_of_a_dev_set_are_those_of_the_fit() -> None:
    X, y = load_iris(return_X_y=True)
    model = FitzpatrickClassifierCV(alphas=[1.0])
    with pytest.raises(ValueError, match=r"dev: y holds classes .* not in .* the fit: \[2\]"):
        model.fit(X[:100], y[:100], dev=(X, y))
    assert model.fit(X, y, dev=(X[:100], y[:100])).scores_ == model.score(X[:100], y[:100])


@pytest.mark.parametrize(
    "cv",
    [
        None,
        2,
        ShuffleSplit(2, random_state=0),
        PredefinedSplit(np.repeat([-1, 0], [40, 20])),
        [(np.arange(30), np.arange(30, 60))],
        [(np.arange(60) < 30, np.arange(60) >= 30)],
    ],
)
def test_any_splitter(cv) -> None:
    X, Y = problem()
    model = ProportionRegressorCV(**GRID, cv=cv).fit(X, Y)
    expected = single_scores(X, Y, check_cv(cv).split(X), negative_error)
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-6)


def test_groups_reach_the_splitter() -> None:
    X, Y = problem()
    groups = seeded(0).integers(0, 6, len(X))
    folds = list(GroupKFold(3).split(X, groups=groups))
    model = ProportionRegressorCV(**GRID, cv=GroupKFold(3)).fit(X, Y, groups=groups)
    expected = single_scores(X, Y, folds, negative_error)
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-6)


@pytest.mark.parametrize("cv", [[], PredefinedSplit(np.full(60, -1))])
def test_no_folds_are_an_error(cv) -> None:
    with pytest.raises(ValueError, match="makes no folds"):
        ProportionRegressorCV(cv=cv).fit(*problem())


@pytest.mark.parametrize(
    "form", [sparse.csr_array, sparse.csc_matrix, sparse.coo_matrix, sparse.bsr_array]
)
def test_sparse_data_change_nothing(form) -> None:
    X, Y = problem()
    dense = ProportionRegressorCV(**GRID, cv=2).fit(X, Y)
    for scoring in (None, "neg_mean_squared_error"):
        model = ProportionRegressorCV(**GRID, cv=2, scoring=scoring).fit(form(X), form(Y))
        expected = dense.set_params(scoring=scoring).fit(X, Y).scores_
        np.testing.assert_allclose(model.scores_, expected, rtol=1e-6)


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


def test_scorers_without_weights_score_without() -> None:
    X, Y = problem()
    weights = np.repeat([1.0, 3.0], 30)

    def score(model, X, Y) -> float:
        return negative_error(Y, model.predict(X))

    def weighted(model, X, Y, sample_weight=None) -> float:
        return -metrics.squared_error(Y, model.predict(X), sample_weight=sample_weight)

    folds = KFold(2, shuffle=True, random_state=0)
    model = ProportionRegressorCV(**GRID, cv=folds, scoring=score).fit(X, Y, weights)
    train, held_out = next(folds.split(X))
    single = ProportionRegressor(alpha=ALPHAS[0]).fit(X[train], Y[train], weights[train])
    assert model.scores_[0, 0] == pytest.approx(score(single, X[held_out], Y[held_out]), rel=1e-6)
    unweighted = make_scorer(lambda y, prediction: negative_error(y, prediction))
    again = ProportionRegressorCV(**GRID, cv=folds, scoring=unweighted).fit(X, Y, weights)
    np.testing.assert_array_equal(model.scores_, again.scores_)
    by_name = ProportionRegressorCV(**GRID, cv=folds).fit(X, Y, weights)
    own = ProportionRegressorCV(**GRID, cv=folds, scoring=weighted).fit(X, Y, weights)
    np.testing.assert_array_equal(by_name.scores_, own.scores_)
    assert (np.abs(by_name.scores_ - model.scores_) > 1e-6).all()


@pytest.mark.parametrize(("zero", "part"), [(slice(30), "held-out"), (slice(30, 60), "training")])
def test_folds_without_weight_are_named(zero: slice, part: str) -> None:
    X, Y = problem()
    weights = np.ones(60)
    weights[zero] = 0.0
    with pytest.raises(ValueError, match=f"in the {part} part of fold 0 has a positive weight"):
        ProportionRegressorCV(**GRID, cv=2).fit(X, Y, weights)
    shuffled = KFold(2, shuffle=True, random_state=0)
    model = ProportionRegressorCV(**GRID, cv=shuffled).fit(X, Y, weights)
    assert np.isfinite(model.scores_).all()


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


@pytest.fixture(scope="module")
def predictions() -> list:
    X, Y = problem()
    return single_predictions(X, Y, KFold(2).split(X))


@pytest.mark.parametrize("name", metrics.metric_names())
def test_metrics_go_by_name(name: str, predictions: list) -> None:
    X, Y = problem()
    model = ProportionRegressorCV(**GRID, cv=2, scoring=name).fit(X, Y)
    sign = 1 if name in ("cosine", "intersection", "sparsity") else -1

    def score(y, found) -> float:
        return metrics.sparsity(found) if name == "sparsity" else getattr(metrics, name)(y, found)

    expected = [[sign * score(*pair) for pair in pairs] for pairs in predictions]
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", ["squared_error", "jensen_shannon", "sparsity"])
def test_metrics_of_a_classifier_are_those_of_its_probabilities(name: str, classes: int) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes], y[y < classes]
    names = np.asarray(["a", "b", "c"])[y]
    folds = StratifiedKFold(2)
    loss = "fitzpatrick_sparsemax"
    model = FitzpatrickClassifierCV(loss, [0.1, 1.0], refine=0, cv=folds, scoring=name)
    model.fit(X, names)
    for i, (train, held_out) in enumerate(folds.split(X, y)):
        for j, alpha in enumerate([0.1, 1.0]):
            single = FitzpatrickClassifier(loss, alpha).fit(X[train], names[train])
            found = single.predict_proba(X[held_out])
            expected = (
                metrics.sparsity(found)
                if name == "sparsity"
                else -getattr(metrics, name)(np.eye(classes)[y[held_out]], found)
            )
            assert model.scores_[i, j] == pytest.approx(expected, rel=1e-5)


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


@pytest.mark.parametrize("score", [np.nan, -np.inf])
def test_scores_that_cannot_be_compared_are_an_error(score: float) -> None:
    X, Y = problem()
    with pytest.raises(ValueError, match=r"gave no finite score for alphas \[0.01, 1.0, 10"):
        ProportionRegressorCV(**GRID, cv=2, scoring=lambda *_: score).fit(X, Y)


def test_a_fit_without_tightnesses_forgets_those_of_the_one_before() -> None:
    X = features()
    Y = targets("fitzpatrick_sparsemax", X)
    model = ProportionRegressorCV("fitzpatrick_sparsemax", [1.0], tightnesses=[0, 1], cv=2)
    assert hasattr(model.fit(X, Y), "tightnesses_")
    model.set_params(tightnesses=None).fit(X, Y)
    assert not hasattr(model, "tightnesses_")
    assert model.scores_.shape == (2, 1)


def test_a_refined_alpha_leaves_no_trace_of_the_grid() -> None:
    """The squared loss of tightness 2 is a third of that of tightness 0: α/3, equal models.

    On powers of ten they meet their best alpha at different distances. Refined, each is within a
    step of the best, so that their errors differ by no more than the curve rises within a step.
    """
    rng = seeded(0)
    X = rng.standard_normal((60, 30))
    Y = X @ rng.standard_normal((30, 2)) + 8 * rng.standard_normal((60, 2))
    cv = KFold(3, shuffle=True, random_state=0)

    def errors(tightness: float, **options) -> np.ndarray:
        model = ProportionRegressorCV("fitzpatrick_squared", tightnesses=[tightness], cv=cv)
        return -model.set_params(**options).fit(X, Y).scores_.mean(axis=(0, 2))

    around = np.geomspace(1.0, 1e4, 81)  # three steps are 10^(3/20), a little above 10^(1/8)
    curve = errors(0.0, alphas=around, refine=0)
    best = int(curve.argmin())
    flatness = max(curve[best - 3], curve[best + 3]) - curve[best]
    coarse = [errors(tightness, refine=0).min() for tightness in (0.0, 2.0)]
    assert abs(coarse[0] - coarse[1]) > 2 * flatness  # else nothing is shown
    fine = [errors(tightness).min() for tightness in (0.0, 2.0)]
    assert abs(fine[0] - fine[1]) <= flatness


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
