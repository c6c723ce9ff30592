"""Entmax attention as functions of PyTorch tensors: one kernel forward, two backward.

Arguments are trusted: queries (heads, L, E), contiguous, with keys and values for each group of
them, and the interval of keys that each query sees.
"""

from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from .attention import attention_forward, attention_key_gradient, attention_query_gradient
from .launch import on_device

# the default of fused multiply-adds changes between versions of Triton
_FUSED = {"enable_fp_fusion": True}
# Errors of the size of their squares are rounded away.
_TOLERANCES = {torch.bfloat16: 0.08, torch.float16: 0.02, torch.float32: 1e-4}


class FusedOutput(NamedTuple):
    """What the forward pass leaves to the backward pass, the output first."""

    out: Tensor  # (heads, L, D)
    taus: Tensor  # (heads, L)
    origins: Tensor  # (heads, L) of single precision: the largest scores, which τ is counted from
    words: Tensor  # (heads, blocks of queries, words): bits, 1 for blocks of keys with a weight


class _Plan(NamedTuple):
    """The sizes of blocks, and how the kernels are compiled."""

    queries: int
    keys: int
    together: int  # blocks of queries that the gradient in keys takes at once, one or two
    pair: int  # blocks of keys, likewise
    forward: "_Launch"
    by_query: "_Launch"
    by_key: "_Launch"


class _Launch(NamedTuple):
    """How one kernel is compiled, and how many of its programs share a multiprocessor.

    A program takes one block of queries or keys after another; those beyond what the registers have
    room for would begin when the others have ended.
    """

    programs: int
    num_warps: int
    stages: int
    maxnreg: int | None = None

    @property
    def options(self) -> dict[str, int]:
        """What Triton is told."""
        options = {"num_warps": self.num_warps, "stages": self.stages}
        return options if self.maxnreg is None else options | {"maxnreg": self.maxnreg}

    def count_for(self, device: torch.device, n_items: int) -> int:
        """The number of programs for items that each of them takes in turn."""
        if device.type != "cuda":
            return min(n_items, 3)
        n_processors = torch.cuda.get_device_properties(device).multi_processor_count
        return min(n_items, self.programs * n_processors)


# By width, for half precision and then for single precision.
_NARROW = _Plan(64, 64, 1, 1, _Launch(4, 4, 2, 128), _Launch(2, 4, 2), _Launch(3, 4, 2, 168))
_MEDIUM = _Plan(64, 64, 1, 2, _Launch(2, 4, 2), _Launch(1, 8, 2), _Launch(1, 8, 2))
_WIDE = _Plan(64, 32, 1, 2, _Launch(1, 8, 2), _Launch(1, 8, 2), _Launch(1, 8, 2))
_SINGLE = _Plan(64, 32, 1, 2, _Launch(2, 4, 2), _Launch(2, 4, 2), _Launch(1, 4, 2))
_SINGLE_MEDIUM = _Plan(32, 32, 1, 2, _Launch(2, 4, 2), _Launch(2, 4, 2), _Launch(1, 4, 1))


def plan_for(query: Tensor, value: Tensor) -> _Plan:
    """The plan for queries and values of a dtype and width."""
    width = max(query.shape[-1], value.shape[-1])
    if query.dtype == torch.float32:
        return _SINGLE if width <= 64 else _SINGLE_MEDIUM
    if width <= 64:
        return _NARROW
    return _MEDIUM if width <= 128 else _WIDE


