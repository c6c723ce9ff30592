"""Features of other array libraries, on their device, against NumPy.

These are PyTorch on the CPU and on CUDA, and the strict implementation of the array-API standard.
"""

import math
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fitzpatrick._array import to_numpy
from fitzpatrick.experiments.runner import find_device, on_device
from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
    _preconditioner,
    _sums,
    fit_path,
)
from fitzpatrick.losses import get_loss
from tests.helpers import seeded

from .data import LABELS, WEIGHTS, WORDS, X, Y, penalty_path, targets

torch = pytest.importorskip("torch")
needs_strict = pytest.mark.skipif(
    find_spec("array_api_strict") is None, reason="needs array-api-strict"
)


def as_strict(array: Any) -> Any:
    """Arrays that can do what the standard says and no more, on a device that NumPy cannot read."""
    import array_api_strict

    return array_api_strict.asarray(array, device=array_api_strict.Device("device1"))


MAKERS = {
    "torch": torch.asarray,
    "strict": as_strict,
    "cuda": lambda array: torch.asarray(array, device="cuda"),
}
LIBRARIES = [
    "torch",
    pytest.param("strict", marks=needs_strict),
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
    ),
]


@pytest.fixture(autouse=True)
def one_thread():
    """Several are slower on arrays like these, the more so on a machine that is busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def dispatch(monkeypatch):
    """What users turn on; scikit-learn asks for SciPy's variable, which nothing here needs."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield


def assert_same_place(array: Any, like: Any) -> None:
    assert type(array) is type(like)
    assert array.device == like.device


# Both stop at gradients of 1e-11 of that at zero, where the curvature is at least alpha = 3. The
# strict library takes long for each operation, whatever its size: a strong penalty needs few.
# Losses by themselves are compared on all libraries in tests/parity.
OPTIONS: dict[str, Any] = {"alpha": 3.0, "tol": 1e-11, "standardize": True}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["logistic", "fitzpatrick_sparsemax", "sigmoid", "perceptron"])
def test_regressors(name, library, dispatch) -> None:
    make, y = MAKERS[library], targets(name, X)
    expected = ProportionRegressor(name, **OPTIONS).fit(X, y, WEIGHTS)
    model = ProportionRegressor(name, warm_start=True, **OPTIONS)
    model.fit(make(X), make(y), make(WEIGHTS))
    for attribute in ("coef_", "intercept_"):
        found = getattr(model, attribute)
        assert_same_place(found, make(X))
        np.testing.assert_allclose(to_numpy(found), getattr(expected, attribute), atol=1e-8)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-12)
    prediction = model.predict(make(X))
    assert_same_place(prediction, make(X))
    np.testing.assert_allclose(to_numpy(prediction), expected.predict(X), atol=1e-6)
    assert model.fit(make(X), make(y), make(WEIGHTS)).n_iter_ == 0
    x = X.astype(np.float32)
    single = ProportionRegressor(name, alpha=3.0).fit(make(x), make(y))
    assert str(single.predict(make(x)).dtype).endswith("float32")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("name", "k"), [("sparsemax", 4), ("fitzpatrick_logistic", 2)])
def test_classifiers(name, k, library, dispatch) -> None:
    make, y = MAKERS[library], 10 * (LABELS % k)
    expected = FitzpatrickClassifier(name, class_weight="balanced", **OPTIONS).fit(X, y)
    model = clone(expected).fit(make(X), make(y))
    np.testing.assert_allclose(to_numpy(model.coef_), expected.coef_, atol=1e-8)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        found = getattr(model, method)(make(X))
        assert_same_place(found, make(X))
        np.testing.assert_allclose(to_numpy(found), getattr(expected, method)(X), atol=1e-6)
    assert_same_place(model.classes_, make(X))
    # PyTorch's mean of right and wrong is a float32
    assert model.score(make(X), make(y)) == pytest.approx(expected.score(X, y), abs=1e-6)
    words = model.fit(make(X), WORDS).predict(make(X))  # which stay in NumPy
    np.testing.assert_array_equal(words, expected.fit(X, WORDS).predict(X))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("cls", "y", "scoring"),
    [(ProportionRegressorCV, Y, None), (FitzpatrickClassifierCV, LABELS, "squared_error")],
    ids=["regressor", "classifier"],
)
def test_searches(cls, y, scoring, library, dispatch) -> None:
    make, ones = MAKERS[library], np.ones(len(X))
    model = cls("fitzpatrick_logistic", [30.0, 300.0], tightnesses=[0.0, 1.0], scoring=scoring)
    model.set_params(cv=2, refine=1, standardize=True, tol=1e-9)
    expected = clone(model).fit(X, y, ones)
    model.fit(make(X), make(y), make(ones))
    for attribute in ("alpha_", "tightness_"):
        assert getattr(model, attribute) == getattr(expected, attribute)
    for attribute in ("scores_", "coef_"):
        found = getattr(model, attribute)
        np.testing.assert_allclose(to_numpy(found), getattr(expected, attribute), atol=1e-7)
        assert_same_place(found, make(X))
    model.set_params(refine=0).fit(
        make(X), make(y), dev=(make(X[:20]), make(y[:20]), make(ones[:20]))
    )
    np.testing.assert_allclose(
        to_numpy(model.scores_),
        expected.set_params(refine=0).fit(X, y, dev=(X[:20], y[:20])).scores_,
        atol=1e-7,
    )


