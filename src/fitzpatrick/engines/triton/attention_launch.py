"""Entmax attention as functions of PyTorch tensors: one kernel forward, two backward.

Arguments are trusted, and all but masks contiguous: queries (heads, L, E), with keys and values for
each group of them, and of each query the key that it is level with and the interval that it sees.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from .attention import attention_forward, attention_key_gradient, attention_query_gradient
from .launch import on_device
from .plan import KernelOptions

# the default of fused multiply-adds changes between versions of Triton
_FUSED = {"enable_fp_fusion": True}
# Errors of the size of their squares are rounded away.
_TOLERANCES = {torch.bfloat16: 0.08, torch.float16: 0.02, torch.float32: 1e-4}


class FusedOutput(NamedTuple):
    """What the forward pass leaves to the backward pass, the output first."""

    out: Tensor  # (heads, L, D)
    taus: Tensor  # (heads, L)
    origins: Tensor  # (heads, L): the largest scores, if τ is counted from them, else empty
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
    def options(self) -> dict[str, Any]:
        """What Triton's compiler is told."""
        options = {"num_warps": self.num_warps, **_FUSED}
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


def counts_from_top(query: Tensor, mask: Tensor | None) -> bool:
    """True if τ is counted from the largest score, which keeps its digits.

    In half precision products have few; numbers that are added may be of any size.
    """
    return query.dtype == torch.float32 or (mask is not None and mask.dtype != torch.bool)


def positive(scales: Tensor) -> Tensor:
    """Scales in single precision, none so small that −∞ times it would be NaN."""
    return scales.float().clamp(min=1e-30)


class Bias(NamedTuple):
    """What scores have besides products and one scale; each is None unless there is one."""

    mask: Tensor | None = None  # (B, K, G, L, S), broadcast: boolean, or added to the scores
    slopes: Tensor | None = None  # (heads,)
    scales: Tensor | None = None  # (heads,), in place of the scale; not negative

    def pointers(self, heads: Sequence[int], n: int, unused: Tensor) -> tuple[Any, ...]:
        """Mask, where its parts for the heads (B, K, G) begin, slopes, scales, and its stride."""
        mask, starts, stride = unused, unused, 0
        if self.mask is not None:
            mask = self.mask if self.mask.stride(-1) == 1 else self.mask.contiguous()
            mask = mask.view(torch.uint8) if mask.dtype == torch.bool else mask
            *strides, stride, _ = mask.expand(*heads, n, -1).stride()
            places = (torch.arange(size, device=mask.device) for size in heads)
            i, j, g = torch.meshgrid(*places, indexing="ij")
            starts = (i * strides[0] + j * strides[1] + g * strides[2]).flatten()
        slopes = unused if self.slopes is None else self.slopes.float().contiguous()
        scales = unused if self.scales is None else positive(self.scales).contiguous()
        return mask, starts, slopes, scales, stride


_NO_BIAS = Bias()


@dataclass(frozen=True)
class _Options(KernelOptions):
    """What a kernel is compiled for."""

    power: int
    beta: float
    is_exact: bool
    width: int
    value_width: int
    padded: int
    value_padded: int
    queries: int
    keys: int
    together: int
    pair: int
    stages: int
    mask: str
    mask_step: int
    has_slopes: bool
    has_scales: bool
    # products of float32 numbers in three parts; half precision does not look at it
    precision: str = "tf32x3"


def options_of(
    query: Tensor, value: Tensor, alpha: float, stages: int, bias: Bias = _NO_BIAS
) -> _Options:
    """What a kernel is told of widths, blocks, the order and the scores."""
    width, value_width, plan = query.shape[-1], value.shape[-1], plan_for(query, value)
    mask = bias.mask
    kind = "" if mask is None else "seen" if mask.dtype == torch.bool else "added"
    return _Options(
        power=2 if alpha == 1.5 else 1,
        beta=alpha - 1,
        is_exact=counts_from_top(query, mask),
        width=width,
        value_width=value_width,
        padded=max(16, triton.next_power_of_2(width)),
        value_padded=max(16, triton.next_power_of_2(value_width)),
        queries=plan.queries,
        keys=plan.keys,
        together=plan.together,
        pair=plan.pair,
        stages=stages,
        mask=kind,
        mask_step=int(mask is not None and mask.shape[-1] > 1),
        has_slopes=bias.slopes is not None,
        has_scales=bias.scales is not None,
    )


