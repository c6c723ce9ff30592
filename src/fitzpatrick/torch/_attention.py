r"""Attention whose weights are an α-entmax, in blocks of queries that never hold all scores.

With scores :math:`z = s\,\langle q, k\rangle + \text{bias}` and β = α − 1, the weights of a query
are :math:`p_j = (p_{\max}^\beta + \beta\,(z_j - z_{\max}))_+^{1/\beta}`, which sum to one. Both
passes go through blocks of queries, each with the keys that it may see. The forward pass keeps the
largest weight of each query, which stands for :math:`\tau = z_{\max} - p_{\max}^\beta/\beta` and
has the digits that τ loses beside large scores. The backward pass recomputes all weights from it.
"""

import functools
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as nn
from torch import Tensor
from torch.library import custom_op

from ..engines.triton.attention_call import Numbers, Tensors
from ..regularizers.tsallis import entmax_point
from . import _entmax as link
from ._arguments import is_eager
from ._attention_call import link_of
from ._autograd import apply
from ._engines import launcher
from ._reference import widen
from ._targets import working_dtype

# How many scores a block has at most, where its queries see the same keys: on a CPU those of a
# block stay in cache, a GPU has to have enough to do.
_CPU_BLOCK, _DEVICE_BLOCK = 1 << 18, 1 << 25
# A block has this many queries before it has more heads, or fewer than all keys that a query sees.
_MIN_QUERIES = 128

# a block of scores (b, k, G, l, s)
_Block = tuple[slice, slice, slice, slice, slice]


def _split(total: int, size: int) -> list[slice]:
    return [slice(i, i + size) for i in range(0, total, size)]


def _split_queries(
    starts: list[int], ends: list[int], most: int, max_scores: int
) -> list[tuple[slice, slice]]:
    """Slices of the queries, each with the slice of the keys that its queries see, if any."""
    found, first, n = [], 0, len(starts)
    for last in range(1, n + 1):
        fits = last < n and (last + 1 - first) * (ends[last] - starts[first]) <= max_scores
        if fits and last - first < most:
            continue
        if starts[first] < ends[last - 1]:
            found.append((slice(first, last), slice(starts[first], ends[last - 1])))
        first = last
    return found