def test_without_dispatch_tensors_are_as_in_scikit_learn() -> None:
    rows = torch.asarray(X), torch.asarray(LABELS)
    assert isinstance(LogisticRegression().fit(*rows).predict(rows[0]), np.ndarray)
    model = FitzpatrickClassifier().fit(*rows)
    assert isinstance(model.predict(rows[0]), np.ndarray)
    assert isinstance(model.coef_, np.ndarray)
    np.testing.assert_array_equal(model.coef_, FitzpatrickClassifier().fit(X, LABELS).coef_)


def test_predictions_need_the_place_of_the_fit(dispatch) -> None:
    x = torch.asarray(X).requires_grad_()
    model = ProportionRegressor().fit(x, torch.asarray(Y))
    assert not model.predict(x).requires_grad
    expected = r"predict\(\) must use the same namespace and the same device as X of fit"
    with pytest.raises(ValueError, match=expected):
        model.predict(X)
    with pytest.raises(ValueError, match=expected):
        ProportionRegressor().fit(X, Y).predict(x)


def test_arrays_that_cannot_be_written_to(dispatch) -> None:
    jax = pytest.importorskip("jax")
    x, y = jax.numpy.asarray(X), jax.numpy.asarray(Y)
    with pytest.raises(TypeError, match=r"can be changed in place; use np\.asarray\(X\)"):
        ProportionRegressor().fit(x, y)
    expected = ProportionRegressor().fit(np.asarray(x), np.asarray(y))
    (found,) = fit_path(x, y, "fitzpatrick_logistic", [1.0]).models
    np.testing.assert_array_equal(found.coef.astype(x.dtype), expected.coef_)


def test_bad_tensors(dispatch) -> None:
    x, y = torch.asarray(X), torch.asarray(Y)
    for bad, message in ((x * math.nan, "Input X contains NaN"), (x * 1e200, "sums of squares")):
        with pytest.raises(ValueError, match=message):
            ProportionRegressor().fit(bad, y)
        with pytest.raises(ValueError, match=message):
            fit_path(bad, y, "logistic", [1.0])
    with pytest.raises(ValueError, match="in row 0 it sums to 2, not 1"):
        ProportionRegressor().fit(x, 2 * y)
    with pytest.raises(ValueError, match="Expected 2D array"):
        fit_path(x[0], y, "logistic", [1.0])


@pytest.mark.parametrize("library", LIBRARIES)
def test_paths_of_labels_and_of_their_rows(library) -> None:
    make, rows = MAKERS[library], np.eye(4)[LABELS]
    options = {"tightness": 0.5, "tol": 1e-11, "sample_weight": WEIGHTS}
    expected = fit_path(X, LABELS, "fitzpatrick_logistic", [100.0, 10.0], **options)
    for y in (LABELS, sparse.csr_array(rows), make(rows)):
        found = fit_path(make(X), y, "fitzpatrick_logistic", [100.0, 10.0], **options)
        np.testing.assert_allclose(found.coefs, expected.coefs, atol=1e-8)
        np.testing.assert_allclose(found.intercepts, expected.intercepts, atol=1e-8)
        assert all(isinstance(model.coef, np.ndarray) for model in found.models)


# Blocks of the preconditioner: PyTorch alone has them


def torch_problem(loss, *, intercept=True):
    generator = seeded(5)
    x = generator.normal(size=(70, 6)) @ generator.normal(size=(6, 6))
    y = generator.dirichlet(np.full(5, 0.4), size=70)
    y[y < 0.1] = 0
    y /= y.sum(axis=1, keepdims=True)
    options = {"fit_intercept": intercept, "standardize": True, "tol": 1e-10, "n_threads": 1}
    weights = generator.uniform(0.5, 2.0, size=70)
    forms = np.asarray, torch.asarray
    return [penalty_path(form(x), y, get_loss(*loss), weights, **options) for form in forms]


@pytest.fixture
def cheap_blocks(monkeypatch):
    """Blocks of the preconditioner from the second Newton step on, and how often they are made."""
    made = []

    def counted(matrix, curvature, ridge):
        made.append(curvature.shape)
        return _preconditioner.block_inverse(matrix, curvature, ridge)

    def cost(matrix, n_scores):
        return 0.0 if torch.is_tensor(matrix) else math.inf

    monkeypatch.setattr(_sums, "block_cost", cost)
    monkeypatch.setattr(_sums, "block_inverse", counted)
    monkeypatch.setattr(_preconditioner, "MAX_WORK_BYTES", 8 * 70 * 7 * 2)  # two classes at a time
    return made


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "loss", [("logistic",), ("fitzpatrick_sparsemax", 2.0), ("entmax15",), ("sigmoid",)]
)
def test_blocks_lead_to_the_same_optimum(loss, intercept, cheap_blocks) -> None:
    by_numpy, by_torch = torch_problem(loss, intercept=intercept)
    expected, found = by_numpy.fit(0.01), by_torch.fit(0.01)
    assert cheap_blocks or found.n_iter == 1
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-8)
    np.testing.assert_allclose(found.intercept, expected.intercept, atol=1e-8)
    assert found.status.converged


