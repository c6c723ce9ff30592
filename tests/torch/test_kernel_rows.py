"""Losses of the linear models on a GPU, by the kernels, against the core."""

import numpy as np
import pytest
import torch
from tests.helpers import seeded

from fitzpatrick.engines import CoreLoss
from fitzpatrick.engines.table import find_kernel
from fitzpatrick.losses import regularizers_by_name

bound = pytest.importorskip("fitzpatrick.engines.triton.bound", reason="needs the package triton")
KernelLoss = bound.KernelLoss
# the interpreter computes with NumPy, which warns where a GPU does not
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KERNELS = {
    name: kernel
    for name, omega in regularizers_by_name().items()
    if omega.is_coupled and (kernel := find_kernel("triton", omega)) is not None
}


@pytest.mark.parametrize("tightness", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("name", ["logistic", "sparsemax", "entmax15"])
def test_kernels_compute_what_the_core_does(name, tightness):
    """Losses, gradients, maximizers and Hessian products; for sparsemax, the kinks around."""
    k, generator, omega = 40, seeded(1), regularizers_by_name()[name]
    Y = generator.dirichlet(np.full(k, 0.2), size=20)
    Y[Y < 0.1] = 0
    Y /= Y.sum(axis=1, keepdims=True)
    y, theta, v = (
        torch.as_tensor(array, device=DEVICE)
        for array in (Y, *generator.normal(scale=4, size=(2, 20, k)))
    )
    reach = torch.linspace(0, 2, 20, dtype=torch.float64, device=DEVICE)
    results = []
    for one in (KernelLoss(omega, tightness, y, KERNELS[name]), CoreLoss(omega, tightness, y)):
        out = torch.empty(20, dtype=torch.float64, device=DEVICE), torch.empty_like(theta)
        hessian = one.hessian_operator(theta)
        mean = one.hessian_operator(theta, reach if name == "sparsemax" else None)
        values = *one.value_and_gradient(theta, out), one.y_star(theta), hessian(v)
        results.append((*values, mean.d, mean.total))
    torch.testing.assert_close(*results, rtol=1e-11, atol=1e-11)


def test_scores_that_were_written_to_are_solved_anew():
    y = torch.eye(3, dtype=torch.float64, device=DEVICE)
    theta = torch.zeros_like(y)
    loss = KernelLoss(regularizers_by_name()["logistic"], 1.0, y, "logistic")
    before = loss.hessian_operator(theta).d
    theta += y
    assert not torch.equal(loss.hessian_operator(theta).d, before)
