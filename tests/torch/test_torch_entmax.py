"""α-entmax, normmax, budget: values, derivatives, masks, modules, ONNX; and by kernels."""

import functools
import warnings

import mpmath
import numpy as np
import pytest
import torch
from conftest import assert_compiles, every_engine
from torch.autograd import gradcheck, gradgradcheck

import fitzpatrick as fp
from fitzpatrick.regularizers.tsallis import Tsallis, entmax_link
from fitzpatrick.torch import (
    Budget,
    Entmax,
    Entmax15,
    EntmaxLoss,
    Normmax,
    NormmaxLoss,
    Sparsemax,
    _entmax,
)
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit


def draw(shape, dtype=torch.float64, seed=0):
    return torch.randn(
        shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)


@every_engine
def test_each_row_has_its_own_alpha(engine):
    alpha = torch.tensor([1.0, 1 + 1e-7, 1.1, 1.5, 1.7, 2.0], dtype=torch.float64)
    x = 3 * draw((6, 2, 7))
    p = F.entmax(x, alpha.reshape(6, 1, 1), engine=engine)
    for rows, scores, a in zip(p, x, alpha, strict=True):
        torch.testing.assert_close(rows, F.entmax(scores, float(a)), rtol=1e-11, atol=1e-13)


# bfloat16 is computed in float32, and rounded once
PROMISED = {torch.float64: (1e-13, 2**-50), torch.float32: (1e-5, 2**-21)}
PROMISED[torch.bfloat16] = (2**-8, 2**-21)


@pytest.mark.parametrize("dtype", PROMISED)
def test_two_thousand_orders_keep_the_promise(dtype):
    """Links, losses and gradients; tests/test_entmax.py compares the core with mpmath."""
    n, k = 2000, 5
    alpha, labels = 1 + torch.logspace(-15, 0, n, dtype=torch.float64), torch.arange(n) % k
    alpha[0] = 1.05
    scales = torch.logspace(-2, 1.5, 7, dtype=torch.float64)[torch.arange(n) % 7, None]
    x = (scales * draw((n, k))).to(dtype)
    exact = torch.from_numpy(entmax_link(x.double().numpy(), alpha[:, None].numpy()))
    rtol, atol = PROMISED[dtype]

    def check(found, expected, y=0.0):
        assert found.dtype == dtype
        # a gradient is as exact as its p promises to be, and rounded
        size = torch.maximum(expected.abs(), (expected + y).abs())
        assert ((found.double() - expected).abs() <= rtol * size + atol).all()

    check(F.entmax(x, alpha[:, None]), exact)
    x.requires_grad_()
    assert (F.entmax_loss(x, x.argmax(1), alpha, reduction="none") >= 0).all()
    rows = F.entmax_loss(x, labels, alpha, reduction="none")
    y = torch.eye(k, dtype=torch.float64)[labels]
    check(torch.autograd.grad(rows.sum(), x)[0], exact - y, y)
    for i in range(0, n, 20):
        loss, row = fp.FenchelYoungLoss(Tsallis(float(alpha[i]))), x[i].detach().double()
        check(rows[i], loss.value(labels[i], row))


def test_orders_out_of_range_are_nan_where_values_are_not_looked_at():
    alpha = torch.tensor([0.5, 1.0, 2.0, 2.5, torch.nan])
    p = torch.func.vmap(F.entmax)(draw((5, 4), torch.float32), alpha[:, None])
    assert p.isnan().all(1).tolist() == [True, False, False, True, True]
    assert not p[1:3].isnan().any()


def test_derivatives_of_kernels():
    x = draw((3, 4)).requires_grad_()
    alpha = torch.tensor([[1.2], [1.5], [1.9]], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x, alpha: F.entmax(x, alpha, engine="triton"), (x, alpha))


