r"""Attention whose weights are an α-entmax, in blocks of queries that never hold all scores.

With scores :math:`z = s\,\langle q, k\rangle + \text{bias}` and β = α − 1, the weights of a query
are :math:`p_j = (p_{\max}^\beta + \beta\,(z_j - z_{\max}))_+^{1/\beta}`, which sum to one. Both
passes go through blocks of queries, each with the keys that it may see. The forward pass keeps the
largest weight of each query, which stands for :math:`\tau = z_{\max} - p_{\max}^\beta/\beta` and
has the digits that τ loses beside large scores. The backward pass recomputes all weights from it.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as nn
from torch import Tensor
from torch.library import custom_op

from ..engines.triton.attention_call import Numbers, Tensors
from ..regularizers.tsallis import entmax_point
from . import _entmax as link
from ._reference import widen
from ._targets import working_dtype

# How many scores a block has at most, where its queries see the same keys: on a CPU those of a
# block stay in cache, a GPU has to have enough to do.
_CPU_BLOCK, _DEVICE_BLOCK = 1 << 18, 1 << 25
# A block has this many queries before it has more heads, or fewer than all keys that a query sees.
_MIN_QUERIES = 128


class _Block(NamedTuple):
    """A part of the scores, (b, k, G, l, s), and which part that is."""

    at: tuple[slice, slice, slice, slice, slice]
    number: int

    def cut(self, x: Tensor) -> Tensor:
        """The part of a mask that belongs to the block."""
        sizes = zip(self.at, x.shape, strict=True)
        return x[tuple(part if size > 1 else slice(None) for part, size in sizes)]

    @property
    def queries(self) -> tuple[slice, ...]:
        """The queries of the block."""
        return self.at[:4]

    @property
    def keys(self) -> tuple[slice, slice, slice]:
        """The keys of the block."""
        return self.at[0], self.at[1], self.at[4]


_ALL = _Block((slice(None),) * 5, 0)


def _split(total: int, size: int) -> list[slice]:
    return [slice(i, min(i + size, total)) for i in range(0, total, max(1, size))]


def _split_queries(starts: list[int], ends: list[int], most: int, max_scores: int) -> list[Any]:
    """Slices of the queries, each with the slice of the keys that its queries see."""
    found, first, n = [], 0, len(starts)
    while first < n:
        last = first + 1
        while (
            last < n
            and last - first < most
            and (last + 1 - first) * (ends[last] - starts[first]) <= max_scores
        ):
            last += 1
        keys = slice(starts[first], max(starts[first], ends[last - 1]))
        found.append((slice(first, last), keys))
        first = last
    return found


def _blocks(t: Tensors) -> Iterator[_Block]:
    """All blocks with a key in them, which depend on shapes and spans alone."""
    n_batches, n_heads, groups, n, _ = t.query.shape
    width, n_keys = t.key.shape[2], t.key.shape[2]
    starts, ends = [0] * n, [n_keys] * n
    if t.span is not None:
        starts, ends = t.span[1].tolist(), t.span[2].tolist()
        width = max((end - start for start, end in zip(starts, ends, strict=True)), default=0)
    budget = _CPU_BLOCK if t.query.is_cpu else _DEVICE_BLOCK
    few = max(1, min(n, _MIN_QUERIES) * groups * min(n_keys, width + _MIN_QUERIES))
    heads = min(max(1, budget // few), n_heads)
    batches = min(max(1, budget // (few * max(1, n_heads))), n_batches)
    # the keys of more queries than these would be far more than each of them sees
    most = n if t.span is None else max(_MIN_QUERIES, width // 4)
    room = max(1, budget // max(1, batches * heads * groups))
    parts = _split_queries(starts, ends, most, room)
    number = 0
    for batch in _split(n_batches, batches):
        for head in _split(n_heads, heads):
            for queries, keys in parts:
                if keys.start < keys.stop:
                    yield _Block((batch, head, slice(0, groups), queries, keys), number)
                    number += 1


def _distance(t: Tensors, at: Sequence[slice]) -> Any:
    """How far queries are from keys, (l, s)."""
    places = torch.arange(t.key.shape[2], device=t.query.device)[at[1]]
    return (places - t.span[0, at[0], None]).abs()  # type: ignore[index]


def _add_bias(z: Tensor, t: Tensors, number_scale: float, block: _Block = _ALL) -> Tensor:
    """The scores of products z (b, k, G, l, s): scaled, with bias, and −∞ where they are masked."""
    heads, (queries, keys) = block.at[:3], block.at[3:]
    z = z * (number_scale if t.scale is None else t.scale[heads][..., None, None].to(z.dtype))
    if t.span is not None:
        if t.slopes is not None:
            distance = _distance(t, (queries, keys)).to(z.dtype)
            z = z - t.slopes[heads][..., None, None].to(z.dtype) * distance
        places = torch.arange(t.key.shape[2], device=z.device)[keys]
        _, start, end = t.span[:, queries, None]
        z = z.masked_fill((places < start) | (places >= end), -math.inf)
    if t.mask is not None:
        mask = block.cut(t.mask)
        is_bias = mask.dtype != torch.bool
        z = z + mask.to(z.dtype) if is_bias else z.masked_fill(~mask, -math.inf)
    return z


class _Scores(NamedTuple):
    """Queries (b, k, G l, E) and keys (b, k, s, E) of a block, and x = z − max z as rows."""

    query: Tensor
    key: Tensor
    x: Tensor  # (b k G l, s), zeros where nothing is kept
    is_dead: Tensor  # (b k G l, 1)
    shape: torch.Size  # (b, k, G, l, s)


def _scores(t: Tensors, numbers: Numbers, block: _Block) -> _Scores:
    query, key = widen(t.query[block.queries]), widen(t.key[block.keys])
    shape = *query.shape[:4], key.shape[2]
    query = query.flatten(2, 3)
    z = (query @ key.mT).reshape(shape)
    z = _add_bias(z, t, numbers.scale, block)
    rows = z.reshape(-1, z.shape[-1])
    top = rows.amax(-1, keepdim=True)
    is_dead = top == -math.inf
    return _Scores(query, key, (rows - top).masked_fill_(is_dead, 0.0), is_dead, z.shape)


def link_of(numbers: Numbers) -> link.EntmaxCall:
    """The link of rows of scores."""
    return link.EntmaxCall(numbers.omega, numbers.alpha, numbers.engine)


def _orders(t: Tensors, block: _Block, shape: Sequence[int]) -> Tensor | None:
    """α of each row of a block, if it is a tensor."""
    if t.alpha is None:
        return None
    return t.alpha[block.at[:3]][..., None].expand(shape[:4]).reshape(-1)


def _recompute(x: Tensor, top: Tensor, alpha: Tensor | None, number: float) -> Tensor:
    """Weights (n, s) from the largest one of each row (n, 1): p^β = top^β + βx."""
    if alpha is None and number in (1.5, 2.0):
        s = torch.relu((top if number == 2 else top.sqrt()) + (number - 1) * x)
        return s if number == 2 else s * s
    beta = torch.full_like(top, number - 1) if alpha is None else alpha.to(x.dtype)[:, None] - 1
    safe = torch.where(top > 0, top, 1.0)
    p: Tensor = entmax_point(x / safe**beta, beta)[0]
    return p * top


def _dropout_factor(t: Tensors, p: float, block: _Block, like: Tensor) -> Tensor | None:
    """What multiplies the weights of a block, 0 or 1/(1 − p); drawn anew it is the same."""
    if t.seed is None:
        return None
    generator = torch.Generator(like.device).manual_seed(int(t.seed) + block.number)
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
    for block in _blocks(t):
        scores = _scores(t, numbers, block)
        if t.alpha is None and numbers.alpha == 1:
            p = torch.softmax(scores.x, -1)
        else:
            p = link._solve(scores.x, _orders(t, block, scores.shape), None, link_of(numbers))
        p = p.masked_fill_(scores.is_dead, 0.0)
        tops[block.queries] = p.amax(-1).reshape(scores.shape[:4])
        factor = _dropout_factor(t, numbers.dropout_p, block, p)
        p = p if factor is None else p * factor
        b, k, groups, n, s = scores.shape
        found = p.reshape(b, k, groups * n, s) @ widen(t.value[block.keys])
        out[block.queries] = found.reshape(b, k, groups, n, -1).to(out.dtype)
    return [out, tops]


def _pull_back_in_blocks(
    upstream: Tensor, tops: Tensor, t: Tensors, numbers: Numbers, needed: Sequence[str]
) -> dict[str, Tensor]:
    """The gradients in the tensors that are needed."""
    dtype = working_dtype(t.query)
    shapes = {name: getattr(t, name).shape for name in needed}
    totals = {name: t.query.new_zeros(shape, dtype=dtype) for name, shape in shapes.items()}
    for block in _blocks(t):
        at, heads = block.keys, block.at[:3]
        scores = _scores(t, numbers, block)
        b, k, groups, n, s = scores.shape
        orders = _orders(t, block, scores.shape)
        p = _recompute(scores.x, tops[block.queries].reshape(-1, 1), orders, numbers.alpha)
        factor = _dropout_factor(t, numbers.dropout_p, block, p)
        d_out = widen(upstream[block.queries]).reshape(b, k, groups * n, -1)
        if "value" in totals:
            weights = p if factor is None else p * factor
            totals["value"][at] += weights.reshape(b, k, -1, s).mT @ d_out
        d_p = (d_out @ widen(t.value[at]).mT).reshape(-1, s)
        d_p = d_p if factor is None else d_p * factor
        d_z, along_alpha = link._product(p, d_p, orders, link_of(numbers), "alpha" in totals)
        if "alpha" in totals and along_alpha is not None:
            totals["alpha"][heads] += along_alpha.to(dtype).reshape(scores.shape[:4]).sum(-1)
        d_z = d_z.reshape(scores.shape)
        if "mask" in totals:
            part = block.cut(totals["mask"])
            part += d_z.sum_to_size(part.shape)
        if "slopes" in totals:
            totals["slopes"][heads] -= (d_z * _distance(t, block.at[3:])).sum((-1, -2))
        d_z = d_z.reshape(b, k, groups * n, s)
        along_keys = d_z @ scores.key
        if "scale" in totals:
            products = (along_keys * scores.query).sum(-1)
            totals["scale"][heads] += products.reshape(b, k, groups, n).sum(-1)
        factors = numbers.scale if t.scale is None else t.scale[heads][..., None, None].to(dtype)
        if "query" in totals:
            along_keys = along_keys.reshape(b, k, groups, n, -1)
            totals["query"][block.queries] = along_keys * factors
        if "key" in totals:
            scaled = scores.query.reshape(b, k, groups, n, -1) * factors
            totals["key"][at] += d_z.mT @ scaled.flatten(2, 3)
    return {name: total.to(getattr(t, name).dtype) for name, total in totals.items()}


# Both operators take the tensors that there are, with their names in one string, and the numbers.


def _kernels() -> Any:
    """The launch of fused kernels, which needs Triton."""
    from ..engines.triton import attention_launch

    return attention_launch


def _unpack(tensors: Sequence[Tensor], names: str, *numbers: Any) -> tuple[Tensors, Numbers]:
    return Tensors(**dict(zip(names.split(), tensors, strict=True))), Numbers(*numbers)


@custom_op("fitzpatrick::entmax_attention", mutates_args=())
def _attend(
    tensors: Sequence[Tensor],
    names: str,
    scale: float,
    dropout_p: float,
    omega: str,
    alpha: float,
    engine: str,
    is_fused: bool,
) -> list[Tensor]:
    """The output (B, K, G, L, D), and what the backward pass needs besides."""
    t, numbers = _unpack(tensors, names, scale, dropout_p, omega, alpha, engine, is_fused)
    with torch.autocast(t.query.device.type, enabled=False):
        return _kernels().fused_forward(t, numbers) if is_fused else _attend_in_blocks(t, numbers)


@_attend.register_fake
def _(tensors: Sequence[Tensor], names: str, *given: Any) -> list[Tensor]:
    t, numbers = _unpack(tensors, names, *given)
    return _kernels().allocate(t) if numbers.is_fused else _allocate(t)


@custom_op("fitzpatrick::entmax_attention_backward", mutates_args=())
def _pull_back(
    upstream: Tensor,
    found: Sequence[Tensor],
    needs: Sequence[bool],
    tensors: Sequence[Tensor],
    names: str,
    scale: float,
    dropout_p: float,
    omega: str,
    alpha: float,
    engine: str,
    is_fused: bool,
) -> list[Tensor]:
    """The gradients in the tensors, empty unless needed."""
    t, numbers = _unpack(tensors, names, scale, dropout_p, omega, alpha, engine, is_fused)
    needed = [name for name, need in zip(names.split(), needs, strict=True) if need]
    with torch.autocast(t.query.device.type, enabled=False):
        if is_fused:
            totals = _kernels().fused_backward(upstream, found, t, numbers)
        else:
            totals = _pull_back_in_blocks(upstream, found[0], t, numbers, needed)
    return [totals[name] if name in needed else upstream.new_empty(0) for name in names.split()]


@_pull_back.register_fake
def _(upstream: Tensor, _: Any, needs: Sequence[bool], tensors: Any, *__: Any) -> list[Tensor]:
    pairs = zip(tensors, needs, strict=True)
    return [x.new_empty(x.shape) if need else upstream.new_empty(0) for x, need in pairs]


def _setup(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    tensors, *ctx.call = inputs
    is_fused = ctx.call[-1]
    ctx.save_for_backward(*tensors, *(output if is_fused else output[1:]))
    ctx.count = len(tensors)


def _backward(ctx: Any, upstream: list[Tensor]) -> tuple[Any, ...]:
    tensors, found = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
    needs = [bool(need) for need in ctx.needs_input_grad[0]]
    if torch.is_grad_enabled():
        t, numbers = _unpack(tensors, *ctx.call)
        if numbers.dropout_p:
            raise NotImplementedError(
                "entmax_attention has no second derivatives with dropout; set dropout_p=0"
            )
        wanted = [x for x, need in zip(tensors, needs, strict=True) if need]
        out, _ = attend_densely(t, numbers)
        found = iter(torch.autograd.grad(out, wanted, upstream[0], create_graph=True))
        totals = [next(found) if need else None for need in needs]
    else:
        totals = _pull_back(upstream[0], found, needs, tensors, *ctx.call)
        totals = [x if need else None for x, need in zip(totals, needs, strict=True)]
    return totals, *[None] * len(ctx.call)


_attend.register_autograd(_backward, setup_context=_setup)


def attend(t: Tensors, numbers: Numbers) -> Tensor:
    """The output (B, K, G, L, D) of an operator that never holds all scores."""
    given = {name: x for name, x in zip(Tensors._fields, t, strict=True) if x is not None}
    out: Tensor = _attend(list(given.values()), " ".join(given), *numbers)[0]
    return out


def attend_densely(t: Tensors, numbers: Numbers) -> tuple[Tensor, Tensor]:
    """The output, and all weights (B, K, G, L, S) that are left after dropout.

    By differentiable operations of PyTorch.
    """
    with torch.autocast(t.query.device.type, enabled=False):
        query, key, value = (widen(x) for x in t[:3])
        z = query @ key[:, :, None].mT
        z = _add_bias(z, t, numbers.scale)
        rows = z.flatten(0, -2)
        if rows.numel():
            orders = _orders(t, _ALL, z.shape)
            p = link.entmax_rows(rows, orders, rows != -math.inf, link_of(numbers))
        else:
            p = rows
        p = p.reshape(z.shape)
        weights = nn.dropout(p, numbers.dropout_p) if numbers.dropout_p else p
        return (weights @ value[:, :, None]).to(t.query.dtype), weights.to(t.query.dtype)
