"""Rows of the linear models on a GPU, by the kernels, against the core."""

import numpy as np
import pytest
import torch

from fitzpatrick import get_loss
from fitzpatrick.linear_model._device_rows import CURVATURES, DeviceRows, KernelRows

pytest.importorskip("triton", reason="the kernels need the package triton")
# the interpreter computes with NumPy, which warns where a GPU does not
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("k", [3, 40])
@pytest.mark.parametrize("name", CURVATURES)
def test_kernel_rows_are_those_of_the_core(name, k):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = np.random.default_rng(k)
    Y = generator.dirichlet(np.full(k, 0.2), size=20)
    Y[Y < 0.1] = 0
    Y /= Y.sum(axis=1, keepdims=True)
    y, theta, v = (
        torch.as_tensor(array, device=device)
        for array in (Y, *generator.normal(scale=4, size=(2, 20, k)))
    )
    results = []
    for rows in (KernelRows(name, y), DeviceRows(get_loss(name), y)):
        out = torch.empty(20, dtype=torch.float64, device=device), torch.empty_like(theta)
        results.append(
            (*rows.value_and_gradient(theta, out), rows.hessian_operator(theta)(v, v + 0))
        )
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
