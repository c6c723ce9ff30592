"""Standard errors, intervals and marginal effects of the linear models."""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

import fitzpatrick as fp
from fitzpatrick.linear_model import FitzpatrickClassifier, ProportionRegressor
from tests.helpers import seeded

EXACT = {"alpha": 0.0, "tol": 1e-12}
W = np.asarray([[0.0, 0.0, 0.0], [1.0, -1.0, 0.5], [0.5, 0.5, -1.0]])


def draw(rng: np.random.Generator, n: int, tightness: float = 0.0):
    """Features, and labels whose probabilities are those of the linear scores X Wᵀ."""
    X = rng.normal(size=(n, 3))
    q = fp.get_loss("fitzpatrick_logistic", tightness=tightness).probabilities(X @ W.T)
    return X, (rng.random((n, 1)) > np.cumsum(q, axis=1)).sum(axis=1)


@pytest.fixture
def sm():
    return pytest.importorskip("statsmodels.api")


def test_classes_as_statsmodels(sm) -> None:
    X, y = draw(seeded(0), 500)
    table = FitzpatrickClassifier("logistic", **EXACT).fit(X, y).summary(X, y)
    peer = sm.MNLogit(y, sm.add_constant(X, prepend=False))
    peer = peer.fit(disp=0, cov_type="HC0", tol=1e-14, maxiter=100)
    shape = 2, 4
    for column, theirs in (("coef", peer.params), ("std_err", peer.bse), ("p_value", peer.pvalues)):
        ours = table.coefficients[column].to_numpy().reshape(shape).T
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-12)
    effects = peer.get_margeff()
    for column, theirs in (("coef", effects.margeff), ("std_err", effects.margeff_se)):
        ours = table.marginal_effects[column].to_numpy().reshape(3, 3).T
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("clustered", [False, True])
def test_shares_as_statsmodels(sm, clustered: bool) -> None:
    """The fractional logit of Papke and Wooldridge is the sigmoid loss at tightness 0."""
    rng = seeded(1)
    X, groups = rng.normal(size=(300, 3)), rng.integers(30, size=300)
    mean = 1 / (1 + np.exp(-X @ W[1]))
    y = rng.beta(5 * mean, 5 * (1 - mean))[:, None]
    table = ProportionRegressor("sigmoid", **EXACT).fit(X, y)
    table = table.summary(X, y, groups=groups if clustered else None)
    kind = {"cov_type": "HC0"}
    if clustered:
        kind = {"cov_type": "cluster", "cov_kwds": {"groups": groups, "use_correction": False}}
    peer = sm.GLM(y, sm.add_constant(X, prepend=False), family=sm.families.Binomial())
    peer = peer.fit(tol=1e-14, **kind)
    np.testing.assert_allclose(table.coefficients["std_err"], peer.bse, rtol=1e-6)
    np.testing.assert_allclose(table.coefficients["low"], peer.conf_int()[:, 0], rtol=1e-6)


@pytest.mark.parametrize("tightness", [0.0, 1.0])
def test_intervals_cover_the_truth(tightness: float) -> None:
    """Labels drawn from the probabilities of linear scores: the scores are what is estimated."""
    rng = seeded(2)
    covered = []
    for _ in range(40):
        X, y = draw(rng, 300, tightness)
        model = FitzpatrickClassifier(
            "fitzpatrick_logistic", alpha=0.0, tightness=tightness, fit_intercept=False
        )
        table = model.fit(X, y).summary(X, y).coefficients
        truth = W[1:].ravel()
        covered.append((table["low"] <= truth) & (truth <= table["high"]))
    # 40 fits of six coefficients, which are not independent: four deviations of 40 draws
    assert abs(np.mean(covered) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 40)


def test_a_penalty_standardized_features_and_sparse_ones_agree() -> None:
    """The penalty of standardized features, in terms of features as they are."""
    rng = seeded(3)
    X, y = draw(rng, 300)
    X = X * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    loss = "fitzpatrick_logistic"
    given = FitzpatrickClassifier(loss, alpha=3.0, tol=1e-12, standardize=True).fit(X, y)
    by_hand = FitzpatrickClassifier(loss, alpha=3.0, tol=1e-12).fit(scaled, y)
    ours = given.summary(X, y).coefficients["std_err"].unstack()[["x0", "x1", "x2"]]
    theirs = by_hand.summary(scaled, y).coefficients["std_err"].unstack()[["x0", "x1", "x2"]]
    np.testing.assert_allclose(ours * X.std(axis=0), theirs, rtol=1e-7)
    groups, Y = rng.integers(20, size=300), np.eye(3)[y]
    for again, targets, sparse_targets in (
        (given, y, y),
        (ProportionRegressor(loss).fit(X, Y), Y, sparse.csr_array(Y)),
    ):
        ours = again.summary(sparse.csr_array(X), sparse_targets, groups=groups)
        theirs = again.summary(X, targets, groups=groups)
        np.testing.assert_allclose(ours.covariance, theirs.covariance, rtol=1e-8)


