"""Losses of the linear models on a GPU, by the kernels, against the core."""

import numpy as np
import pytest
import torch
from tests.helpers import seeded

from fitzpatrick import FitzpatrickLoss
from fitzpatrick.engines import CoreLoss
from fitzpatrick.engines.table import find_kernel
from fitzpatrick.losses import regularizers_by_name

bound = pytest.importorskip("fitzpatrick.engines.triton.bound", reason="needs the package triton")
KernelLoss = bound.KernelLoss
# the interpreter computes with NumPy, which warns where a GPU does not
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

KERNELS = {
    name: kernel
    for name, omega in regularizers_by_name().items()
    if omega.is_coupled and (kernel := find_kernel("triton", omega)) is not None
}


def test_entmax15_has_a_kernel():
    assert {"logistic", "sparsemax", "entmax15"} <= KERNELS.keys()


@pytest.mark.parametrize("tightness", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("k", [3, 40])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compute_what_the_core_does(name, k, tightness):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = seeded(k)
    Y = generator.dirichlet(np.full(k, 0.2), size=20)
    Y[Y < 0.1] = 0
    Y /= Y.sum(axis=1, keepdims=True)
    y, theta, v = (
        torch.as_tensor(array, device=device)
        for array in (Y, *generator.normal(scale=4, size=(2, 20, k)))
    )
    loss = FitzpatrickLoss(regularizers_by_name()[name], tightness)
    results = []
    for one in (
        KernelLoss(loss.regularizer, loss.tightness, y, KERNELS[name]),
        CoreLoss(loss.regularizer, loss.tightness, y),
    ):
        out = torch.empty(20, dtype=torch.float64, device=device), torch.empty_like(theta)
        hessian = one.hessian_operator(theta)
        results.append((*one.value_and_gradient(theta, out), one.y_star(theta), hessian(v)))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("tightness", [0.0, 1.0])
def test_kernels_see_the_kinks_around(tightness):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = seeded(0)
    Y, scores = generator.dirichlet(np.ones(7), size=20), generator.normal(size=(20, 7))
    y, theta = torch.as_tensor(Y, device=device), torch.as_tensor(scores, device=device)
    reach = torch.linspace(0, 2, 20, dtype=torch.float64, device=device)
    loss = FitzpatrickLoss(regularizers_by_name()["sparsemax"], tightness)
    found = KernelLoss(loss.regularizer, loss.tightness, y, "sparsemax").hessian_operator(
        theta, reach
    )
    expected = CoreLoss(loss.regularizer, loss.tightness, y).hessian_operator(theta, reach)
    torch.testing.assert_close(found.d, expected.d, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(found.total, expected.total, rtol=1e-11, atol=1e-11)


def test_scores_that_were_written_to_are_solved_anew():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    y = torch.eye(3, dtype=torch.float64, device=device)
    theta = torch.zeros_like(y)
    loss = KernelLoss(regularizers_by_name()["logistic"], 1.0, y, "logistic")
    before = loss.hessian_operator(theta).d
    theta += y
    assert not torch.equal(loss.hessian_operator(theta).d, before)