@every_engine
def test_the_derivative_in_alpha_has_a_limit_at_one(engine):
    x, v = draw((3, 6)), draw((3, 6), seed=1)
    alpha = torch.ones(3, 1, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad((F.entmax(x, alpha, engine=engine) * v).sum(), alpha)
    step = 1e-6
    ahead = F.entmax(x, 1 + step) - F.entmax(x, 1.0)
    # of first order in the step
    torch.testing.assert_close(slope[:, 0], (ahead * v).sum(-1) / step, rtol=1e-4, atol=20 * step)


@every_engine
@pytest.mark.parametrize("name", ["sparsemax", "entmax15", "logistic"])
@pytest.mark.parametrize("shape", [(2, 1, 1, 5), (4, 5), (1, 5), (2, 3, 4, 5)])
def test_masks_of_any_shape(engine, name, shape):
    x = draw((2, 3, 4, 5)).requires_grad_()
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(3)) < 0.6
    mask[..., 2] = True
    mask.reshape(-1, 5)[0] = False
    function = getattr(F, name)
    p = function(x, mask=mask, engine=engine)
    expected = function(x.masked_fill(~mask, -torch.inf))
    empty = ~mask.expand(x.shape).any(-1, keepdim=True)
    expected = torch.where(empty, 0.0, expected)
    torch.testing.assert_close(p, expected, rtol=1e-12, atol=1e-14)
    (slope,) = torch.autograd.grad((p * draw(p.shape, seed=5)).sum(), x)
    assert slope.isfinite().all()
    assert (slope[~mask.expand(x.shape)] == 0).all()


@every_engine
@pytest.mark.parametrize("masked", [False, True])
def test_classes_in_any_axis(engine, masked):
    x = draw((2, 6, 20)).requires_grad_()
    mask = draw((6, 1), seed=2) > -1 if masked else None
    p = F.entmax15(x, 1, mask=mask, engine=engine)
    moved = F.entmax15(x.movedim(1, -1), mask=None if mask is None else mask.T)
    torch.testing.assert_close(p, moved.movedim(-1, 1), rtol=1e-12, atol=1e-14)
    v = draw(p.shape, seed=4)
    (one,) = torch.autograd.grad(p, x, v)
    (other,) = torch.autograd.grad(moved.movedim(-1, 1), x, v)
    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_rows_of_nothing_but_minus_infinity_are_nan_without_a_mask():
    assert F.sparsemax(torch.full((1, 3), -torch.inf)).isnan().all()


LINKS = {"entmax": F.entmax, "normmax": F.normmax, "budget": F.budget}
links = pytest.mark.parametrize(
    ("name", "number"), [("entmax", 1.3), ("normmax", 1.7), ("budget", 2.4)]
)


@links
def test_transforms(name, number):
    x = draw((4, 5))
    link = LINKS[name]
    jacobian = torch.func.vmap(torch.func.jacrev(lambda r: link(r, number)))(x)
    forward = torch.func.vmap(torch.func.jacfwd(lambda r: link(r, number)))(x)
    torch.testing.assert_close(jacobian, forward)
    # rows of the Jacobian sum to zero, as the entries have one sum: 5 of them, each below 2
    assert jacobian.sum(1).abs().max() < 100 * torch.finfo(x.dtype).eps
    given = x, torch.full((4, 1), number, dtype=x.dtype)
    directions = draw((4, 5), seed=1), draw((4, 1), seed=2)
    slopes = torch.func.jacrev(link, (0, 1))(*given)
    expected = sum((j * d).sum((-1, -2)) for j, d in zip(slopes, directions, strict=True))
    torch.testing.assert_close(torch.func.jvp(link, given, directions)[1], expected)


@links
def test_compiled_graphs_are_whole(name, number):
    x, parameter = draw((3, 5)).requires_grad_(), torch.full((3, 1), number, dtype=torch.float64)
    parameter.requires_grad_()
    link = LINKS[name]

    def function(x, parameter):
        return (link(x, parameter) * F.sparsemax(x) + link(x, number) ** 2).sum()

    assert_compiles(function, x, parameter)


@links
def test_two_derivatives_in_scores_and_parameter(name, number):
    x = draw((3, 4)).requires_grad_()
    parameter = torch.tensor([[1.2], [number], [1.9]], dtype=torch.float64, requires_grad=True)
    assert gradcheck(LINKS[name], (x, parameter))
    assert gradgradcheck(LINKS[name], (x, parameter))


def exact_root(excess, low, high):
    """Where a falling function changes its sign, to 160 bits."""
    for _ in range(160):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) >= 0 else (low, middle)
    return low


