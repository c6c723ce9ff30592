"""Entmax attention as functions of PyTorch tensors: one kernel forward, two backward.

Arguments are trusted: queries (heads, L, E), contiguous, with keys and values for each group of
them, and the interval of keys that each query sees. The sizes of blocks have not been tuned: the
kernels have been run by Triton's interpreter alone.
"""

from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from .attention import attention_forward, attention_key_gradient, attention_query_gradient
from .launch import on_device

QUERIES, KEYS = 64, 64
# the default of fused multiply-adds changes between versions of Triton
_FUSED = {"enable_fp_fusion": True}


class FusedOutput(NamedTuple):
    """What the forward pass leaves to the backward pass, the output first."""

    out: Tensor  # (heads, L, D)
    tops: Tensor  # (heads, L): the largest weights
    maxima: Tensor  # (heads, L): the largest scores, times β
    marks: Tensor  # (heads, blocks of queries, blocks of keys): 1 where there is a weight


def options_of(query: Tensor, value: Tensor, alpha: float, scale: float) -> dict[str, Any]:
    """What all kernels are told of widths, blocks, the order and the scale."""
    width, value_width = query.shape[-1], value.shape[-1]
    return {
        "factor": scale * (alpha - 1),
        "power": 2 if alpha == 1.5 else 1,
        "width": width,
        "value_width": value_width,
        "padded": max(16, triton.next_power_of_2(width)),
        "value_padded": max(16, triton.next_power_of_2(value_width)),
        "queries": QUERIES,
        "keys": KEYS,
        # products of float32 numbers in three parts; half precision does not look at it
        "precision": "tf32x3",
    }


def fused_forward(
    query: Tensor, key: Tensor, value: Tensor, span: Tensor, scale: float, alpha: float
) -> FusedOutput:
    """The output and what the backward pass needs; ``span`` is (2, L), int32: starts and ends."""
    (heads, n, _), (key_heads, n_keys, _) = query.shape, key.shape
    n_query_blocks, n_blocks = triton.cdiv(n, QUERIES), triton.cdiv(n_keys, KEYS)
    out = query.new_empty(heads, n, value.shape[-1])
    tops, maxima = (query.new_empty(heads, n, dtype=torch.float32) for _ in range(2))
    marks = query.new_zeros(heads, n_query_blocks, n_blocks, dtype=torch.int8)
    options = {"n": n, "n_keys": n_keys, "groups": heads // key_heads, "n_blocks": n_blocks}
    options |= options_of(query, value, alpha, scale)
    with on_device(query.device):
        attention_forward[n_query_blocks, heads](
            query, key, value, *span, out, tops, maxima, marks, **options, **_FUSED
        )
    return FusedOutput(out, tops, maxima, marks)


def fused_backward(
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
    (heads, n, _), (key_heads, n_keys, _) = query.shape, key.shape
    _, n_query_blocks, n_blocks = marks.shape
    means = torch.empty_like(tops)
    by_query, by_key, by_value = (torch.empty_like(x) for x in (query, key, value))
    options = {"scale": scale, "n": n, "n_keys": n_keys, "groups": heads // key_heads}
    options |= options_of(query, value, alpha, scale)
    given = query, key, value, upstream, *span, tops, maxima, marks, means
    with on_device(query.device):
        attention_query_gradient[n_query_blocks, heads](
            *given, by_query, n_blocks=n_blocks, **options, **_FUSED
        )
        attention_key_gradient[n_blocks, key_heads](
            *given, by_key, by_value, n_query_blocks=n_query_blocks, **options, **_FUSED
        )
    return by_query, by_key, by_value
