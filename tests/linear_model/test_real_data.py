"""Data as people have them: constant columns, rounded shares, names, foreign dtypes.

What a message advises is done here, with arrays and data frames.
"""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fitzpatrick import metrics
from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
    fit_path,
)
from fitzpatrick.preprocessing import label_proportions
from tests.helpers import seeded

from .data import features, targets

X = features()
Y = targets("fitzpatrick_logistic", X)
LABELS = Y.argmax(axis=1)
WORDS = np.asarray(["ash", "birch", "cedar", "date"])[LABELS]
FORMS = [np.asarray, sparse.csr_array, sparse.csc_array]


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
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.1, -3e7, 1e-30])
def test_columns_that_are_constant_but_for_rounding(form, dtype, value: float) -> None:
    rng = seeded(0)
    n = 20003  # the mean of so many numbers is not what each of them is
    long = np.column_stack([rng.standard_normal(n), np.full(n, value)]).astype(dtype)
    long[0, 1] = np.nextafter(long[0, 1], dtype(np.inf))
    model = FitzpatrickClassifier(standardize=True).fit(form(long), rng.integers(0, 2, n))
    assert model.coef_[0, 1] == 0.0
    assert model.coef_[0, 0] != 0.0


@pytest.mark.parametrize("form", FORMS[:2])
def test_columns_that_are_constant_on_the_fitted_rows(form) -> None:
    constant = X.copy()
    constant[:40, 2] = 0.1
    weights = np.repeat([1.0, 0.0], [40, 20])
    model = ProportionRegressor(standardize=True).fit(form(constant), Y, weights)
    np.testing.assert_array_equal(model.coef_[:, 2], 0.0)
    # the first fold is fitted to rows on which the column is constant
    folds = PredefinedSplit(np.repeat([1, 0], [40, 20]))
    search = ProportionRegressorCV(alphas=[0.1, 1.0], standardize=True, cv=folds)
    assert np.isfinite(search.fit(form(constant), Y).scores_).all()
    assert search.coef_[:, 2].any()


def test_warm_start_leaves_a_constant_column_alone() -> None:
    model = ProportionRegressor(standardize=True, warm_start=True).fit(X, Y)
    constant = X.copy()
    constant[:, 0] = 3.0
    model.fit(constant, Y)
    np.testing.assert_array_equal(model.coef_[:, 0], 0.0)
    expected = ProportionRegressor(standardize=True).fit(constant, Y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)


def test_all_columns_constant_leaves_the_intercept() -> None:
    model = ProportionRegressor("logistic", standardize=True).fit(np.ones((len(X), 2)), Y)
    assert not model.coef_.any()
    np.testing.assert_allclose(model.predict(np.ones((1, 2)))[0], Y.mean(axis=0), atol=1e-7)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("cls", [ProportionRegressor, ProportionRegressorCV])
def test_shares_of_a_few_digits(form, cls) -> None:
    rounded = Y.round(2)
    assert 0.005 < np.abs(rounded.sum(axis=1) - 1).max() <= 0.02
    with pytest.warns(UserWarning, match=r"a sum of one by up to 0\.01.* divided by its sum"):
        model = cls().fit(X, form(rounded))
    expected = cls().fit(X, label_proportions(rounded)).coef_
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-9)  # but for the order of sums


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_what_rounding_to_the_dtype_did_is_undone_in_silence(dtype) -> None:
    ProportionRegressor().fit(X, Y.astype(dtype))


INDICATORS = (Y > 0.2).astype(int)
INDICATORS[np.arange(len(Y)), LABELS] = 1
OFF_THE_SIMPLEX = [
    (100 * Y, "in row 0 it sums to 100, not 1; label_proportions"),
    (INDICATORS, "it holds 0/1 indicators, .* not proportions; label_proportions"),
]


@pytest.mark.parametrize(("off", "message"), OFF_THE_SIMPLEX)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, "data frame"])
def test_rows_off_the_simplex_are_pointed_to_label_proportions(off, message, form) -> None:
    if form == "data frame":
        form = pytest.importorskip("pandas").DataFrame
    with pytest.raises(ValueError, match=message):
        ProportionRegressor().fit(X, form(off))
    model = ProportionRegressor().fit(X, label_proportions(form(off)))
    expected = ProportionRegressor().fit(X, off / off.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)


def test_indicators_with_a_loss_for_each_label() -> None:
    with pytest.raises(ValueError, match="loss='sigmoid'"):
        ProportionRegressor().fit(X, INDICATORS)
    ProportionRegressor("sigmoid").fit(X, INDICATORS)


def test_one_share_per_sample() -> None:
    with pytest.raises(ValueError, match="for one share per sample loss='sigmoid'"):
        ProportionRegressor().fit(X, Y[:, 0])
    assert ProportionRegressor("sigmoid").fit(X, Y[:, 0]).predict(X).shape == (len(X),)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("form", [np.asarray, list, "series"])
def test_class_names_for_the_regressor(loss: str, form) -> None:
    if form == "series":
        form = pytest.importorskip("pandas").Series
    with pytest.raises(ValueError, match=r"text such as '\w+'.* use FitzpatrickClassifier"):
        ProportionRegressor(loss).fit(X, form(WORDS))
    assert list(FitzpatrickClassifier().fit(X, form(WORDS)).classes_) == sorted(set(WORDS))


def test_numbers_as_text() -> None:
    with pytest.raises(ValueError, match=r"y\.astype\(float\)"):
        ProportionRegressor().fit(X, Y.astype(str))
    ProportionRegressor().fit(X, Y.astype(str).astype(float))