@mpmath.workdps(60)
def exact_budget(x, budget):
    x = [mpmath.mpf(float(score)) for score in x]

    def clipped(tau):
        return [min(max(score - tau, 0), 1) for score in x]

    tau = exact_root(lambda tau: sum(clipped(tau)) - budget, min(x) - 1, max(x))
    return [float(entry) for entry in clipped(tau)]


@mpmath.workdps(60)
def exact_normmax(x, alpha):
    x = [mpmath.mpf(float(score)) for score in x]
    q = mpmath.mpf(alpha) / (mpmath.mpf(alpha) - 1)

    def powers(tau, exponent):
        return [max(score - tau, 0) ** exponent for score in x]

    tau = exact_root(lambda tau: sum(powers(tau, q)) - 1, max(x) - 1, max(x))
    u = powers(tau, q - 1)
    return [float(entry / sum(u)) for entry in u]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4, 1e8])
def test_scores_of_any_size_are_exact(scale, dtype):
    x = (scale * draw((6, 7))).to(dtype)
    x[0, 0] = x[0].max() + 1e6  # others keep their digits beside it
    x[1:3, 2] = -torch.inf
    eps = torch.finfo(dtype).eps
    for number in (0.5, 2.0, 6.5):  # of the last one, six classes are all ones
        expected = [exact_budget(row[row > -torch.inf], number) for row in x]
        for row, kept, p in zip(x, F.budget(x, number), expected, strict=True):
            # differences of scores, the sum of 7 entries and τ are rounded
            np.testing.assert_allclose(kept[row > -torch.inf], p, rtol=0, atol=20 * eps)
            assert (kept[row == -torch.inf] == 0).all()
    for number in (1.2, 2.0, 7.0):
        found = F.normmax(x, number)
        for row, p in zip(x, found, strict=True):
            kept = row > -torch.inf
            # powers up to α/(α − 1) = 6 of numbers with some rounding errors, and 7 that are summed
            bound = {"rtol": 200 * eps, "atol": 200 * eps}
            np.testing.assert_allclose(p[kept], exact_normmax(row[kept], number), **bound)
            assert (p[~kept] == 0).all()


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_masks_of_links_with_a_parameter(link):
    x, mask = draw((3, 2, 5)).requires_grad_(), torch.tensor([True, True, False, True, True])
    kept = link(x[..., mask], 1.5)
    p = link(x, 1.5, mask=mask)
    torch.testing.assert_close(p[..., mask], kept)
    torch.testing.assert_close(link(x.movedim(-1, 1), 1.5, 1, mask=mask[:, None]).movedim(1, -1), p)
    (slope,) = torch.autograd.grad((p * draw(p.shape, seed=5)).sum(), x)
    assert slope.isfinite().all()
    assert (slope[..., ~mask] == 0).all()
    number = torch.tensor([1.5], dtype=x.dtype, requires_grad=True)
    nothing = link(x, number, mask=torch.zeros(5, dtype=torch.bool))
    assert (nothing == 0).all()
    slopes = torch.autograd.grad(nothing.sum(), (x, number), create_graph=True)
    bends = torch.autograd.grad(slopes[0].sum() + slopes[1].sum(), (x, number), retain_graph=True)
    ahead = torch.func.jvp(
        functools.partial(link, mask=torch.zeros(5, dtype=torch.bool)),
        (x.detach(), number.detach()),
        (x.detach(), number.detach()),
    )[1]
    for zeros in (*slopes, *bends, *torch.autograd.grad(nothing.sum(), (x, number)), ahead):
        assert (zeros == 0).all()


