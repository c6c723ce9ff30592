"""Losses bound to targets by the GPU kernels, as linear models use them, against the core."""

import pytest
import torch

from fitzpatrick import get_loss
from fitzpatrick.engines import CoreLoss
from fitzpatrick.engines.table import find_kernel

from .conftest import ROUNDING

bound = pytest.importorskip("fitzpatrick.engines.triton.bound", reason="needs triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # there in Triton's interpreter


@pytest.mark.parametrize("tightness", [0.0, 0.5])
@pytest.mark.parametrize("name", ["logistic", "sparsemax", "entmax15"])
def test_bound_kernels_agree_with_the_core(name, tightness, generator) -> None:
    loss = get_loss(f"fitzpatrick_{name}", tightness)
    options = {"dtype": torch.float64, "generator": generator}
    theta, v = torch.randn(6, 5, **options).to(DEVICE), torch.randn(6, 5, **options).to(DEVICE)
    y = torch.rand(6, 5, **options).to(DEVICE)
    y[:, 0] = 0
    y /= y.sum(dim=1, keepdim=True)
    kernel = bound.KernelLoss(loss, y, find_kernel("triton", loss.regularizer))
    core = CoreLoss(loss, y)
    for found, expected in zip(
        kernel.value_and_gradient(theta), core.value_and_gradient(theta), strict=True
    ):
        torch.testing.assert_close(found, expected, **ROUNDING)
    torch.testing.assert_close(kernel.value(theta), core.value(theta), **ROUNDING)
    torch.testing.assert_close(kernel.y_star(theta), core.y_star(theta), **ROUNDING)
    product = kernel.hessian_operator(theta)(v)
    torch.testing.assert_close(product, core.hessian_operator(theta)(v), rtol=1e-9, atol=1e-11)
    in_place = v.clone()
    kernel.hessian_operator(theta)(in_place, in_place)
    torch.testing.assert_close(in_place, product)


def test_the_latest_answer_is_forgotten_when_scores_change(generator) -> None:
    loss = get_loss("fitzpatrick_logistic")
    theta = torch.randn(4, 3, dtype=torch.float64, generator=generator).to(DEVICE)
    y = torch.full((4, 3), 1 / 3, dtype=torch.float64, device=DEVICE)
    kernel = bound.KernelLoss(loss, y, "logistic")
    before = kernel.value(theta)
    assert kernel.value(theta) is before
    theta *= 2
    torch.testing.assert_close(kernel.value(theta), CoreLoss(loss, y).value(theta), **ROUNDING)