def test_weights_are_repetitions_in_one_cluster() -> None:
    X, y = draw(seeded(7), 200)
    weights = seeded(5).integers(0, 4, 200)
    rows = np.repeat(np.arange(200), weights)
    model = FitzpatrickClassifier("logistic", standardize=True, tol=1e-12)
    ours = model.fit(X, y, weights).summary(X, y, weights)
    theirs = model.fit(X[rows], y[rows]).summary(X[rows], y[rows], groups=rows)
    for table in ("coefficients", "marginal_effects"):
        given, expected = (getattr(each, table).to_numpy() for each in (ours, theirs))
        np.testing.assert_allclose(given, expected, rtol=1e-6, atol=1e-9)


def test_names_reference_and_text() -> None:
    pd = pytest.importorskip("pandas")
    X, y = draw(seeded(4), 200)
    frame, names = pd.DataFrame(X, columns=["age", "size", "price"]), np.asarray(["a", "b", "c"])[y]
    model = FitzpatrickClassifier("logistic").fit(frame, names)
    table = model.summary(frame, names, reference=2)
    assert list(table.coefficients.index[:4]) == [
        ("a", "age"), ("a", "size"), ("a", "price"), ("a", "(intercept)")
    ]  # fmt: skip
    assert "against 'c'" in str(table)
    opposite = model.summary(frame, names, reference=0).coefficients["coef"]
    np.testing.assert_allclose(
        table.coefficients.loc["a", "coef"], -opposite.loc["c"], rtol=1e-9, atol=1e-12
    )
    assert table.covariance.shape == (8, 8)