def test_a_loss_has_derivatives_in_a_tensor_of_orders():
    x, labels = draw((4, 5)).requires_grad_(), torch.tensor([0, 2, -100, 4])
    alpha = torch.tensor([1.0, 1.2, 1.5, 2.0], dtype=torch.float64)
    weight = torch.tensor([1.0, 2.0, 0.5, 1.0, 3.0]).double()
    for options in ({}, {"weight": weight}, {"weight": weight, "label_smoothing": 0.1}):
        rows = F.entmax_loss(x, labels, alpha, reduction="none", **options)
        for i in range(4):
            expected = F.entmax_loss(
                x[i : i + 1], labels[i : i + 1], float(alpha[i]), reduction="none", **options
            )
            # sums of 5 terms of size one, which cancel
            torch.testing.assert_close(rows[i : i + 1], expected, rtol=1e-13, atol=1e-14)
        total = F.entmax_loss(x, labels, torch.full((4,), 1.5).double(), **options)
        torch.testing.assert_close(total, F.entmax15_loss(x, labels, **options))
    masked = x.detach().clone()
    masked[:, 3], masked[2] = -torch.inf, torch.nan  # a class of no label, and the ignored row
    loss = F.entmax_loss(masked.requires_grad_(), labels, alpha)
    expected = F.entmax_loss(x[:, [0, 1, 2, 4]], torch.tensor([0, 2, -100, 3]), alpha)
    torch.testing.assert_close(loss, expected)
    (slope,) = torch.autograd.grad(loss, masked)
    assert slope.isfinite().all()
    assert not slope[2].any()
    inside = alpha.clamp(1.1, 1.9).requires_grad_()
    assert gradcheck(lambda x, a: F.entmax_loss(x, labels, a), (x, inside))
    assert gradgradcheck(lambda x, a: F.entmax_loss(x, labels, a), (x, inside))
    with pytest.raises(ValueError, match="a tensor alpha is for a loss of tightness 0"):
        F.entmax_loss(x, labels, alpha, tightness=1.0)


def test_options_of_losses_with_an_order():
    x, labels = draw((4, 5)), torch.tensor([0, 2, -100, 4])
    weight = torch.tensor([1.0, 2.0, 0.5, 1.0, 3.0]).double()
    rows, kept = F.normmax_loss(x, labels, reduction="none"), weight[[0, 2, 4]]
    mean = F.normmax_loss(x, labels, weight=weight)
    torch.testing.assert_close(mean, (rows[[0, 1, 3]] * kept).sum() / kept.sum())
    for module, function in ((EntmaxLoss(1.3), F.entmax_loss), (NormmaxLoss(1.3), F.normmax_loss)):
        module.ignore_index = 2
        expected = function(x, labels.clamp(0), 1.3, ignore_index=2)
        torch.testing.assert_close(module(x, labels.clamp(0)), expected)
    assert gradgradcheck(lambda x: F.normmax_loss(x, labels, 1.7), x.clone().requires_grad_())
    assert repr(EntmaxLoss(1.3, tightness=0.5)) == "EntmaxLoss(alpha=1.3, tightness=0.5)"
    assert F.normmax_loss(x.bfloat16(), labels).dtype == torch.bfloat16
    assert F.normmax(x.half()).dtype == F.budget(x.half()).dtype == torch.float16


def test_modules():
    x = draw((2, 4, 5), torch.float32)
    torch.testing.assert_close(Sparsemax()(x), F.sparsemax(x))
    torch.testing.assert_close(Entmax15(dim=1)(x), F.entmax15(x, 1))
    torch.testing.assert_close(Entmax(1.2)(x), F.entmax(x, 1.2))
    layer = Entmax(torch.full((4, 1), 1.5), learnable=True)
    torch.testing.assert_close(layer(x), F.entmax15(x), rtol=1e-4, atol=1e-5)
    layer(x)[..., 0].sum().backward()
    assert layer.logit_alpha.grad.shape == (4, 1)
    assert (layer.logit_alpha.grad != 0).all()
    assert repr(layer) == "Entmax(alpha=shape (4, 1), dim=-1, learnable=True)"
    assert repr(Sparsemax()) == "Sparsemax(dim=-1)"
    torch.testing.assert_close(Normmax(1.7)(x), F.normmax(x, 1.7))
    torch.testing.assert_close(Budget(2.5, dim=1)(x), F.budget(x, 2.5, 1))
    fixed = Entmax(torch.full((4, 1), 1.5))
    assert [name for name, _ in fixed.named_buffers()] == ["fixed_alpha"]


