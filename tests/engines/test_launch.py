"""The launchers of Triton's kernels take rows and weights however they lie."""

from typing import Any

import pytest

pytest.importorskip("triton")

import torch

from fitzpatrick.engines.triton import entry_launch, launch, link_launch
from tests.interpreter import speed_up_interpreter

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
K = 8  # two or four entries at once, if rows begin at multiples of them
speed_up_interpreter()


def draw(*shape: int) -> Any:
    generator = torch.Generator().manual_seed(len(shape))
    return torch.randn(shape, generator=generator).to(DEVICE)


def moved(x: Any) -> Any:
    """The same rows one entry later, and one entry further apart."""
    wide = torch.full((len(x), x.shape[1] + 1), torch.nan, dtype=x.dtype, device=x.device)
    wide[:, 1:] = x
    return wide[:, 1:]


@pytest.mark.parametrize("alpha", [1.3, 2.0])
def test_links_of_rows_that_lie_anyhow(alpha: float) -> None:
    theta, upstream = draw(5, K), draw(5, K).flip(0)
    p = link_launch.link(theta, alpha)
    assert torch.equal(link_launch.link(moved(theta), alpha), p)
    gradient, _ = link_launch.link_gradient(p, upstream, alpha)
    for given in ((moved(p), upstream), (p, moved(upstream)), (moved(p), moved(upstream))):
        torch.testing.assert_close(link_launch.link_gradient(*given, alpha)[0], gradient)


@pytest.mark.parametrize("omega", ["logistic", "sparsemax"])
def test_losses_of_rows_that_lie_anyhow(omega: str) -> None:
    theta, y = draw(5, K), torch.softmax(draw(5, K).flip(0), -1)
    for target, others in ((y, [moved(y)]), (torch.arange(5, device=DEVICE), [])):
        expected = launch.launch_loss(theta, target, 1, omega, 0.5, -1)
        for other in (target, *others):
            for x in (theta, moved(theta)):
                found = launch.launch_loss(x, other, 1, omega, 0.5, -1)
                torch.testing.assert_close(found, expected)
                written = x.clone() if x is theta else moved(theta)
                in_place = launch.launch_loss(written, other, 1, omega, 0.5, -1, in_place=True)
                assert in_place[1] is written
                torch.testing.assert_close(in_place, expected)


@pytest.mark.parametrize("shape", [(), (4,), (3, 1), (3, 4), (2, 1, 1), (1, 3, 1), (2, 3, 4)])
def test_weights_of_any_shape(shape: tuple[int, ...]) -> None:
    theta, weight = draw(2, 3, 4), draw(*shape).abs() + 1
    y = torch.sigmoid(draw(2, 3, 4).flip(0))
    call = entry_launch.EntryCall("sigmoid", 0.5, is_summed=False)
    plain = entry_launch.entry_loss(theta, y, None, None, 2, call)
    found = entry_launch.entry_loss(theta, y, weight.expand(theta.shape), None, 2, call)
    for one, other in zip(found, plain, strict=True):
        torch.testing.assert_close(one, weight * other)