def fused_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    span: Tensor,
    heads: Sequence[int],
    scale: float,
    alpha: float,
    bias: Bias = _NO_BIAS,
) -> FusedOutput:
    """The output and what the backward pass needs.

    ``span`` is (3, L), int32: levels, starts and ends; ``heads`` is (B, K, G), whose product is the
    number of heads of the queries.
    """
    (n_heads, n, _), (key_heads, n_keys, _) = query.shape, key.shape
    n_query_blocks, n_blocks, n_words = block_counts(query, key, value)
    out = query.new_empty(n_heads, n, value.shape[-1])
    taus = query.new_empty(n_heads, n, dtype=torch.float32)
    origins = taus.new_empty(n_heads, n if counts_from_top(query, bias.mask) else 0)
    words = query.new_zeros(n_heads, n_query_blocks, n_words, dtype=torch.int32)
    n_items = n_heads * n_query_blocks
    launch = plan_for(query, value).forward
    programs = launch.count_for(query.device, n_items)
    live = query.new_empty(programs, n_blocks + 1, dtype=torch.int32)
    marks = query.new_empty(programs, n_blocks + 1, dtype=torch.int8)
    levels, *interval = span
    *added, mask_stride = bias.pointers(heads, n, taus)
    with on_device(query.device):
        attention_forward[programs,](
            query if scale > 0 else -query, key, value, *interval, levels, *added, out, taus,
            origins, words, live, marks, scale=abs(scale), n=n, n_keys=n_keys,
            groups=n_heads // key_heads, n_words=n_words, n_items=n_items, n_heads=n_heads,
            n_scratch=n_blocks + 1, mask_stride=mask_stride, tolerance=_TOLERANCES[query.dtype],
            o=options_of(query, value, alpha, launch.stages, bias), **launch.options,
        )  # fmt: skip
    return FusedOutput(out, taus, origins, words)


def fused_backward(
    upstream: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    span: Tensor,
    found: FusedOutput,
    heads: Sequence[int],
    scale: float,
    alpha: float,
    bias: Bias = _NO_BIAS,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients in query, key and value, and in scales, of each query (heads, L)."""
    (n_heads, n, _), (key_heads, n_keys, _) = query.shape, key.shape
    n_query_blocks, n_blocks, n_words = block_counts(query, key, value)
    out, taus, origins, words = found
    means = torch.empty_like(taus)
    by_query, by_key, by_value = (torch.empty_like(x) for x in (query, key, value))
    by_scale = taus.new_empty(taus.shape if bias.scales is not None else (0,))
    plan, (levels, *interval) = plan_for(query, value), span
    *added, mask_stride = bias.pointers(heads, n, taus)
    numbers = {"scale": abs(scale), "n": n, "n_keys": n_keys, "groups": n_heads // key_heads}
    numbers |= {"n_words": n_words, "mask_stride": mask_stride}
    signed = query if scale > 0 else -query
    items = n_heads * n_query_blocks, key_heads * -(-n_blocks // plan.pair)
    sizes = n_blocks, 2 * n_query_blocks
    launches = plan.by_query, plan.by_key
    live = [
        query.new_empty(launch.count_for(query.device, n_items), size, dtype=torch.int32)
        for launch, n_items, size in zip(launches, items, sizes, strict=True)
    ]
    options = [options_of(query, value, alpha, launch.stages, bias) for launch in launches]
    with on_device(query.device):
        attention_query_gradient[len(live[0]),](
            signed, key, value, upstream, out, *interval, levels, *added, taus, origins, words,
            live[0], means, by_query, by_scale, **numbers, n_items=items[0], n_heads=n_heads,
            n_scratch=sizes[0], o=options[0], **plan.by_query.options,
        )  # fmt: skip
        attention_key_gradient[len(live[1]),](
            signed, key, value, upstream, *interval, levels, *added, taus, origins, words, live[1],
            means, by_key, by_value, **numbers, n_items=items[1], n_key_heads=key_heads,
            n_query_blocks=n_query_blocks, n_scratch=sizes[1], o=options[1], **plan.by_key.options,
        )  # fmt: skip
    return by_query if scale > 0 else -by_query, by_key, by_value, by_scale