def test_links_and_losses_are_those_of_the_package_entmax():
    peer = pytest.importorskip("entmax", reason="compares with the package entmax")
    x, labels = draw((5, 8)), torch.arange(5)
    options = {"reduction": "none"}
    pairs = [
        (F.sparsemax(x), peer.sparsemax(x)),
        (F.entmax15(x), peer.entmax15(x)),
        (F.entmax(x, 1.3), peer.entmax_bisect(x, 1.3)),
        (F.normmax(x, 1.6), peer.normmax_bisect(x, 1.6)),
        (F.budget(x, 2.0), peer.budget_bisect(x, 2.0)),
        (F.entmax15_loss(x, labels, **options), peer.entmax15_loss(x, labels)),
        (F.entmax_loss(x, labels, 1.3, **options), peer.entmax_bisect_loss(x, labels, 1.3)),
        (F.normmax_loss(x, labels, 1.6, **options), peer.normmax_bisect_loss(x, labels, 1.6)),
    ]
    for ours, theirs in pairs:
        # their bisection of 50 steps ends near 2^−50 times the interval, before it is rescaled
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


# float32: differences of scores, τ and an entry are rounded, and sums of 9 of them
EXPORTED = {"rtol": 1e-5, "atol": 32 * torch.finfo(torch.float32).eps}


@pytest.mark.parametrize("module", [Sparsemax(), Entmax15(dim=1), Entmax(1.0)], ids=repr)
def test_export(module, tmp_path, generator):
    pytest.importorskip("onnxscript", reason="PyTorch exports by the package onnxscript")
    runtime = pytest.importorskip("onnxruntime", reason="runs what was exported")
    batch = torch.export.Dim("batch")
    with warnings.catch_warnings():  # the exporter's own
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module.eval(), (torch.zeros(2, 4, 5),), dynamo=True, dynamic_shapes=({0: batch},)
        )
    program.save(tmp_path / "link.onnx")
    session = runtime.InferenceSession(tmp_path / "link.onnx")
    x = torch.randn(7, 4, 5, generator=generator)
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), module(x), **EXPORTED)


@pytest.mark.parametrize("alpha", [1.0, 1.3, 1.5, 2.0, torch.linspace(1, 2, 60)[:, None]], ids=str)
def test_the_operations_that_are_exported(alpha, generator, monkeypatch):
    """Every scale of scores, ties, masks and −∞."""
    x = torch.randn(60, 9, generator=generator) * torch.logspace(-2, 3, 60)[:, None]
    x[0], x[1, 3:] = 0.0, -torch.inf
    mask = torch.rand(60, 9, generator=generator) < 0.8
    mask[2], mask[:2] = False, True
    expected = F.entmax(x, alpha, mask=mask)
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
    monkeypatch.setattr(_entmax, "_solve", None)  # nothing but the operations
    torch.testing.assert_close(F.entmax(x, alpha, mask=mask), expected, **EXPORTED)


def test_a_graph_may_be_the_first_to_meet_an_order():
    """Links and losses; a number that changes makes a new graph."""
    x, labels = torch.randn(4, 6, dtype=torch.float64), torch.tensor([0, 1, 2, 3])

    def step(x, alpha):
        loss = F.entmax_loss(x, labels, alpha) + F.fitzpatrick_entmax_loss(x, labels, alpha)
        return F.entmax(x, alpha).sum() + loss + F.normmax_loss(x, labels, alpha)

    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
    for alpha in (1.21875, 1.34375, 1.46875):
        torch.testing.assert_close(compiled(x, alpha), step(x, alpha))


def test_a_loss_takes_one_order_without_axes():
    x, labels = torch.randn(4, 6, dtype=torch.float64), torch.tensor([0, 1, 2, 3])
    alpha = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    loss = F.entmax_loss(x, labels, alpha)
    torch.testing.assert_close(loss, F.entmax_loss(x, labels, 1.3))
    by_row = torch.full((4,), 1.3, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(F.entmax_loss(x, labels, by_row), by_row)
    torch.testing.assert_close(torch.autograd.grad(loss, alpha)[0], expected.sum())
    with pytest.raises(ValueError, match=r"shape of class indices, \(4,\), got \(4, 1\)"):
        F.entmax_loss(x, labels, by_row[:, None])
