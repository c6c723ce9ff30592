"""Small batches on a CPU take the shortest way to compiled rows, and it leads to the same place."""

import functools
import math

import pytest
import torch
from conftest import CLASS_LOSSES, ROUNDING

from fitzpatrick.torch import _reference
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

pytest.importorskip("numba")

COMPILED = [name for name in CLASS_LOSSES if name != "perceptron"]
LABELS = torch.tensor([3, 0, 1, 1, 2])
# the compiled rows compute in float64 and round the result; the core adds k + n rounding errors
CLOSE = {torch.float32: {"rtol": 1e-5, "atol": 1e-6}, torch.float64: ROUNDING}


@pytest.fixture
def few(monkeypatch):
    """What the shortest way returned, call by call."""
    returned, compute = [], _reference.compute_few_labels

    def spy(*arguments):
        returned.append(compute(*arguments))
        return returned[-1]

    monkeypatch.setattr(_reference, "compute_few_labels", spy)
    return returned


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", COMPILED)
def test_the_shortest_way_is_the_general_one(name, dtype, few, scores):
    loss = getattr(F, f"{name}_loss")
    for reduction in ("mean", "sum"):
        results = []
        for options in ({}, {"engine": "reference"}):
            x = scores.to(dtype).requires_grad_()
            value = loss(x, LABELS, reduction=reduction, **options)
            (slopes,) = torch.autograd.grad(3 * value, x, retain_graph=True)
            (again,) = torch.autograd.grad(value, x, create_graph=True)
            (second,) = torch.autograd.grad((again * scores).sum(), x)
            results.append((value.detach(), slopes, again.detach(), second))
        torch.testing.assert_close(*results, **CLOSE[dtype])
        with torch.no_grad():
            assert torch.equal(loss(x, LABELS, reduction=reduction), results[0][0])
    assert len(few) == 4
    assert all(value is not None for value in few)


@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "sparsemax"])
def test_rows_that_are_not_for_it_go_the_general_way(name, few, scores):
    loss = getattr(F, f"{name}_loss")
    masked = scores.clone()
    masked[0, 1] = -math.inf
    odd = torch.tensor([3, -100, 1, 1, 2]), torch.tensor([3, 9, 1, 1, 2])
    for x, target, options in (
        (scores.t().contiguous().t(), LABELS, {}),
        (masked, LABELS, {}),
        (masked + math.inf, LABELS, {}),
        (scores, odd[0], {}),
        (scores, odd[1], {"validate": False}),
    ):
        expected = loss(x, target, engine="reference", **options)
        actual = loss(x, target, **options)
        torch.testing.assert_close(actual, expected, equal_nan=True, **ROUNDING)
    with pytest.raises(ValueError, match="target 9 at 1 is out of range"):
        loss(scores, odd[1])
    assert few[0] is None
    assert few[-3:] == [None, None, None]
    count = len(few)
    loss(scores, LABELS, ignore_index=1)
    loss(scores, LABELS, label_smoothing=0.1)
    loss(scores.half(), LABELS)
    torch.func.grad(loss)(scores, LABELS)
    loss(scores, LABELS.int())
    assert len(few) == count


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(6, 4), (700, 200)], ids=str)
@pytest.mark.parametrize("name", ["logistic", "sparsemax", "entmax15", "entmax13", "orders"])
def test_compiled_jacobians_are_those_of_the_formulas(name, shape, dtype, few, generator):
    """At masked rows, rows of NaN, and upstream gradients that are expanded or transposed."""
    orders = torch.linspace(1, 2, shape[0], dtype=dtype)[:, None]
    number = {"entmax13": 1.3, "orders": orders.requires_grad_()}.get(name)
    link = getattr(F, name, None) or functools.partial(F.entmax, alpha=number)
    scores = torch.randn(shape, dtype=torch.float64, generator=generator).to(dtype)
    scores[1] = math.nan
    mask = torch.rand(shape, generator=generator) < 0.7
    mask[2] = False
    upstream = torch.randn(shape[::-1], dtype=torch.float64, generator=generator).to(dtype).t()
    for v in (upstream, upstream[:, :1].expand(shape)):
        results = []
        for is_differentiated in (False, True):  # the formulas are for those who go on
            x = scores.clone().requires_grad_()
            p = link(x, mask=mask)
            leaves = [x, orders] if name == "orders" else [x]
            results.append(torch.autograd.grad(p, leaves, v, create_graph=is_differentiated))
        # the formulas add k terms of the dtype
        tolerance = 4 * shape[1] * torch.finfo(dtype).eps
        torch.testing.assert_close(*results, rtol=tolerance, atol=tolerance, equal_nan=True)
        assert not results[0][0][2].any()
        assert results[0][0][1].isnan().any()


def test_jacobians_are_compiled_for_the_dtypes_that_compiled_rows_have(scores):
    p = F.sparsemax(scores)
    assert _reference.compute_link_product(p, scores, "sparsemax") is not None
    assert _reference.compute_link_product(p.half(), scores.half(), "sparsemax") is None
    assert _reference.compute_link_product(p, scores.float(), "sparsemax") is None
    assert _reference.compute_link_product(p, scores, "perceptron") is None
