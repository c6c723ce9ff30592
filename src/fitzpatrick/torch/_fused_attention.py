"""Entmax attention by Triton's kernels, as operators with a first derivative."""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from . import _arguments as arguments
from ._attention_call import Numbers, Tensors
from ._engines import check_triton

# What the kernels are compiled for, here without a look at Triton.
_BLOCK = 64
_MAX_WIDTH = 256


@custom_op("fitzpatrick::fused_attention", mutates_args=())
def _attend(
    query: Tensor, key: Tensor, value: Tensor, span: Tensor, scale: float, alpha: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The output (heads, L, D), largest weights, largest scores, and marks of blocks."""
    from ..engines.triton.attention_launch import fused_forward

    out, tops, maxima, marks = fused_forward(query, key, value, span, scale, alpha)
    return out, tops, maxima, marks


@_attend.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, *_: Any) -> tuple[Tensor, ...]:
    heads, n = query.shape[:2]
    blocks = [(size + _BLOCK - 1) // _BLOCK for size in (n, key.shape[1])]
    rows = [query.new_empty(heads, n, dtype=torch.float32) for _ in range(2)]
    marks = query.new_empty(heads, *blocks, dtype=torch.int8)
    return query.new_empty(heads, n, value.shape[-1]), *rows, marks


@custom_op("fitzpatrick::fused_attention_backward", mutates_args=())
def _pull_back(
    upstream: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    span: Tensor,
    tops: Tensor,
    maxima: Tensor,
    marks: Tensor,
    scale: float,
    alpha: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients in query, key and value."""
    from ..engines.triton.attention_launch import fused_backward

    given = query, key, value, span, tops, maxima, marks
    return fused_backward(upstream.contiguous(), *given, scale, alpha)


@_pull_back.register_fake
def _(_: Tensor, query: Tensor, key: Tensor, value: Tensor, *__: Any) -> tuple[Tensor, ...]:
    return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs[:4], *output[1:])
    ctx.numbers = inputs[4:]


def _backward(ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    if torch.is_grad_enabled():
        raise NotImplementedError(
            'entmax_attention with engine="triton" has no second derivatives; use engine=None'
        )
    return *_pull_back(upstream, *ctx.saved_tensors, *ctx.numbers), None, None, None


_attend.register_autograd(_backward, setup_context=_setup)


def attend_fused(t: Tensors, numbers: Numbers) -> Tensor:
    """The output (B K G, L, D); raises for what the kernels cannot do."""
    check_triton(t.query, "sparsemax", True)
    missing = {
        "attn_mask": t.mask is not None,
        "alibi_slopes": t.slopes is not None,
        "a tensor as scale": t.scale is not None,
        "dropout_p": numbers.dropout_p > 0,
        "alpha other than 1.5 and 2": numbers.alpha not in (1.5, 2.0),
        "float64": t.query.dtype == torch.float64,
        f"widths above {_MAX_WIDTH}": max(t.query.shape[-1], t.value.shape[-1]) > _MAX_WIDTH,
        "transforms of torch.func": arguments.is_transformed(),
        "empty sequences": t.query.numel() == 0 or t.value.numel() == 0,
    }
    if any(missing.values()):
        names = ", ".join(name for name, is_missing in missing.items() if is_missing)
        raise ValueError(f'entmax_attention with engine="triton" has no {names}; use engine=None')
    n, n_keys = t.query.shape[3], t.key.shape[2]
    if t.span is None:
        ends = torch.full((n,), n_keys, dtype=torch.int32, device=t.query.device)
        span = torch.stack([torch.zeros_like(ends), ends])
    else:
        span = t.span[1:].int()
    query, key, value = (x.flatten(0, -3).contiguous() for x in t[:3])
    out: Tensor = _attend(query, key, value, span, numbers.scale, numbers.alpha)[0]
    return out
