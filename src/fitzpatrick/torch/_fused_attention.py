"""Entmax attention by Triton's kernels, as operators with a first derivative."""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from . import _arguments as arguments
from ._attention import attend_densely
from ._attention_call import OMEGAS, Numbers, Tensors

_MAX_WIDTH = 256  # that the kernels are compiled for
# NVIDIA GPUs where a program has 160 KiB of shared memory, which kernels for that width need
_ROOMY = ((8, 0), (9, 0), (10, 0), (10, 3))


@custom_op("fitzpatrick::fused_attention", mutates_args=())
def _attend(
    query: Tensor, key: Tensor, value: Tensor, span: Tensor, scale: float, alpha: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The output (heads, L, D), τ, what it is counted from, and bits of blocks."""
    from ..engines.triton.attention_launch import fused_forward

    out, taus, origins, words = fused_forward(query, key, value, span, scale, alpha)
    return out, taus, origins, words


@_attend.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, *__: Any) -> tuple[Tensor, ...]:
    from ..engines.triton.attention_launch import block_counts

    heads, n = query.shape[:2]
    n_query_blocks, _, n_words = block_counts(query, key, value)
    taus = query.new_empty(heads, n, dtype=torch.float32)
    origins = taus.new_empty(heads, n if query.dtype == torch.float32 else 0)
    words = query.new_empty(heads, n_query_blocks, n_words, dtype=torch.int32)
    return query.new_empty(heads, n, value.shape[-1]), taus, origins, words


@custom_op("fitzpatrick::fused_attention_backward", mutates_args=())
def _pull_back(
    upstream: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    span: Tensor,
    out: Tensor,
    taus: Tensor,
    origins: Tensor,
    words: Tensor,
    scale: float,
    alpha: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients in query, key and value."""
    from ..engines.triton.attention_launch import fused_backward

    given = query, key, value, span, out, taus, origins, words
    return fused_backward(upstream.contiguous(), *given, scale, alpha)


@_pull_back.register_fake
def _(_: Tensor, query: Tensor, key: Tensor, value: Tensor, *__: Any) -> tuple[Tensor, ...]:
    return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs[:4], *output)
    ctx.numbers = inputs[4:]


def _backward(ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    *tensors, out, taus, origins, words = ctx.saved_tensors
    if torch.is_grad_enabled():  # second derivatives
        query, key, value, span = tensors
        scale, alpha = ctx.numbers
        grouped = query.unflatten(0, (1, len(key), len(query) // len(key)))
        span = torch.cat([span[:1], span])  # the level of a query matters for slopes alone
        t = Tensors(grouped, key[None], value[None], None, None, None, None, span, None)
        again = attend_densely(t, Numbers(scale, 0.0, OMEGAS[alpha], alpha, "reference"))[0]
        found = torch.autograd.grad(again.flatten(0, 2), tensors[:3], upstream, create_graph=True)
    else:
        found = _pull_back(upstream, *tensors, out, taus, origins, words, *ctx.numbers)
    return *found, None, None, None


_attend.register_autograd(_backward, setup_context=_setup)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # PyTorch's is not annotated
def is_roomy(index: int | None) -> bool:
    """True if a GPU has room for the kernels of all widths."""
    return torch.version.hip is None and torch.cuda.get_device_capability(index) in _ROOMY


def missing_for(t: Tensors, numbers: Numbers) -> list[str]:
    """What a call asks for that the kernels do not have."""
    width, dtype = max(t.query.shape[-1], t.value.shape[-1]), t.query.dtype
    missing = {
        "attn_mask": t.mask is not None,
        "alibi_slopes": t.slopes is not None,
        "a tensor as scale": t.scale is not None,
        "a scale of zero": t.scale is None and numbers.scale == 0,
        "dropout_p": numbers.dropout_p > 0,
        "alpha other than 1.5 and 2": numbers.alpha not in (1.5, 2.0),
        "float64": dtype == torch.float64,
        f"widths above {_MAX_WIDTH}": width > _MAX_WIDTH,
        "single precision with widths above 128": dtype == torch.float32 and width > 128,
        "transforms of torch.func": arguments.is_transformed(),
        "empty sequences": t.query.numel() == 0 or t.value.numel() == 0,
    }
    return [name for name, is_missing in missing.items() if is_missing]


def attend_fused(t: Tensors, numbers: Numbers) -> Tensor:
    """The output (B K G, L, D)."""
    n, n_keys = t.query.shape[3], t.key.shape[2]
    if t.span is None:
        ends = torch.full((n,), n_keys, dtype=torch.int32, device=t.query.device)
        span = torch.stack([torch.zeros_like(ends), ends])
    else:
        # documents on a GPU are not validated, and kernels read where they are told
        span = t.span[1:].clamp(0, n_keys).int()
    query, key, value = (x.flatten(0, -3).contiguous() for x in t[:3])
    out: Tensor = _attend(query, key, value, span, numbers.scale, numbers.alpha)[0]
    return out
