"""The same problem on a PyTorch device, here the CPU, against NumPy."""

import numpy as np
import pytest
from scipy import sparse

from fitzpatrick.linear_model._base import Data
from fitzpatrick.linear_model._device import device_problem, find_device
from fitzpatrick.linear_model._fitting import Settings
from fitzpatrick.losses import get_loss

LOSSES = ("logistic", "fitzpatrick_logistic", "sparsemax", "fitzpatrick_sparsemax", "entmax15")
OTHERS = ("fitzpatrick_entmax15", "perceptron", "squared", "sigmoid")


def problems(name, k, *, intercept=True, standardize=True, make=np.asarray, tol=1e-10):
    """One problem by NumPy and by PyTorch on the CPU."""
    generator = np.random.default_rng(k)
    X = generator.normal(size=(70, 6)) @ generator.normal(size=(6, 6))
    Y = generator.dirichlet(np.full(k, 0.4), size=70)
    Y[Y < 0.1] = 0
    Y /= Y.sum(axis=1, keepdims=True)
    settings = Settings(get_loss(name), intercept, standardize, "auto", tol, 1000, 0, 1)
    X = make(X)
    return (
        Data(X, Y, k, None, False).problem(settings),
        device_problem(X, Y, settings, find_device("cpu")),
    )


@pytest.mark.parametrize("k", [4, 12])  # with the exact and with the mean curvature of the rows
@pytest.mark.parametrize("name", LOSSES + OTHERS)
def test_value_gradient_and_curvature(name, k):
    points = []
    parameters, direction = np.random.default_rng(1).normal(size=(2, 7, k))
    for problem in problems(name, k):
        objective = problem.objective.with_alpha(0.3)
        point = objective.evaluate(parameters)
        product, precondition = objective.curvature(point)
        points.append(
            (
                np.asarray(point.value),
                point.gradient,
                product(direction),
                precondition(direction),
                objective.scales(point),
            )
        )
    for expected, found in zip(*points, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(("intercept", "standardize"), [(True, True), (False, False)])
@pytest.mark.parametrize("name", LOSSES)
def test_optimum(name, intercept, standardize, make):
    by_numpy, by_torch = problems(name, 5, intercept=intercept, standardize=standardize, make=make)
    start = None
    for alpha in (10.0, 1.0, 0.3):
        expected, found = by_numpy.fit(alpha, start), by_torch.fit(alpha, start)
        np.testing.assert_allclose(found.coef, expected.coef, atol=1e-9)
        np.testing.assert_allclose(found.intercept, expected.intercept, atol=1e-9)
        assert found.result.objective == pytest.approx(expected.result.objective, rel=1e-12)
        assert found.result.status.converged
        start = expected.coef, expected.intercept


@pytest.mark.parametrize("name", ["cuda", "meta", "abacus"])
def test_device_that_cannot_be_used(name):
    import torch

    if name == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(ValueError, match=f"PyTorch cannot use the device '{name}' here: "):
        find_device(name)