def _blocks(t: Tensors) -> Iterator[_Block]:
    """All blocks with a key in them, which depend on shapes and spans alone."""
    n_batches, n_heads, groups, n, _ = t.query.shape
    width = n_keys = t.key.shape[2]
    starts, ends, most = [0] * n, [n_keys] * n, n
    if t.starts is not None and t.ends is not None:
        starts, ends = t.starts.tolist(), t.ends.tolist()
        width = max(map(operator.sub, ends, starts), default=0)
        # the keys of more queries than these would be far more than each of them sees
        most = max(_MIN_QUERIES, width // 4)
    budget = _CPU_BLOCK if t.query.is_cpu else _DEVICE_BLOCK
    few = max(1, min(n, _MIN_QUERIES) * groups * min(n_keys, width + _MIN_QUERIES))
    heads = max(1, min(budget // few, n_heads))
    batches = max(1, min(budget // (few * heads), n_batches))
    parts = _split_queries(starts, ends, most, max(1, budget // (batches * heads * max(1, groups))))
    all_heads = _split(n_batches, batches), _split(n_heads, heads)
    for batch, head, (queries, keys) in itertools.product(*all_heads, parts):
        yield batch, head, slice(None), queries, keys


def _part(t: Tensors, block: _Block) -> Tensors:
    """What a block is computed of, with places counted from its first key, or its gradients."""
    queries, keys, heads = block[:4], (*block[:2], block[4]), block[:3]
    of_mask: tuple[slice, ...] = block
    if t.mask is not None:
        sizes = zip(block, t.mask.shape, strict=True)
        of_mask = tuple(part if size > 1 else slice(None) for part, size in sizes)
    cuts = queries, keys, keys, of_mask, heads, heads, heads
    parts = [None if x is None else x[cut] for x, cut in zip(t[:7], cuts, strict=True)]
    spans = (None if x is None else x[block[3]] - block[4].start for x in t[7:10])
    return Tensors._make([*parts, *spans, t.seed])


def _distance(t: Tensors) -> Tensor:
    """How far queries are from keys, (l, s)."""
    places = torch.arange(t.key.shape[2], device=t.query.device)
    return (places - t.levels[:, None]).abs()  # type: ignore[index]


def _scores(t: Tensors, scale: float) -> Tensor:
    """The scores (b, k, G, l, s): scaled, with bias, and −∞ where they are masked."""
    products = widen(t.query).flatten(2, 3) @ widen(t.key).mT
    z = products.reshape(*t.query.shape[:4], t.key.shape[2])
    z = z * (scale if t.scale is None else t.scale[..., None, None].to(z.dtype))
    if t.slopes is not None:
        z = z - t.slopes[..., None, None].to(z.dtype) * _distance(t).to(z.dtype)
    if t.starts is not None and t.ends is not None:
        places = torch.arange(t.key.shape[2], device=z.device)
        is_hidden = (places < t.starts[:, None]) | (places >= t.ends[:, None])
        z = z.masked_fill(is_hidden, -math.inf)
    if t.mask is not None:
        is_bias = t.mask.dtype != torch.bool
        z = z + t.mask.to(z.dtype) if is_bias else z.masked_fill(~t.mask, -math.inf)
    return z


def _below_top(t: Tensors, scale: float) -> tuple[Tensor, Tensor, torch.Size]:
    """z − max z as rows (n, s), zeros where nothing is seen; which rows these are; z's shape."""
    z = _scores(t, scale)
    rows = z.flatten(0, -2)
    top = rows.amax(-1, keepdim=True)
    is_dead = top == -math.inf
    return (rows - top).masked_fill_(is_dead, 0.0), is_dead, z.shape


def _orders(t: Tensors) -> Tensor | None:
    """α of each row, if it is a tensor."""
    return None if t.alpha is None else t.alpha[..., None].expand(t.query.shape[:4]).reshape(-1)


def _recompute(x: Tensor, top: Tensor, alpha: Tensor | None, number: float) -> Tensor:
    """Weights (n, s) from the largest one of each row (n, 1): p^β = top^β + βx."""
    if number in (1.5, 2.0):
        s = torch.relu((top if number == 2 else top.sqrt()) + (number - 1) * x)
        return s if number == 2 else s * s
    beta = torch.full_like(top, number - 1) if alpha is None else alpha.to(x.dtype)[:, None] - 1
    safe = torch.where(top > 0, top, 1.0)
    p: Tensor = entmax_point(x / safe**beta, beta)[0]
    return p * top


def _dropout_factor(t: Tensors, p: float, number: int, like: Tensor) -> Tensor | None:
    """What multiplies the weights of a block, 0 or 1/(1 − p); drawn anew it is the same."""
    if t.seed is None:
        return None
    generator = torch.Generator(like.device).manual_seed(int(t.seed) + number)
    kept = torch.rand(like.shape, generator=generator, device=like.device) >= p
    return kept.to(like.dtype) * (1 / (1 - p) if p < 1 else 0.0)


def _allocate(t: Tensors) -> list[Tensor]:
    """Zeros for the output (B, K, G, L, D), and for the largest weight of each query."""
    shape = t.query.shape[:-1]
    out = t.query.new_zeros(*shape, t.value.shape[-1])
    return [out, t.query.new_zeros(shape, dtype=working_dtype(t.query))]


def _attend_in_blocks(t: Tensors, numbers: Numbers) -> list[Tensor]:
    """The output, and the largest weight of each query."""
    out, tops = _allocate(t)
    call = link_of(t, numbers)
    for number, block in enumerate(_blocks(t)):
        part, queries = _part(t, block), block[:4]
        x, is_dead, shape = _below_top(part, numbers.scale)
        if numbers.alpha == 1:
            p = torch.softmax(x, -1)
        else:
            p = link._solve(x, _orders(part), None, call)
        p = p.masked_fill_(is_dead, 0.0)
        tops[queries] = p.amax(-1).reshape(shape[:4])
        factor = _dropout_factor(t, numbers.dropout_p, number, p)
        weights = p if factor is None else p * factor
        found = weights.reshape(shape).flatten(2, 3) @ widen(part.value)
        out[queries] = found.reshape(*shape[:4], -1).to(out.dtype)
    return [out, tops]


def _pull_back_in_blocks(
    upstream: Tensor, tops: Tensor, t: Tensors, numbers: Numbers, needed: Sequence[str]
) -> Tensors:
    """The gradients in the tensors that are needed."""
    dtype, call = working_dtype(t.query), link_of(t, numbers)
    zeros = {name: t.query.new_zeros(getattr(t, name).shape, dtype=dtype) for name in needed}
    totals = Tensors(**{**dict.fromkeys(Tensors._fields), **zeros})  # type: ignore[arg-type]
    for number, block in enumerate(_blocks(t)):
        part, queries = _part(t, block), block[:4]
        total: Any = _part(totals, block)
        x, _, shape = _below_top(part, numbers.scale)
        orders = _orders(part)
        p = _recompute(x, tops[queries].reshape(-1, 1), orders, numbers.alpha)
        factor = _dropout_factor(t, numbers.dropout_p, number, p)
        d_out = widen(upstream[queries]).flatten(2, 3)
        if total.value is not None:
            weights = p if factor is None else p * factor
            total.value.add_(weights.reshape(shape).flatten(2, 3).mT @ d_out)
        d_p = (d_out @ widen(part.value).mT).reshape(x.shape)
        d_p = d_p if factor is None else d_p * factor
        with_alpha = total.alpha is not None
        d_z, along_alpha = link._product(p, d_p, orders, call, with_alpha)
        if with_alpha and along_alpha is not None:
            total.alpha.add_(along_alpha.to(dtype).reshape(shape[:4]).sum(-1))
        d_z = d_z.reshape(shape)
        if total.mask is not None:
            total.mask.add_(d_z.sum_to_size(total.mask.shape))
        if total.slopes is not None:
            total.slopes.sub_((d_z * _distance(part)).sum((-1, -2)))
        d_z, query = d_z.flatten(2, 3), widen(part.query)
        along_keys = (d_z @ widen(part.key)).reshape(query.shape)
        if total.scale is not None:
            total.scale.add_((along_keys * query).sum(-1).sum(-1))
        factors = numbers.scale if part.scale is None else part.scale[..., None, None].to(dtype)
        if total.query is not None:
            total.query.copy_(along_keys * factors)
        if total.key is not None:
            total.key.add_(d_z.mT @ (query * factors).flatten(2, 3))
    return totals


_kernels = functools.partial(launcher, "attention_launch")


# What both operators take: the tensors, the numbers, and whether kernels do.
_CALL = ", ".join(f"Tensor{'?' * (i > 2)} {name}" for i, name in enumerate(Tensors._fields))
_CALL += ", float[] numbers, bool is_fused"


def _read(given: Sequence[Any]) -> tuple[Tensors, Numbers, bool]:
    *tensors, numbers, is_fused = given
    return Tensors(*tensors), Numbers(*numbers), is_fused


def _compute(*given: Any) -> list[Tensor]:
    """The output (B, K, G, L, D), and what the backward pass needs besides."""
    t, numbers, is_fused = _read(given)
    if is_fused:
        found: list[Tensor] = _kernels().fused_forward(t, numbers)
        return found
    with torch.autocast(t.query.device.type, enabled=False):
        return _attend_in_blocks(t, numbers)


def _compute_gradients(
    upstream: Tensor, found: Sequence[Tensor], needs: Sequence[bool], *given: Any
) -> list[Tensor]:
    """The gradients in the tensors that need them."""
    t, numbers, is_fused = _read(given)
    needed = list(itertools.compress(Tensors._fields, needs))
    if is_fused:
        totals = _kernels().fused_backward(upstream, found, t, numbers)
    else:
        with torch.autocast(upstream.device.type, enabled=False):
            totals = _pull_back_in_blocks(upstream, found[0], t, numbers, needed)
    return [getattr(totals, name).to(getattr(t, name).dtype) for name in needed]


_attend = custom_op(
    "fitzpatrick::entmax_attention", _compute, mutates_args=(), schema=f"({_CALL}) -> Tensor[]"
)
_pull_back = custom_op(
    "fitzpatrick::entmax_attention_backward",
    _compute_gradients,
    mutates_args=(),
    schema=f"(Tensor upstream, Tensor[] found, bool[] needs, {_CALL}) -> Tensor[]",
)


@_attend.register_fake
def _(*given: Any) -> list[Tensor]:
    t, _, is_fused = _read(given)
    return _kernels().allocate(t) if is_fused else _allocate(t)


@_pull_back.register_fake
def _(_: Tensor, __: Any, needs: Sequence[bool], *given: Any) -> list[Tensor]:
    return [x.new_empty(x.shape) for x in itertools.compress(given, needs)]


def _setup(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    *tensors, _, is_fused = inputs
    ctx.save_for_backward(*tensors, *(output if is_fused else output[1:]))
    ctx.options = inputs[-2:]


def _backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:
    saved, needs = ctx.saved_tensors, list(ctx.needs_input_grad[: len(Tensors._fields)])
    tensors, found = saved[: len(needs)], saved[len(needs) :]
    given = *tensors, *ctx.options
    if torch.is_grad_enabled():
        t, numbers, _ = _read(given)
        if numbers.dropout_p:
            raise NotImplementedError(
                "entmax_attention has no second derivatives with dropout; set dropout_p=0"
            )
        out, _ = attend_densely(t, numbers)
        learned: list[Any] = list(itertools.compress(t, needs))
        # α, a mask and slopes are in the graph only if a query sees a key
        totals: Sequence[Tensor] = torch.autograd.grad(
            out, learned, upstream, create_graph=True, materialize_grads=True
        )
    else:
        pull_back = _compute_gradients if is_eager(upstream) else _pull_back
        totals = pull_back(upstream, found, needs, *given)
    each = iter(totals)
    return *(next(each) if need else None for need in needs), None, None


_attend.register_autograd(lambda ctx, upstream: _backward(ctx, upstream[0]), setup_context=_setup)


class _Attention(torch.autograd.Function):
    """The operator for ordinary tensors: PyTorch's dispatcher takes longer than a small kernel."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        """The output alone."""
        found = _compute(*given)
        _setup(ctx, given, found)
        return found[0]

    backward = staticmethod(_backward)


def attend(t: Tensors, numbers: Numbers, is_fused: bool) -> Tensor:
    """The output (B, K, G, L, D) of an operator that never holds all scores."""
    given = *t, list(numbers), is_fused
    out: Tensor = apply(_Attention, *given) if is_eager(*t) else _attend(*given)[0]
    return out


def attend_densely(t: Tensors, numbers: Numbers) -> tuple[Tensor, Tensor]:
    """The output, and all weights (B, K, G, L, S) that are left after dropout.

    By differentiable operations of PyTorch.
    """
    with torch.autocast(t.query.device.type, enabled=False):
        z = _scores(t, numbers.scale)
        p = z.flatten(0, -2)
        if p.numel():
            p = link.entmax_rows(p, _orders(t), p != -math.inf, link_of(t, numbers))
        p = p.reshape(z.shape)
        weights = nn.dropout(p, numbers.dropout_p) if numbers.dropout_p else p
        out = weights @ widen(t.value)[:, :, None]
        return out.to(t.query.dtype), weights.to(t.query.dtype)
