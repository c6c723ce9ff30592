"""Losses of the linear models on a GPU, and class probabilities, by the kernels: the core's."""

import numpy as np
import pytest
import torch
from tests.helpers import eps, seeded
from tests.test_probabilities import draw

from fitzpatrick.engines import CoreLoss
from fitzpatrick.engines.table import find_kernel
from fitzpatrick.losses import regularizers_by_name
from fitzpatrick.regularizers import Negentropy
from fitzpatrick.torch import activations
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

bound = pytest.importorskip("fitzpatrick.engines.triton.bound", reason="needs the package triton")
from fitzpatrick.engines.triton import probabilities  # noqa: E402  # needs it, too

KernelLoss = bound.KernelLoss

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


@pytest.mark.parametrize("widest", [None, 64])
@pytest.mark.parametrize("tightness", [0.1, 1.0, 20.0, 64.0])
def test_kernel_rows(tightness: float, widest: int | None, dtype: str, monkeypatch) -> None:
    """Rows by Triton agree with the core: short, in registers, in tiles, and bad scores."""
    if widest is not None:
        monkeypatch.setattr(probabilities, "_MAX_WIDTH", widest)
        monkeypatch.setattr(probabilities, "_TILE", widest // 2)
    plan = probabilities.plan_probabilities.__wrapped__  # which remembers nothing
    monkeypatch.setattr(probabilities, "plan_probabilities", plan)
    rng = seeded(13)
    for k in (1, 2, 10, 33, 300) if widest is None else (100,):
        theta = draw(rng, 20, k) * rng.choice([1.0, 20.0], (20, 1))
        theta[3], theta[7, -1] = np.nan, np.inf
        theta[9] = -np.inf
        scores = torch.tensor(theta.astype(dtype))
        expected = Negentropy().solve_probabilities(scores.double(), tightness)
        found = probabilities.probabilities(scores, tightness)
        assert found.dtype == scores.dtype
        # p and c/ω are exponentials of numbers up to 708, in float32 88, which are rounded
        rtol = (1600 if dtype == "float64" else 200) * eps(dtype)
        atol = 1e-300 + np.finfo(dtype).tiny * 1e3
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
    columns = torch.tensor(rng.normal(size=(10, 6)).astype(dtype)).T
    expected = Negentropy().solve_probabilities(columns.double(), tightness)
    rtol = 128 * eps(dtype)  # e^c and e^(log p) are rounded
    np.testing.assert_allclose(probabilities.probabilities(columns, tightness), expected, rtol=rtol)


def test_pytorch_by_the_kernel(monkeypatch) -> None:
    """Values by the kernel, derivatives of both orders by the formulas, along any axis."""
    x = torch.tensor(seeded(15).normal(size=(2, 3, 2)), requires_grad=True)
    half = x.detach().to(torch.bfloat16)
    expected = F.fitzpatrick_logistic_probabilities(x, 0.5, dim=1)
    rounded = F.fitzpatrick_logistic_probabilities(half, 0.5, dim=1)
    monkeypatch.setattr(activations, "has_probability_kernel", lambda *_: True)
    found = F.fitzpatrick_logistic_probabilities(x, 0.5, dim=1)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=0)
    weights = torch.tensor(seeded(16).normal(size=x.shape))
    ours, theirs = (torch.autograd.grad(q, x, weights)[0] for q in (found, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-15)
    by_kernel = lambda x: F.fitzpatrick_logistic_probabilities(x, 0.5, dim=1)  # noqa: E731
    assert torch.autograd.gradgradcheck(by_kernel, (x[:1],), atol=1e-5)
    torch.testing.assert_close(by_kernel(half), rounded)