@pytest.mark.parametrize("cls", [FitzpatrickClassifier, FitzpatrickClassifierCV])
@pytest.mark.parametrize("y", [Y, Y[:, 0]])
def test_shares_for_the_classifier(cls, y) -> None:
    with pytest.raises(ValueError, match=r"For proportions|for proportions") as caught:
        cls().fit(X, y)
    assert "use ProportionRegressor" in str(caught.value)


def test_indicators_for_the_classifier() -> None:
    pandas = pytest.importorskip("pandas")
    one_hot = pandas.DataFrame(np.eye(4)[LABELS])
    with pytest.raises(ValueError, match=r"np\.asarray\(y\)\.argmax\(axis=1\)"):
        FitzpatrickClassifier().fit(X, one_hot)
    FitzpatrickClassifier().fit(X, np.asarray(one_hot).argmax(axis=1))


@pytest.mark.parametrize("name", ["jensen_shannon", "chebyshev"])
def test_scorers_in_a_grid_search(name: str) -> None:
    """They go by name in our CV estimators, and by get_scorer in scikit-learn's."""
    grid = {"alpha": [0.1, 10.0]}
    for model, cv_model, y in (
        (ProportionRegressor(), ProportionRegressorCV, Y),
        (FitzpatrickClassifier(), FitzpatrickClassifierCV, WORDS),
    ):
        search = GridSearchCV(model, grid, scoring=metrics.get_scorer(name), cv=3).fit(X, y)
        expected = cv_model(alphas=grid["alpha"], refine=0, scoring=name, cv=3).fit(X, y)
        assert search.best_params_["alpha"] == expected.alpha_
        assert search.best_score_ == pytest.approx(expected.best_score_, rel=1e-6)


@pytest.fixture
def frames():
    pandas = pytest.importorskip("pandas")
    index = pandas.Index(range(100, 100 + len(X)), name="plot")
    trees = ["ash", "birch", "cedar", "date"]
    return pandas.DataFrame(X, index=index, columns=list("abcde")), pandas.DataFrame(
        Y, index=index, columns=trees
    )


@pytest.mark.parametrize("cls", [ProportionRegressor, ProportionRegressorCV])
def test_target_names(cls, frames) -> None:
    X_frame, Y_frame = frames
    model = cls().fit(X_frame, Y_frame)
    assert list(model.target_names_in_) == list(Y_frame.columns)
    assert isinstance(model.predict(X_frame), np.ndarray)  # as scikit-learn's regressors
    framed = clone(cls().set_output(transform="pandas")).fit(X_frame, Y_frame).predict(X_frame)
    assert list(framed.columns) == list(Y_frame.columns)
    assert framed.index.equals(X_frame.index)
    np.testing.assert_array_equal(framed, model.predict(X_frame))
    model.fit(X_frame, Y)
    assert not hasattr(model, "target_names_in_")
    assert list(model.set_output(transform="pandas").predict(X_frame)) == ["y0", "y1", "y2", "y3"]
    assert isinstance(model.set_output(transform="default").predict(X_frame), np.ndarray)


def test_class_names_as_columns(frames) -> None:
    X_frame, _ = frames
    model = FitzpatrickClassifier().set_output(transform="pandas").fit(X_frame, WORDS)
    probabilities = model.predict_proba(X_frame)
    assert list(probabilities.columns) == list(model.classes_)
    assert list(model.predict_log_proba(X_frame).columns) == list(model.classes_)
    assert isinstance(model.predict(X_frame), np.ndarray)
    assert model.score(X_frame, WORDS) > 0.5


def test_unknown_output() -> None:
    with pytest.raises(ValueError, match=r"transform must be None or one of .*, got 'excel'"):
        ProportionRegressor().set_output(transform="excel")


@pytest.mark.parametrize("loss", ["fitzpatrick_logistic", "squared", "perceptron"])
def test_huge_weights(loss: str) -> None:
    weights = np.linspace(1.0, 2.0, len(X))
    expected = ProportionRegressor(loss, alpha=0.5).fit(X, Y, weights)
    with pytest.raises(ValueError, match=r"weight 2e\+300.* divide the weights of all samples and"):
        ProportionRegressor(loss, alpha=0.5e300).fit(X, Y, 1e300 * weights)
    model = ProportionRegressor(loss, alpha=0.5).fit(X, Y, 1e300 * weights / 1e300)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="a sample has the weight"):
        FitzpatrickClassifier(class_weight={0: 1e300, 1: 1.0, 2: 1.0, 3: 1.0}).fit(X, LABELS)
    with pytest.raises(ValueError, match="a sample has the weight"):
        fit_path(X, Y, loss, [1.0], sample_weight=1e300 * weights)


def test_metrics_of_huge_weights() -> None:
    weights = np.linspace(0.5, 1.0, len(Y))
    uniform = np.full_like(Y, 0.25)
    expected = metrics.chebyshev(Y, uniform, sample_weight=weights)
    found = metrics.chebyshev(Y, uniform, sample_weight=1.7e308 * weights)
    assert found == pytest.approx(expected, rel=1e-14)


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


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_matrices_are_refused() -> None:
    for arguments in ((np.matrix(X), Y), (X, np.matrix(Y)), (X, Y, np.matrix(np.ones(len(X))))):
        with pytest.raises(TypeError, match=r"np\.matrix is not supported.*np\.asarray"):
            ProportionRegressor().fit(*arguments)
