"""Entmax attention by Triton's kernels, as operators with a first derivative.

Batches and heads are one axis of the operators' tensors; ``heads`` is (B, K, G), its sizes.
"""

from collections.abc import Sequence
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
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scales: Tensor | None,
    span: Tensor,
    mask: Tensor | None,
    slopes: Tensor | None,
    heads: Sequence[int],
    scale: float,
    alpha: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The output (heads, L, D), τ, what it is counted from, and bits of blocks."""
    from ..engines.triton.attention_launch import Bias, fused_forward

    bias = Bias(mask, slopes, scales)
    out, taus, origins, words = fused_forward(query, key, value, span, heads, scale, alpha, bias)
    return out, taus, origins, words


@_attend.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    from ..engines.triton.attention_launch import block_counts, counts_from_top

    heads, n = query.shape[:2]
    n_query_blocks, _, n_words = block_counts(query, key, value)
    taus = query.new_empty(heads, n, dtype=torch.float32)
    origins = taus.new_empty(heads, n if counts_from_top(query, rest[2]) else 0)
    words = query.new_empty(heads, n_query_blocks, n_words, dtype=torch.int32)
    return query.new_empty(heads, n, value.shape[-1]), taus, origins, words


@custom_op("fitzpatrick::fused_attention_backward", mutates_args=())
def _pull_back(
    upstream: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scales: Tensor | None,
    span: Tensor,
    mask: Tensor | None,
    slopes: Tensor | None,
    out: Tensor,
    taus: Tensor,
    origins: Tensor,
    words: Tensor,
    heads: Sequence[int],
    scale: float,
    alpha: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients in query, key, value and scales; empty without scales."""
    from ..engines.triton import attention_launch as kernels

    given, found = (query, key, value, span), kernels.FusedOutput(out, taus, origins, words)
    bias = kernels.Bias(mask, slopes, scales)
    by_query, by_key, by_value, by_scale = kernels.fused_backward(
        upstream.contiguous(), *given, found, heads, scale, alpha, bias
    )
    if scales is not None:
        by_scale = by_scale.sum(-1).to(scales.dtype)
    return by_query, by_key, by_value, by_scale


@_pull_back.register_fake
def _(_: Tensor, *given: Any) -> tuple[Tensor, ...]:
    by_scale = given[0].new_empty(0) if given[3] is None else torch.empty_like(given[3])
    return *(torch.empty_like(x) for x in given[:3]), by_scale


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs[:7], *output)
    ctx.numbers = inputs[7:]


def _backward(ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    *tensors, out, taus, origins, words = ctx.saved_tensors
    query, key, value, scales, span, mask, slopes = tensors
    heads, scale, alpha = ctx.numbers
    if torch.is_grad_enabled():  # second derivatives
        t = Tensors(
            query.unflatten(0, heads),
            key.unflatten(0, heads[:2]),
            value.unflatten(0, heads[:2]),
            mask,
            None,
            None if scales is None else scales.reshape(*heads),
            None if slopes is None else slopes.reshape(*heads),
            span,
            None,
        )
        again = attend_densely(t, Numbers(scale, 0.0, OMEGAS[alpha], alpha, "reference"))[0]
        needs = ctx.needs_input_grad[:4]
        wanted = [x for x, need in zip(tensors, needs, strict=False) if need]
        given = iter(torch.autograd.grad(again.flatten(0, 2), wanted, upstream, create_graph=True))
        found = [next(given) if need else None for need in needs]
    else:
        found = list(_pull_back(upstream, *tensors, out, taus, origins, words, *ctx.numbers))
    by_scale = None if scales is None else found[3]
    return *found[:3], by_scale, *[None] * 6


_attend.register_autograd(_backward, setup_context=_setup)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # PyTorch's is not annotated
def is_roomy(index: int | None) -> bool:
    """True if a GPU has room for the kernels of all widths."""
    return torch.version.hip is None and torch.cuda.get_device_capability(index) in _ROOMY


def missing_for(t: Tensors, numbers: Numbers) -> list[str]:
    """What a call asks for that the kernels do not have."""
    width, dtype = max(t.query.shape[-1], t.value.shape[-1]), t.query.dtype
    is_recorded = torch.is_grad_enabled()
    missing = {
        "gradient of attn_mask": is_recorded and t.mask is not None and t.mask.requires_grad,
        "gradient of alibi_slopes": is_recorded and t.slopes is not None and t.slopes.requires_grad,
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
    n, n_keys, heads = t.query.shape[3], t.key.shape[2], t.query.shape[:3]
    if t.span is None:
        ends = torch.full((n,), n_keys, dtype=torch.int32, device=t.query.device)
        span = torch.stack([torch.zeros_like(ends), torch.zeros_like(ends), ends])
    else:
        # documents on a GPU are not validated, and kernels read where they are told
        span = torch.cat([t.span[:1], t.span[1:].clamp(0, n_keys)]).int()
    query, key, value = (x.flatten(0, -3).contiguous() for x in t[:3])
    scales, scale = None, numbers.scale
    if t.scale is not None:
        sign = torch.where(t.scale < 0, -1, 1).detach().flatten()
        query, scales, scale = (
            query * sign[:, None, None].to(query.dtype),
            t.scale.flatten() * sign,
            1.0,
        )
    slopes = None if t.slopes is None else t.slopes.flatten()
    out: Tensor = _attend(
        query, key, value, scales, span, t.mask, slopes, heads, scale, numbers.alpha
    )[0]
    return out