def block_counts(query: Tensor, key: Tensor, value: Tensor) -> tuple[int, int, int]:
    """Blocks of queries, blocks of keys, and words with a bit for each of the latter."""
    plan = plan_for(query, value)
    n_blocks = -(-key.shape[1] // plan.keys)
    return -(-query.shape[1] // plan.queries), n_blocks, -(-n_blocks // 32)


def options_of(query: Tensor, value: Tensor, alpha: float, scale: float) -> dict[str, Any]:
    """What all kernels are told of widths, blocks, the order and the scale."""
    width, value_width, plan = query.shape[-1], value.shape[-1], plan_for(query, value)
    return {
        "factor": abs(scale) * (alpha - 1),
        "power": 2 if alpha == 1.5 else 1,
        "is_exact": query.dtype == torch.float32,
        "width": width,
        "value_width": value_width,
        "padded": max(16, triton.next_power_of_2(width)),
        "value_padded": max(16, triton.next_power_of_2(value_width)),
        "queries": plan.queries,
        "keys": plan.keys,
        # products of float32 numbers in three parts; half precision does not look at it
        "precision": "tf32x3",
    }


def fused_forward(
    query: Tensor, key: Tensor, value: Tensor, span: Tensor, scale: float, alpha: float
) -> FusedOutput:
    """The output and what the backward pass needs; ``span`` is (2, L), int32: starts and ends."""
    (heads, n, _), (key_heads, n_keys, _) = query.shape, key.shape
    n_query_blocks, n_blocks, n_words = block_counts(query, key, value)
    out = query.new_empty(heads, n, value.shape[-1])
    taus = query.new_empty(heads, n, dtype=torch.float32)
    origins = taus.new_empty(heads, n if query.dtype == torch.float32 else 0)
    words = query.new_zeros(heads, n_query_blocks, n_words, dtype=torch.int32)
    n_items = heads * n_query_blocks
    launch = plan_for(query, value).forward
    programs = launch.count_for(query.device, n_items)
    live = query.new_empty(programs, n_blocks + 1, dtype=torch.int32)
    marks = query.new_empty(programs, n_blocks + 1, dtype=torch.int8)
    with on_device(query.device):
        attention_forward[programs,](
            query if scale > 0 else -query, key, value, *span, out, taus, origins, words, live,
            marks, n=n, n_keys=n_keys, groups=heads // key_heads, n_words=n_words,
            n_items=n_items, n_heads=heads, n_scratch=n_blocks + 1,
            tolerance=_TOLERANCES[query.dtype],
            **options_of(query, value, alpha, scale), **launch.options, **_FUSED,
        )  # fmt: skip
    return FusedOutput(out, taus, origins, words)


def fused_backward(
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
    (heads, n, _), (key_heads, n_keys, _) = query.shape, key.shape
    n_query_blocks, n_blocks, n_words = block_counts(query, key, value)
    means = torch.empty_like(taus)
    by_query, by_key, by_value = (torch.empty_like(x) for x in (query, key, value))
    options = {"n": n, "n_keys": n_keys, "groups": heads // key_heads, "n_words": n_words}
    options |= options_of(query, value, alpha, scale)
    signed, plan = query if scale > 0 else -query, plan_for(query, value)
    items = heads * n_query_blocks, key_heads * -(-n_blocks // plan.pair)
    sizes = n_blocks, 2 * n_query_blocks
    live = [
        query.new_empty(launch.count_for(query.device, n_items), size, dtype=torch.int32)
        for launch, n_items, size in zip((plan.by_query, plan.by_key), items, sizes, strict=True)
    ]
    with on_device(query.device):
        attention_query_gradient[len(live[0]),](
            signed, key, value, upstream, out, *span, taus, origins, words, live[0], means,
            by_query, scale=scale, n_items=items[0], n_heads=heads, n_scratch=sizes[0],
            **options, **plan.by_query.options, **_FUSED,
        )  # fmt: skip
        attention_key_gradient[len(live[1]),](
            signed, key, value, upstream, *span, taus, origins, words, live[1], means, by_key,
            by_value, scale=abs(scale), n_items=items[1], n_key_heads=key_heads,
            n_query_blocks=n_query_blocks, n_scratch=sizes[1], together=plan.together,
            pair=plan.pair, **options, **plan.by_key.options, **_FUSED,
        )  # fmt: skip
    return by_query, by_key, by_value