# well conditioned blocks have inverses in float32
@pytest.mark.parametrize(("ridge", "dtype"), [(1e-1, torch.float32), (1e-9, torch.float64)])
def test_inverses_of_blocks_whose_rows_are_partly_without_curvature(ridge, dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    n, p, k = 300, 12, 40
    x, curvature = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for shape in [(n, p), (n, k)]
    )
    shares = torch.linspace(0, 1, k, dtype=torch.float64)  # of rows with curvature, by class
    chosen = torch.rand(curvature.shape, generator=generator, dtype=torch.float64) < shares
    curvature = torch.where(chosen, curvature.abs(), 0.0)
    residual = torch.randn((p, k), generator=generator, dtype=torch.float64)
    diagonal = torch.full((p,), ridge, dtype=torch.float64)
    found = _preconditioner.block_inverse(x, curvature, diagonal)(residual)
    blocks = torch.einsum("ic,ia,ib->cab", curvature, x, x) + torch.diag(diagonal)
    # blocks times the solution, which differ by eps of the dtype times their condition, and
    # by a factor of the size for the sums
    back = torch.einsum("cab,bc->ac", blocks, found)
    largest = torch.linalg.eigvalsh(blocks)[:, -1]
    error = torch.linalg.norm(back - residual, dim=0)
    bound = 8 * p * torch.finfo(dtype).eps * largest / ridge * torch.linalg.norm(residual, dim=0)
    assert bool((error <= bound).all())


def test_blocks_without_an_inverse_are_none() -> None:
    x = torch.eye(3, dtype=torch.float64)[:, :2]
    x = torch.cat([x, torch.zeros((3, 1), dtype=torch.float64)], dim=1)  # nothing to learn from
    curvature = torch.ones((3, 4), dtype=torch.float64)
    ridge = torch.asarray([1.0, 1.0, 0.0], dtype=torch.float64)
    assert _preconditioner.block_inverse(x, curvature, ridge) is None
    assert _preconditioner.block_inverse(x, curvature, ridge + 1) is not None
    twice = x[:, [0, 0, 1]]  # a singular matrix whose diagonal is not zero
    assert _preconditioner.block_inverse(twice, curvature, 0 * ridge) is None


@pytest.mark.parametrize("name", ["sigmoid", "logistic", "fitzpatrick_sparsemax"])
def test_blocks_near_the_hessian(name, cheap_blocks) -> None:
    problem = torch_problem((name,))[1]
    place, objective = problem.sums.space.place, replace(problem.objective, alpha=0.1)
    point = objective.evaluate(place(seeded(3).normal(size=(7, 5))))
    objective.curvature(point)[0](point.gradient)  # which is worth the price of the blocks
    product = objective.curvature(point)[0]
    objective.preconditioner._pairs.clear()
    inverse = objective.preconditioner.inverse(0.1)
    assert cheap_blocks
    a, b = map(place, seeded(1).normal(size=(2, 7, 5)))
    if name == "sigmoid":  # whose classes are not coupled: the blocks are the Hessian
        np.testing.assert_allclose(inverse(product(a)), a, rtol=1e-5, atol=1e-5)
        return
    # inverses may be in float32, times as much as sums over 7 features and 5 classes can cancel
    slack = 64 * torch.finfo(torch.float32).eps * float(inverse(a).norm() * b.norm())
    assert float((a * inverse(b)).sum()) == pytest.approx(float((inverse(a) * b).sum()), abs=slack)
    assert float((a * inverse(a)).sum()) > 0
    common = torch.ones_like(a)  # the same for all classes: the penalty alone
    common[-1] = 0  # which leaves out the intercept
    np.testing.assert_allclose(product(common), 0.1 * common, atol=1e-12)
    np.testing.assert_allclose(inverse(common), 10 * common, atol=1e-9)


def test_blocks_cost_nothing_that_numpy_could_pay() -> None:
    assert _preconditioner.block_cost(X, 4) == math.inf
    assert _preconditioner.block_cost(torch.asarray(X), 4) < 20
    assert _preconditioner.block_cost(torch.empty((1, 30000), device="meta"), 4) == math.inf


# The command line's --device


@pytest.mark.parametrize("name", ["cuda", "meta", "abacus"])
def test_device_that_cannot_be_used(name) -> None:
    if name == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(ValueError, match=f"PyTorch cannot use the device '{name}' here: "):
        find_device(name)


def test_devices_in_words_and_features_on_them() -> None:
    placed, words = on_device(X, None)
    assert (placed is X, words) == (True, "NumPy")
    for form in (np.asarray, sparse.csr_array):
        placed, words = on_device(form(X), "cpu")
        assert words == "PyTorch cpu"
        np.testing.assert_array_equal(placed.numpy(), X)