def test_the_point_of_the_fit_is_where_errors_are_taken() -> None:
    """Centered features without an intercept, other parameters later, other classes."""
    rng = np.random.default_rng(6)
    X, y = draw(rng, 300)
    X = X + np.asarray([5.0, -3.0, 0.0])
    model = FitzpatrickClassifier("logistic", standardize=True, fit_intercept=False, tol=1e-10)
    table = model.fit(X, y).summary(X, y)
    step = 1e-5
    for j, name in enumerate(("x0", "x1", "x2")):
        moved = [model.predict_proba(X + sign * step * np.eye(3)[j]) for sign in (1, -1)]
        slope = (moved[0] - moved[1]).mean(axis=0) / (2 * step)
        found = table.marginal_effects["coef"].unstack()[name]
        np.testing.assert_allclose(found, slope, atol=1e-7)
    model.set_params(alpha=1000.0, standardize=False)
    np.testing.assert_array_equal(model.summary(X, y).covariance, table.covariance)
    twice = np.column_stack([X, X[:, 0]])
    free = FitzpatrickClassifier("logistic", alpha=0.0)
    for call, message in (
        (partial(model.summary, X[y != 0], y[y != 0]), "give the samples of the fit"),
        (partial(model.summary, X, y, reference=-1), "reference must be the place"),
        (partial(model.summary, X, y, groups=[1, 2]), "one entry per sample"),
        (partial(model.summary, X, y, level=95), "level must be"),
        (partial(FitzpatrickClassifier("perceptron").fit(X, y).summary, X, y), "no curvature"),
        (partial(free.fit(twice, y).summary, twice, y), "singular"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert list(model.classes_) == [0, 1, 2]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_constant_features(form, fit_intercept: bool) -> None:
    """A standardized model has no coefficient for them; beside an intercept they are named."""
    X, y = draw(seeded(8), 200)
    constant = form(np.insert(X, 1, 7.0, axis=1))
    model = FitzpatrickClassifier("logistic", fit_intercept=fit_intercept, tol=1e-12)
    model.set_params(standardize=True).fit(constant, y)
    table = model.summary(constant, y)
    assert "without the constant features ['x1']" in table.title
    assert "x1" not in table.coefficients.unstack().columns.get_level_values("feature")
    alone = model.fit(form(X), y).summary(form(X), y)
    np.testing.assert_allclose(table.covariance, alone.covariance, rtol=1e-6)
    free = FitzpatrickClassifier("logistic", alpha=0.0).fit(constant, y)
    with pytest.raises(ValueError, match=r"features \['x1'\] are constant, as the intercept is"):
        free.summary(constant, y)
    penalized = FitzpatrickClassifier("logistic", alpha=1.0).fit(constant, y)
    assert np.isfinite(penalized.summary(constant, y).covariance).all()


def is_separated(X: np.ndarray, Y: np.ndarray, on_simplex: bool) -> bool:
    """Whether a linear program over all samples finds coefficients that cost none of them."""
    X, units = np.column_stack([X, np.ones(len(X))]), np.eye(Y.shape[1])
    # on the simplex the label's score has to rise the most, else that of ones, and of zeros to fall
    changes = [Y - unit if on_simplex else (2 * Y - 1) * unit for unit in units]
    margins = np.concatenate([np.einsum("nk,nd->nkd", change, X) for change in changes])
    margins = margins.reshape(len(margins), -1)
    given = {"bounds": (-1, 1), "options": {"primal_feasibility_tolerance": 1e-10}}
    return -linprog(-margins.sum(axis=0), -margins, np.zeros(len(margins)), **given).fun > 1e-6


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("loss", "tightness"),
    [("fitzpatrick_logistic", 0.0), ("fitzpatrick_logistic", 4.0), ("fitzpatrick_entmax15", 1.0),
     ("fitzpatrick_sparsemax", 1.0), ("sigmoid", 0.0), ("fitzpatrick_sparse_sigmoid", 1.0)],
)  # fmt: skip
def test_no_errors_where_coefficients_can_grow_for_ever(loss: str, tightness: float) -> None:
    """Features that tell classes apart, all of them or some, and nothing else."""
    rng, found = seeded(9), []
    on_simplex = fp.get_loss(loss).regularizer.domain.has_labels
    # classes that two scores decide, others without a rule, and features of zeros and ones
    for k, n, scale, form in 2 * [(2, 40, 1e6, float), (3, 80, 0.1, float), (3, 30, 3.0, int)]:
        d = int(rng.integers(1, 4))
        X = rng.normal(size=(n, d)) if form is float else rng.integers(0, 2, (n, d)).astype(float)
        scores = scale * X @ rng.normal(size=(d, k))
        labels = np.argmax(scores + rng.gumbel(size=(n, k)), axis=1)
        labels = np.unique(labels, return_inverse=True)[1]
        Y = np.eye(max(2, labels.max() + 1))[labels]
        weights = rng.integers(0, 3, n).astype(float)
        weights[np.unique(labels, return_index=True)[1]] = 1.0  # or an intercept can grow, too
        counted = weights > 0
        separated = is_separated(X[counted], Y[counted], on_simplex)
        is_dependent = np.linalg.matrix_rank(np.c_[X, np.ones(n)][counted]) <= d
        problem = "perfect separation" if separated else "singular" if is_dependent else None
        models = [(ProportionRegressor, Y)]
        if on_simplex and labels.any():
            models.append((FitzpatrickClassifier, labels))
        for cls, y in models:
            model = cls(loss, alpha=0.0, tightness=tightness).fit(X, y, weights)
            if problem is not None:
                with pytest.raises(ValueError, match=problem):
                    model.summary(X, y, weights)
                model.set_params(alpha=1e-2).fit(X, y, weights)
            assert np.isfinite(model.summary(X, y, weights).covariance).all()
        found.append(separated)
    assert found[::3] == [True] * 2
    assert found[1::3] == [False] * 2


@pytest.mark.parametrize("loss", ["poisson", "fitzpatrick_poisson"])
def test_no_errors_for_counts_that_a_feature_sets_to_zero(loss: str) -> None:
    X = seeded(10).integers(0, 2, (80, 1)).astype(float)
    counts = 1.0 + seeded(11).poisson(2.0, (80, 1))
    model = ProportionRegressor(loss, alpha=0.0).fit(X, counts)
    assert np.isfinite(model.summary(X, counts).covariance).all()
    model.fit(X, counts * X)
    with pytest.raises(ValueError, match="perfect separation"):
        model.summary(X, counts * X)


def test_separation_is_judged_by_rows_that_count_whatever_their_size() -> None:
    """An outlier hides no overlap, and neither a row without weight nor near copies separation."""
    rng = seeded(3)
    x, noise = rng.normal(size=200), rng.normal(size=200)
    labels = (rng.random(200) < 1 / (1 + np.exp(-x))).astype(int)

    def model():
        return FitzpatrickClassifier("logistic", alpha=0, standardize=True)

    outlier = np.where(np.arange(200) == 0, 1e7, x)[:, None]
    labels[0] = 1
    assert model().fit(outlier, labels).summary(outlier, labels).coefficients["std_err"].max() < 1
    far = np.r_[x, 1e7][:, None]
    weights = np.r_[np.ones(200), 0.0]
    told = np.r_[x > 0, False].astype(int)
    copies = np.c_[x, x + 1e-5 * noise]
    for X, y, w in ((far, told, weights), (copies, (noise > 0).astype(int), None)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such a fit may not converge
            fitted = model().fit(X, y, sample_weight=w)
        with pytest.raises(ValueError, match="perfect separation"):
            fitted.summary(X, y, sample_weight=w)
