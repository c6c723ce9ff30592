"""Attention with entmax weights: against float64 weights times values, and what it must refuse."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as nn
from attention_calls import check_call, dense, draw, draw_call, is_seen
from conftest import TEST_SEED, skip_unless_multiplied
from hypothesis import given as drawn
from hypothesis import strategies as st
from torch._dynamo.testing import CompileCounterWithBackend
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, jvp, vmap

from fitzpatrick.torch import _attention as attention
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit
from fitzpatrick.torch._attention_call import prepare

# PyTorch scripts its own decompositions the first time that forward mode runs
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(31 + TEST_SEED)


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
    bias = torch.where(is_seen(21, 21, causal=True), 0.0, -math.inf)
    expected = dense(q, k, v, 1.5, 0.25, bias)[0]
    assert out.dtype == dtype
    half = torch.finfo(dtype).eps / 2
    torch.testing.assert_close(out.double(), expected, rtol=half, atol=1e-6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert F.entmax_attention(q.float(), k.float(), v.float()).dtype == torch.bfloat16


@pytest.mark.parametrize("alpha", [1.0, 1.25, 1.5, 2.0])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_weights_sum_to_one(alpha, scale):
    q, k, v = draw(1, 2, 3, 8), draw(1, 2, 1025, 8), torch.eye(1025).expand(1, 2, 1025, 1025)
    weights = F.entmax_attention(q, k, v, scale=scale, alpha=alpha)
    assert (weights >= 0).all()
    assert (weights.double().sum(-1) - 1).abs().max() < 1e-6


def test_large_scores_lose_no_digits():
    """Scores of ±1e4 that float32 holds exactly, in both passes."""
    k = torch.tensor([10000.0, 9999.5, 9999.0, -10000.0, 0.0])[None, None, :, None]
    q, v = torch.tensor([1.0, -1.0])[None, None, :, None], draw(1, 1, 5, 4)
    results = []
    for dtype in (torch.float32, torch.float64):
        given = [x.to(dtype).requires_grad_() for x in (q, k, v)]
        out = F.entmax_attention(*given, scale=1.0)
        results.append([out, *torch.autograd.grad(out.sum(), given)])
    # the gradient in a query is a sum of keys of size 1e4, with weights that sum to zero
    for one, other, size in zip(*results, (1.0, 1e4, 1.0, 1.0), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-6, atol=1e-6 * size)
    torch.testing.assert_close(results[1][0], dense(q, k, v, 1.5, 1.0)[0])


@pytest.mark.parametrize("alpha", [1.0, 1.5, "tensor"])
def test_a_query_that_sees_nothing(alpha):
    alpha = torch.tensor([1.2, 1.5]) if alpha == "tensor" else alpha
    q, k, v = (draw(1, 2, 4, 8).requires_grad_() for _ in range(3))
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[1] = False
    bias = torch.zeros(4, 4).masked_fill(~mask, -math.inf).requires_grad_()
    for given in (mask, bias):
        out = F.entmax_attention(q, k, v, given, alpha=alpha)
        wanted = [q, k, v] if given is mask else [q, k, v, bias]
        gradients = torch.autograd.grad(out.sum(), wanted)
        assert (out[..., 1, :] == 0).all()
        assert (gradients[0][..., 1, :] == 0).all()
        assert all(bool(x.isfinite().all()) for x in (out, *gradients))
        assert given is mask or (gradients[3][1] == 0).all()


@pytest.mark.parametrize(("n", "s"), [(0, 3), (3, 0), (0, 0)])
def test_empty_sequences(n, s):
    q, k, v = draw(2, 2, n, 8).requires_grad_(), draw(2, 2, s, 8), draw(2, 2, s, 5)
    for options in ({}, {"is_causal": True}, {"alpha": torch.tensor([1.2, 2.0])}):
        out = F.entmax_attention(q, k, v, **options)
        assert out.shape == (2, 2, n, 5)
        assert (out == 0).all()
        assert (torch.autograd.grad(out.sum(), q)[0] == 0).all()


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
    assert len(calls) == len(options)
    # what PyTorch cannot express has the same weights
    out = F.entmax_attention(q, k, v, mask, is_causal=True, enable_gqa=True, alpha=1)
    assert len(calls) == len(options)
    expected = ours(q, k, v, mask & is_seen(9, 11, causal=True), enable_gqa=True)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-6)
    out = F.entmax_attention(q, k, v, is_causal=True, enable_gqa=True, alpha=1, query_offset=2)
    expected = ours(q, k, v, is_seen(9, 11, causal=True, offset=2), enable_gqa=True)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-6)


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
    # queries, keys, values, the largest weights, and three numbers for each place
    assert sum(kept) == 3 * q.numel() + 2 * 300 + 3 * 300


limit = st.none() | st.integers(0, 8)


@drawn(st.data())
def test_blocks_hold_every_pair_once(data):
    """Every pair that is seen is in one block of bounded size, and the span says which are seen."""
    documents = data.draw(st.integers(1, 4))
    sizes = st.lists(st.integers(0, 9), min_size=documents, max_size=documents)
    pair = [torch.tensor([0, *itertools.accumulate(data.draw(sizes))]) for _ in range(2)]
    n, s = (int(x[-1]) for x in pair)
    causal, window = data.draw(st.booleans()), (data.draw(limit), data.draw(limit))
    offset = data.draw(st.integers(-3, 9))
    heads, groups = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2))
    q, k = torch.zeros(2, heads * groups, n, 4), torch.zeros(2, heads, s, 4)
    options = {"is_causal": causal, "window": window, "query_offset": offset}
    tensors, _ = prepare(q, k, k, enable_gqa=True, cu_seqlens=tuple(pair), **options)
    _, start, end = tensors.span[..., None]
    places = torch.arange(s)
    seen = (places >= start) & (places < end)
    limits = {"causal": causal, "window": window, "offset": offset}
    assert torch.equal(seen, is_seen(n, s, documents=[x.tolist() for x in pair], **limits))
    budget, count = 40, torch.zeros(2, heads, groups, n, s, dtype=torch.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "_CPU_BLOCK", budget)
        patch.setattr(attention, "_MIN_QUERIES", 3)
        for block in attention._blocks(tensors):
            part = count[block]
            part += 1
            n_queries = block[3].stop - block[3].start
            assert part.numel() <= budget or n_queries == 1
    assert (count <= 1).all()
    assert (count[:, :, :, seen] == 1).all()


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
        for one, other in zip(*pairs, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0)
        counts.add(counter.frame_count)
    assert len(counts) == 1


def test_compiles_with_all_arguments():
    given = learned_arguments()
    documents = (torch.tensor([0, 2, 5]), torch.tensor([0, 3, 7]))
    compiled = torch.compile(with_everything, fullgraph=True, backend="aot_eager")
    out, expected = (f(*given, cu_seqlens=documents) for f in (compiled, with_everything))
    torch.testing.assert_close(out, expected, rtol=0, atol=0)
    for one, other in zip(
        *(torch.autograd.grad(x.sum(), given) for x in (out, expected)), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


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


Q, K = torch.ones(2, 4, 5, 8), torch.ones(2, 2, 6, 8)
ERRORS = [
    (TypeError, "key must be a tensor", {"key": [1.0]}),
    (TypeError, "query must hold floating-point", {"query": Q.long()}),
    (TypeError, "query is torch.float32 and value torch.float64", {"value": K.double()}),
    (ValueError, "query is on cpu and key on meta", {"key": K.to("meta")}),
    (ValueError, "query must have shape", {"query": torch.ones(8)}),
    (ValueError, "key must have the batch axes of query", {"key": K[:1]}),
    (ValueError, "one width, not 0, got 8 and 7", {"key": torch.ones(2, 2, 6, 7)}),
    (ValueError, "value must have the heads and the length of key", {"value": K[:, :, 1:]}),
    (ValueError, "query has 4 heads and key 2; enable_gqa=True", {"enable_gqa": False}),
    (ValueError, "multiple of the 2 of key", {"query": torch.ones(2, 3, 5, 8)}),
    (TypeError, "attn_mask must be a tensor, boolean", {"attn_mask": torch.ones(5, 6).int()}),
    (ValueError, "attn_mask of shape", {"attn_mask": torch.ones(6, 6)}),
    (ValueError, "attn_mask on meta", {"attn_mask": torch.ones(5, 6, device="meta")}),
    (ValueError, "dropout_p must be between 0 and 1", {"dropout_p": 1.5}),
    (TypeError, "scale must be a number, a tensor", {"scale": "0.1"}),
    (TypeError, "scale must be a floating-point tensor", {"scale": torch.tensor(1)}),
    (ValueError, "scale of shape", {"scale": torch.ones(3)}),
    (ValueError, "alpha must be between 1 and 2", {"alpha": 2.5}),
    (ValueError, "alpha must be between 1 and 2", {"alpha": torch.full((4,), 0.5)}),
    (ValueError, "alpha of shape", {"alpha": torch.full((4, 1, 1), 1.5)}),
    (TypeError, "window must be a pair", {"window": 3}),
    (ValueError, "window must not be negative", {"window": (-1, 2)}),
    (TypeError, "window must hold integers", {"window": (1.5, 2)}),
    (TypeError, "cu_seqlens must be a vector", {"cu_seqlens": torch.tensor([0.0, 5.0])}),
    (ValueError, "cu_seqlens must rise from 0 to", {"cu_seqlens": torch.tensor([0, 5])}),
    (
        ValueError,
        "cu_seqlens must rise",
        {"cu_seqlens": (torch.tensor([0, 3, 2, 5]), torch.tensor([0, 3, 4, 6]))},
    ),
    (
        ValueError,
        "as many documents of queries as of keys",
        {"cu_seqlens": (torch.tensor([0, 3, 5]), torch.tensor([0, 6]))},
    ),
    (TypeError, "cu_seqlens must be a tensor, or a pair", {"cu_seqlens": (torch.tensor([0, 5]),)}),
    (TypeError, "alibi_slopes must be a floating-point tensor", {"alibi_slopes": 0.5}),
    (ValueError, "alibi_slopes of shape", {"alibi_slopes": torch.ones(2)}),
    (TypeError, "query_offset must be an integer", {"query_offset": 0.5}),
]


@pytest.mark.parametrize(("kind", "message", "given"), ERRORS, ids=[e[1] for e in ERRORS])
def test_errors(kind, message, given):
    arguments = {"query": Q, "key": K, "value": K, "enable_gqa": True, **given}
    with pytest.raises(kind, match=message):
        F.entmax_attention(**arguments)
