"""The same problem on a PyTorch device, here the CPU, against NumPy."""

import math

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("torch")

import torch

from fitzpatrick.linear_model import _device, fit_path
from fitzpatrick.linear_model._base import Data
from fitzpatrick.linear_model._device import device_problem, find_device
from fitzpatrick.linear_model._problem import FitSettings
from fitzpatrick.losses import get_loss

LOSSES = (
    ("logistic", None),
    ("fitzpatrick_logistic", None),
    ("fitzpatrick_logistic", 0.5),
    ("sparsemax", None),
    ("fitzpatrick_sparsemax", 2.0),
    ("entmax15", None),
)
OTHERS = (("fitzpatrick_entmax15", None), ("perceptron", None), ("squared", None))
OTHERS += (("sigmoid", None), ("fitzpatrick_sigmoid", 0.5))


@pytest.fixture(autouse=True)
def one_thread():
    """Several are slower on arrays like these, the more so on a machine that is busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def problems(loss, k, *, intercept=True, standardize=True, make=np.asarray, tol=1e-10):
    """One problem by NumPy and by PyTorch on the CPU."""
    generator = np.random.default_rng(k)
    X = generator.normal(size=(70, 6)) @ generator.normal(size=(6, 6))
    Y = generator.dirichlet(np.full(k, 0.4), size=70)
    Y[Y < 0.1] = 0
    Y /= Y.sum(axis=1, keepdims=True)
    settings = FitSettings(get_loss(*loss), intercept, standardize, tol=tol, n_threads=1)
    data = Data(make(X), Y, k, None, binary=False)
    return data.problem(settings, data.design(settings)), device_problem(data, settings, "cpu")


@pytest.mark.parametrize("k", [4, 12])  # with the exact and with the mean curvature of the rows
@pytest.mark.parametrize("loss", LOSSES + OTHERS)
def test_value_gradient_and_curvature(loss, k):
    points = []
    parameters, direction = np.random.default_rng(1).normal(size=(2, 7, k))
    for problem in problems(loss, k):
        objective, design = problem.objective.with_alpha(0.3), problem.design
        point = objective.evaluate(design.place(parameters))
        product, precondition = objective.curvature(point)
        points.append(
            (
                np.asarray(point.value),
                design.fetch(point.gradient),
                design.fetch(product(design.place(direction))),
                design.fetch(precondition(design.place(direction))),
                objective.scales(point),
            )
        )
    for expected, found in zip(*points, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("intercept", "standardize", "make"),
    [(True, True, np.asarray), (False, False, sparse.csr_array)],
)
@pytest.mark.parametrize("loss", LOSSES)
def test_optimum(loss, intercept, standardize, make):
    by_numpy, by_torch = problems(loss, 5, intercept=intercept, standardize=standardize, make=make)
    start = None
    for alpha in (10.0, 1.0, 0.3):
        expected, found = by_numpy.fit(alpha, start), by_torch.fit(alpha, start)
        np.testing.assert_allclose(found.coef, expected.coef, atol=1e-9)
        np.testing.assert_allclose(found.intercept, expected.intercept, atol=1e-9)
        assert found.objective == pytest.approx(expected.objective, rel=1e-12)
        assert found.status.converged
        start = expected.coef, expected.intercept


@pytest.fixture
def cheap_blocks(monkeypatch):
    """Blocks of the preconditioner from the second Newton step on, and how often they are made."""
    made = []
    whole = _device.DeviceDesign.block_inverse

    def counted(self, curvature, ridge):
        made.append(curvature.shape)
        return whole(self, curvature, ridge)

    monkeypatch.setattr(_device.DeviceDesign, "block_cost", 0.0)
    monkeypatch.setattr(_device.DeviceDesign, "block_inverse", counted)
    monkeypatch.setattr(_device, "MAX_WORK_BYTES", 8 * 70 * 7 * 2)  # two classes at a time
    return made


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [*LOSSES, ("sigmoid", None)])
def test_blocks_lead_to_the_same_optimum(loss, intercept, cheap_blocks):
    by_numpy, by_torch = problems(loss, 5, intercept=intercept, tol=1e-10)
    expected, found = by_numpy.fit(0.01), by_torch.fit(0.01)
    assert cheap_blocks or found.n_iter == 1
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-8)
    np.testing.assert_allclose(found.intercept, expected.intercept, atol=1e-8)
    assert found.status.converged


def block_preconditioner(name, alpha):
    """Hessian products and the inverse of the blocks at some point, on NumPy arrays."""
    problem = problems((name,), 5)[1]
    place, fetch = problem.design.place, problem.design.fetch
    objective = problem.objective.with_alpha(alpha)
    point = objective.evaluate(place(np.random.default_rng(3).normal(size=(7, 5))))
    product, _ = objective.curvature(point)
    product(point.gradient)  # which is worth the price of the blocks
    product, inverse = objective.curvature(point)
    objective._memory = objective._empty_memory()
    inverse = objective._inverse()
    return lambda v: fetch(product(place(v))), lambda r: fetch(inverse(place(r)))


def test_blocks_are_the_hessian_where_classes_are_not_coupled(cheap_blocks):
    product, inverse = block_preconditioner("sigmoid", 0.1)
    v = np.random.default_rng(1).normal(size=(7, 5))
    np.testing.assert_allclose(inverse(product(v)), v, rtol=1e-5, atol=1e-5)
    assert cheap_blocks


@pytest.mark.parametrize("name", ["logistic", "fitzpatrick_sparsemax"])
def test_blocks_of_coupled_classes(name, cheap_blocks):
    product, inverse = block_preconditioner(name, 0.1)
    assert cheap_blocks
    a, b = np.random.default_rng(1).normal(size=(2, 7, 5))
    assert np.vdot(a, inverse(b)) == pytest.approx(np.vdot(inverse(a), b))
    assert np.vdot(a, inverse(a)) > 0
    common = np.ones((7, 5))  # the same for all classes: the penalty alone
    common[-1] = 0  # which leaves out the intercept
    np.testing.assert_allclose(product(common), 0.1 * common, atol=1e-12)
    np.testing.assert_allclose(inverse(common), 10 * common, atol=1e-9)


def test_blocks_save_products(monkeypatch):
    """Features of a weak penalty whose curvature differs from class to class."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(150, 20)) * np.exp(generator.normal(size=(150, 1)))
    Y = np.eye(6)[np.argmax(X @ generator.normal(size=(20, 6)), axis=1)]
    settings = FitSettings(get_loss("logistic"), fit_intercept=False, n_threads=1)
    data = Data(X, Y, 6, None, binary=False)
    products = []
    for cost in (math.inf, 0.0):
        monkeypatch.setattr(_device.DeviceDesign, "block_cost", cost)
        problem = device_problem(data, settings, "cpu")
        products.append(0)
        scores = problem.design.scores

        def counted(parameters, out, scores=scores):
            products[-1] += 1
            return scores(parameters, out)

        problem.design.scores = counted
        assert problem.fit(0.01).status.converged
    assert products[1] < 0.7 * products[0]


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_path_of_labels_and_of_their_rows(form, weighted):
    generator = np.random.default_rng(0)
    X, labels = generator.normal(size=(60, 4)), generator.integers(0, 3, 60)
    weights = generator.integers(0, 3, 60).astype(float) if weighted else None
    options = {"tightness": 0.5, "sample_weight": weights, "tol": 1e-10}
    by_numpy = fit_path(X, labels, "fitzpatrick_logistic", [10.0, 1.0], **options)
    for Y in (labels, form(np.eye(3)[labels])):
        found = fit_path(form(X), Y, "fitzpatrick_logistic", [10.0, 1.0], device="cpu", **options)
        np.testing.assert_allclose(found.coefs, by_numpy.coefs, atol=1e-8)
        np.testing.assert_allclose(found.intercepts, by_numpy.intercepts, atol=1e-8)


@pytest.mark.parametrize("name", ["cuda", "meta", "abacus"])
def test_device_that_cannot_be_used(name):
    if name == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(ValueError, match=f"PyTorch cannot use the device '{name}' here: "):
        find_device(name)
