"""α-entmax with any order, and with orders that are tensors and learned."""

import math

import pytest
import torch
from conftest import ROUNDING

import fitzpatrick as fp
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

# PyTorch scripts its own decompositions the first time that forward mode runs
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")

ORDERS = torch.tensor([1.0, 1.2, 1.5, 1.77, 2.0], dtype=torch.float64)[:, None]
# Tsallis loses about 1/(α − 1) units as α approaches 1, for which ROUNDING has room


def test_orders_of_rows_are_those_of_the_core(scores):
    rows = [
        fp.regularizers.Tsallis(a).link(x.numpy())
        for a, x in zip(ORDERS[:, 0].tolist(), scores, strict=True)
    ]
    expected = torch.stack([torch.as_tensor(row) for row in rows])
    torch.testing.assert_close(F.entmax(scores, ORDERS), expected, **ROUNDING)
    across = F.entmax(scores.t(), ORDERS.t(), dim=0)
    assert torch.equal(across.t(), F.entmax(scores, ORDERS))
    torch.testing.assert_close(F.entmax(scores, 1.5), F.entmax15(scores), **ROUNDING)
    one = F.entmax(scores, torch.tensor(1.0, dtype=torch.float64))
    torch.testing.assert_close(one, scores.softmax(-1), **ROUNDING)


def test_orders_of_attention_heads(generator):
    scores = torch.randn(2, 3, 4, 5, generator=generator)
    alpha = torch.tensor([1.1, 1.5, 2.0])[:, None, None].requires_grad_()
    p = F.entmax(scores, alpha)
    torch.testing.assert_close(p[:, 1], F.entmax15(scores[:, 1]), rtol=1e-5, atol=1e-6)
    (p * scores).sum().backward()
    assert alpha.grad.shape == alpha.shape
    # probability moves to large scores as α grows
    assert (alpha.grad > 0).all()
    half = F.entmax(scores.bfloat16(), alpha)
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), p, rtol=0.02, atol=0.02)


def test_derivatives(scores, generator):
    x = scores.clone().requires_grad_()
    alpha = ORDERS.clamp(1.1, 1.9).requires_grad_()
    assert torch.autograd.gradcheck(F.entmax, (x, alpha), check_forward_ad=True)
    at_one = torch.ones(5, 1, dtype=torch.float64, requires_grad=True)
    (F.entmax(scores, at_one)[:, 0]).sum().backward()
    ahead = F.entmax(scores, at_one.detach() + 1e-6)[:, 0] - F.entmax(scores, at_one.detach())[:, 0]
    torch.testing.assert_close(at_one.grad[:, 0], ahead / 1e-6, rtol=1e-4, atol=1e-5)
    (slope,) = torch.autograd.grad(F.entmax(x, alpha)[:, 0].sum(), alpha, create_graph=True)
    with pytest.raises(NotImplementedError, match="the links one"):
        slope.sum().backward()


def test_transforms(scores):
    alpha = ORDERS.clamp(1.1, 1.9)
    mapped = torch.func.vmap(F.entmax)(scores, alpha[:, 0])
    torch.testing.assert_close(mapped, F.entmax(scores, alpha), **ROUNDING)
    jacobians = [
        f(F.entmax, argnums=1)(scores, alpha) for f in (torch.func.jacrev, torch.func.jacfwd)
    ]
    torch.testing.assert_close(*jacobians, **ROUNDING)
    torch.library.opcheck(torch.ops.fitzpatrick.entmax.default, (scores, alpha.requires_grad_()))
    compiled = torch.compile(F.entmax, fullgraph=True, backend="aot_eager")
    results = []
    for function in (compiled, F.entmax):
        x, a = scores.clone().requires_grad_(), alpha.detach().requires_grad_()
        function(x, a)[:, 0].sum().backward()
        results.append((x.grad, a.grad))
    torch.testing.assert_close(*results, **ROUNDING)


@pytest.mark.parametrize(
    ("alpha", "error", "message"),
    [
        (0.9, ValueError, "alpha must be between 1 and 2, got 0.9"),
        (math.nan, ValueError, "alpha must be between 1 and 2, got nan"),
        ("1.5", TypeError, "alpha must be a number from 1 to 2, got '1.5'"),
        (True, TypeError, "alpha must be a number"),
        (torch.tensor([[1.0], [1.5], [math.nan], [2.0], [1.0]]), ValueError, "got nan"),
        (torch.tensor(3.0), ValueError, "alpha must be between 1 and 2, got 3.0"),
        (torch.tensor(1), TypeError, "alpha must hold floating-point numbers"),
        (torch.ones(4), ValueError, r"alpha of shape \(4,\) does not broadcast to \(5, 1\)"),
    ],
)
def test_bad_orders_raise(alpha, error, message, scores):
    with pytest.raises(error, match=message):
        F.entmax(scores, alpha)


def test_losses(scores):
    labels = torch.tensor([0, 3, 1, 2, 2])
    for tightness in (0.0, 0.5):
        loss = fp.FitzpatrickLoss(fp.regularizers.Tsallis(1.3), tightness)
        expected = torch.as_tensor(loss.value(labels.numpy(), scores.numpy()))
        actual = F.entmax_loss(scores, labels, 1.3, reduction="none", tightness=tightness)
        torch.testing.assert_close(actual, expected, **ROUNDING)
    torch.testing.assert_close(
        F.entmax_loss(scores, labels, label_smoothing=0.1),
        F.entmax15_loss(scores, labels, label_smoothing=0.1),
        **ROUNDING,
    )
    with pytest.raises(ValueError, match="alpha must be between 1 and 2"):
        F.entmax_loss(scores, labels, 2.5)
