"""Attention with entmax weights: against float64 weights times values, and what it must refuse."""

import functools
import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as nn
from attention_calls import check_call, dense, draw, draw_call
from conftest import TEST_SEED, assert_compiles, skip_unless_multiplied
from torch._dynamo.testing import CompileCounterWithBackend
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, jvp, vmap
from torch.utils.checkpoint import checkpoint

from fitzpatrick.torch import _attention as attention
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit
from fitzpatrick.torch._attention_call import prepare


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows and heads, so that small inputs have many of them."""
    monkeypatch.setattr(attention, "_CPU_BLOCK", 64)
    monkeypatch.setattr(attention, "_MIN_QUERIES", 2)


@pytest.mark.parametrize("number", range(42))
def test_agrees_with_dense_weights(number, small_blocks):
    alphas = [1.0, 1.3, 1.5, 1.5, 2.0, "heads"]
    call = draw_call(number + 1000 * TEST_SEED, 40, [16, 40, 64, 96, 128, 256], alphas, True)
    check_call(call, engine="reference")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_rounded_once(dtype):
    skip_unless_multiplied(dtype)
    q, k, v = (draw(2, 3, 21, 16, dtype=dtype) for _ in range(3))
    out = F.entmax_attention(q, k, v, is_causal=True)
    bias = torch.full((21, 21), -math.inf).triu(1)
    expected = dense(q, k, v, 1.5, 0.25, bias)[0]
    assert out.dtype == dtype
    half = torch.finfo(dtype).eps / 2
    torch.testing.assert_close(out.double(), expected, rtol=half, atol=1e-6)
    found = []
    for enabled in (True, False):  # its products are those of float32 all the same
        leaves = [x.to(torch.float32 if enabled else dtype).requires_grad_() for x in (q, k, v)]
        with torch.autocast("cpu", dtype=dtype, enabled=enabled):
            out = F.entmax_attention(*leaves)
            found.append([out, *torch.autograd.grad(out, leaves, torch.ones_like(out))])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one.to(dtype), other)
    assert found[0][0].dtype == dtype


def test_the_scale_may_be_a_number_of_numpy():
    q, k, v = draw(1, 3, 4), draw(1, 5, 4), draw(1, 5, 2)
    found = F.entmax_attention(q, k, v, scale=np.float32(0.5))
    assert torch.equal(found, F.entmax_attention(q, k, v, scale=0.5))


@pytest.mark.parametrize(("n", "s"), [(0, 3), (3, 0), (0, 0)])
def test_empty_sequences(n, s):
    q, k, v = draw(2, 2, n, 8).requires_grad_(), draw(2, 2, s, 8), draw(2, 2, s, 5)
    alpha = torch.tensor([1.2, 2.0], requires_grad=True)
    for options in ({}, {"is_causal": True}, {"alpha": alpha}):
        out = F.entmax_attention(q, k, v, **options)
        assert out.shape == (2, 2, n, 5)
        assert (out == 0).all()
        learned = [q, alpha] if "alpha" in options else [q]
        for again in (True, False):
            gradients = torch.autograd.grad(out.sum(), learned, create_graph=again)
            assert all((x == 0).all() for x in gradients)


def learned_arguments():
    q, k, v = (draw(*shape, dtype=torch.float64) for shape in ((4, 5, 3), (2, 7, 3), (2, 7, 2)))
    bias, unit = draw(4, 1, 7, dtype=torch.float64), torch.rand(3, 4, dtype=torch.float64)
    alpha, scale, slopes = 1.2 + 0.6 * unit[0], 0.5 + unit[1], unit[2]
    return [x.requires_grad_() for x in (q, k, v, bias, alpha, scale, slopes)]


def with_everything(q, k, v, bias, alpha, scale, slopes, **options):
    more = {"alpha": alpha, "alibi_slopes": slopes, "window": (3, 4), "enable_gqa": True}
    return F.entmax_attention(q, k, v, bias, scale=scale, **more, **options)


def test_derivatives(small_blocks):
    given = learned_arguments()
    assert gradcheck(with_everything, given)
    assert gradgradcheck(with_everything, given)


def test_blocks_drop_other_weights(small_blocks):
    x = torch.zeros(1, 64, 8)
    kept = F.entmax_attention(x, x[:, :8], torch.eye(8)[None], dropout_p=0.5)[0]
    assert len({tuple(part.flatten().tolist()) for part in kept.split(8)}) > 1


def test_dropout():
    given = learned_arguments()

    def dropped(*given):
        torch.manual_seed(5)
        return with_everything(*given, dropout_p=0.4)

    assert gradcheck(dropped, given)  # the backward pass drops what the forward pass did
    with pytest.raises(NotImplementedError, match="no second derivatives with dropout"):
        torch.autograd.grad(dropped(*given).sum(), given[0], create_graph=True)
    q, k, v = draw(1, 1, 400, 4), draw(1, 1, 50, 4), torch.eye(50)[None, None]
    weights = F.entmax_attention(q, k, v)
    kept = F.entmax_attention(q, k, v, dropout_p=0.25)
    share = (kept[weights > 0] == 0).float().mean().item()
    count = int((weights > 0).sum())
    assert abs(share - 0.25) < 5 * math.sqrt(0.25 * 0.75 / count)
    torch.testing.assert_close(kept[kept > 0], weights[kept > 0] / 0.75)
    assert (F.entmax_attention(q, k, v, dropout_p=1.0) == 0).all()


def test_order_one_is_pytorchs_own(monkeypatch):
    q, k, v = draw(2, 4, 9, 8), draw(2, 2, 11, 8), draw(2, 2, 11, 8)
    calls, ours = [], nn.scaled_dot_product_attention
    monkeypatch.setattr(
        nn, "scaled_dot_product_attention", lambda *a, **o: calls.append(1) or ours(*a, **o)
    )
    mask = torch.rand(9, 11) > 0.3
    options = [{"is_causal": True}, {"attn_mask": mask}, {"attn_mask": draw(9, 11).double()}]
    for given in options:
        plain = {
            name: x.float() if name == "attn_mask" and x is not mask else x
            for name, x in given.items()
        }
        expected = ours(q, k, v, **plain, scale=0.3, enable_gqa=True)
        out = F.entmax_attention(q, k, v, **given, scale=0.3, enable_gqa=True, alpha=1)
        assert torch.equal(out, expected)
    # PyTorch cannot express these
    F.entmax_attention(q, k, v, mask, is_causal=True, enable_gqa=True, alpha=1)
    F.entmax_attention(q, k, v, is_causal=True, enable_gqa=True, alpha=1, query_offset=2)
    # nor differentiate these in forward mode on a CPU
    slopes = [
        jvp(lambda q: F.entmax_attention(q, k, v, alpha=a, enable_gqa=True), (q,), (q + 1,))[1]  # noqa: B023
        for a in (1, torch.ones(4))
    ]
    torch.testing.assert_close(*slopes)
    assert len(calls) == len(options)


@pytest.mark.parametrize("alpha", [1.0, 1.5])
@pytest.mark.parametrize("lead", [(), (4,), (3, 2, 4)])
def test_masks_are_broadcast(lead, alpha):
    """From any number of axes, with a size of one in any of them."""
    q, k, v = draw(*lead, 5, 8), draw(*lead, 7, 8), draw(*lead, 7, 3)
    full = *lead, 5, 7
    options = {"alpha": alpha, "enable_gqa": True}
    for first in range(len(full) + 1):
        for shape in itertools.product(*((1, size) for size in full[first:])):
            seen = torch.rand(shape) > 0.3
            for mask in (seen, draw(*shape)):
                out = F.entmax_attention(q, k, v, mask, **options)
                expected = F.entmax_attention(q, k, v, mask.expand(full).contiguous(), **options)
                torch.testing.assert_close(out, expected, rtol=0, atol=2e-6)


def test_the_backward_pass_keeps_no_scores():
    q, k, v = (draw(1, 2, 300, 8).requires_grad_() for _ in range(3))
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda x: kept.append(x.numel()) or x, lambda x: x
    ):
        F.entmax_attention(q, k, v, is_causal=True)
    # queries, keys, values, the largest weights, and two numbers for each place
    assert sum(kept) == 3 * q.numel() + 2 * 300 + 2 * 300


def test_checkpoints_compute_again():
    given = learned_arguments()

    def attend(*given):
        return with_everything(*given, is_causal=True)

    out = checkpoint(attend, *given, use_reentrant=False)
    found, expected = (torch.autograd.grad(x.sum(), given) for x in (out, attend(*given)))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"window": (5, 2)}])
def test_scores_are_held_in_blocks_of_bounded_size(options, small_blocks):
    q, k = torch.zeros(2, 6, 17, 4), torch.zeros(2, 3, 17, 4)
    tensors, _ = prepare(q, k, k, enable_gqa=True, **options)
    held = torch.zeros(2, 3, 2, 17, 17, dtype=torch.int64)
    for block in attention._blocks(tensors):
        part = held[block]
        part += 1
        rows = part.shape[0] * part.shape[1] * part.shape[3]
        assert part.numel() <= attention._CPU_BLOCK or rows == 1  # which is not divided
    assert held.max() == 1


def test_compiles_once_for_all_lengths():
    def step(q, k, v):
        out = F.entmax_attention(q, k, v, is_causal=True, enable_gqa=True)
        return out + F.entmax_attention(q, k, v, alpha=1.3, window=(3, 0), enable_gqa=True)

    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(step, fullgraph=True, dynamic=True, backend=counter)
    counts = set()
    for n in (5, 12, 7, 33):
        given = [draw(2, heads, n, 8).requires_grad_() for heads in (4, 2, 2)]
        ours, eager = compiled(*given), step(*given)
        torch.testing.assert_close(ours, eager, rtol=0, atol=0)
        pairs = (torch.autograd.grad(out.square().sum(), given) for out in (ours, eager))
        torch.testing.assert_close(*pairs, rtol=0, atol=0)
        counts.add(counter.frame_count)
    assert len(counts) == 1


def test_compiles_with_all_arguments():
    given = learned_arguments()
    documents = (torch.tensor([0, 2, 5]), torch.tensor([0, 3, 7]))
    attend = functools.partial(with_everything, cu_seqlens=documents)
    assert_compiles(attend, *given, rtol=0, atol=0)


def test_transforms():
    q, k, v, bias, *heads = (x.detach() for x in learned_arguments())
    many = torch.stack([q, q + 0.1, 2 * q])

    def value(q):
        return with_everything(q, k, v, bias, *heads).square().sum()

    each = torch.stack([torch.autograd.functional.jacobian(value, one) for one in many])
    for function in (
        vmap(grad(value)),
        torch.compile(vmap(grad(value)), fullgraph=True, backend="eager"),
    ):
        torch.testing.assert_close(function(many), each, rtol=1e-12, atol=1e-12)
    direction = torch.randn_like(q)
    along = jvp(value, (q,), (direction,))[1]
    torch.testing.assert_close(along, (each[0] * direction).sum(), rtol=1e-12, atol=1e-12)
    twice = grad(lambda q: (grad(value)(q) * direction).sum())(q)
    expected = torch.autograd.functional.hvp(value, q, direction)[1]
    torch.testing.assert_close(twice, expected, rtol=1e-10, atol=1e-10)
