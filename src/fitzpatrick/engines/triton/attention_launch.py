"""Entmax attention as functions of PyTorch tensors: one kernel forward, two backward.

Arguments are trusted: queries, keys and values are contiguous, scales of heads are not negative,
and there are the first keys and the last ones, which lie within the keys.

The forward pass leaves the output, (B, K, G, L, D); τ, (B, K, G, L); the largest scores, if τ is
counted from them; and a bit for each block of queries and of keys, 1 where there is a weight.
"""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .attention import (
    MASK_UNIT,
    MAX_NOTED,
    attention_forward,
    attention_key_gradient,
    attention_query_gradient,
)
from .attention_call import Numbers, Tensors
from .launch import launch as launch_plan
from .plan import KernelOptions, Plan, has_fast_instructions

# Of the square of a step of τ, so that the weights' sum is off by no more than they are rounded.
_TOLERANCES = {torch.bfloat16: 0.03, torch.float16: 0.003, torch.float32: 5e-6}


class _Plan(NamedTuple):
    """The sizes of blocks, and how the kernels are compiled."""

    queries: int
    keys: int
    pair: int  # blocks of keys whose gradients a program computes at once, one or two
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
        # the default of fused multiply-adds changes between versions of Triton
        options = {"num_warps": self.num_warps, "enable_fp_fusion": True}
        return options if self.maxnreg is None else options | {"maxnreg": self.maxnreg}

    def count_for(self, device: torch.device, n_items: int) -> int:
        """The number of programs for items that each of them takes in turn."""
        if device.type != "cuda":
            return min(n_items, 3)
        return min(n_items, self.programs * _count_processors(device))


@functools.cache
def _count_processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


# By width, for half precision and then for single precision.
_NARROW = _Plan(64, 64, 1, _Launch(4, 4, 3, 128), _Launch(2, 4, 2), _Launch(2, 4, 2))
_MEDIUM = _Plan(64, 64, 1, _Launch(2, 4, 3), _Launch(2, 4, 2), _Launch(2, 4, 2))
_WIDE = _Plan(64, 32, 2, _Launch(1, 8, 2), _Launch(1, 8, 2), _Launch(1, 8, 2))
_SINGLE = _Plan(64, 32, 1, _Launch(2, 4, 2), _Launch(2, 4, 2), _Launch(2, 4, 2))
_SINGLE_MEDIUM = _Plan(32, 32, 1, _Launch(2, 4, 2), _Launch(2, 4, 2), _Launch(1, 4, 1))


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
    pair: int
    stages: int
    max_guesses: int  # after these τ is what Newton's method finds, which always ends
    mask: str
    mask_step: int
    has_slopes: bool
    has_scales: bool
    fast: bool
    # products of float32 numbers in three parts; half precision does not look at it
    precision: str = "tf32x3"

    __hash__ = object.__hash__  # equal ones are the same


_options = functools.cache(_Options)  # constants of Triton take long to make


def plan_for(t: Tensors) -> _Plan:
    """The plan for the dtype and the width."""
    width = max(t.query.shape[-1], t.value.shape[-1])
    if t.query.dtype == torch.float32:
        return _SINGLE if width <= 64 else _SINGLE_MEDIUM
    plan = _NARROW if width <= 64 else _MEDIUM if width <= 128 else _WIDE
    return plan if t.mask is None or plan is _WIDE else plan._replace(forward=_MEDIUM.forward)


def _count_blocks(t: Tensors) -> tuple[int, int]:
    """Blocks of queries and of keys."""
    plan = plan_for(t)
    return -(-t.query.shape[3] // plan.queries), -(-t.key.shape[2] // plan.keys)


def _is_exact(t: Tensors) -> bool:
    """True if τ is counted from the largest score, which keeps its digits.

    In half precision products have few; numbers that are added may be of any size.
    """
    return t.query.dtype == torch.float32 or (t.mask is not None and t.mask.dtype != torch.bool)


def allocate(t: Tensors) -> list[Tensor]:
    """Room for what the forward pass leaves."""
    n_query_blocks, n_blocks = _count_blocks(t)
    *heads, n, _ = t.query.shape
    taus = t.query.new_empty(*heads, n, dtype=torch.float32)
    words = *heads, n_query_blocks, -(-n_blocks // 32)
    return [
        t.query.new_empty(*heads, n, t.value.shape[-1]),
        taus,
        torch.empty_like(taus) if _is_exact(t) else taus.new_empty(0),
        t.query.new_zeros(words, dtype=torch.int32),
    ]


def options_of(t: Tensors, numbers: Numbers, stages: int) -> _Options:
    """What a kernel is told of widths, blocks, the order and the scores."""
    width, value_width, plan, mask = t.query.shape[-1], t.value.shape[-1], plan_for(t), t.mask
    kind = "" if mask is None else "seen" if mask.dtype == torch.bool else "added"
    return _options(
        power=2 if numbers.alpha == 1.5 else 1,
        beta=numbers.alpha - 1,
        is_exact=_is_exact(t),
        width=width,
        value_width=value_width,
        padded=max(16, 1 << (width - 1).bit_length()),
        value_padded=max(16, 1 << (value_width - 1).bit_length()),
        queries=plan.queries,
        keys=plan.keys,
        pair=plan.pair,
        stages=stages,
        max_guesses=6 if numbers.alpha == 1.5 else 2,
        mask=kind,
        mask_step=int(mask is not None and mask.shape[-1] > 1),
        has_slopes=t.slopes is not None,
        has_scales=t.scale is not None,
        fast=has_fast_instructions(),
    )


def _with_even_rows(mask: Tensor) -> Tensor:
    """The mask, or a copy of it, with rows that begin at multiples of ``MASK_UNIT`` elements."""
    *shape, size = mask.shape
    *strides, step = mask.stride()
    is_even = all(
        stride % MASK_UNIT == 0 for n, stride in zip(shape, strides, strict=True) if n > 1
    )
    if is_even and (step == 1 or size == 1):
        return mask
    room = mask.new_empty(*shape, -(-size // MASK_UNIT) * MASK_UNIT)
    return room[..., :size].copy_(mask)


def _mask_arguments(t: Tensors, unused: Tensor) -> dict[str, Any]:
    """The mask, where its part for each head begins, and its stride from query to query."""
    if t.mask is None:
        return {"mask": unused, "mask_starts": unused, "mask_stride": 0}
    mask = _with_even_rows(t.mask.view(torch.uint8) if t.mask.dtype == torch.bool else t.mask)
    *heads, n, _ = t.query.shape
    *steps, stride, _ = (x // MASK_UNIT for x in mask.expand(*heads, n, -1).stride())
    starts = torch.zeros(heads, dtype=torch.int64, device=mask.device)
    for axis, (size, step) in enumerate(zip(heads, steps, strict=True)):
        if size > 1 and step > 0:
            along = torch.arange(0, size * step, step, device=mask.device)
            starts += along.reshape(-1, *[1] * (2 - axis))
    return {"mask": mask, "mask_starts": starts, "mask_stride": stride}


def _arguments(t: Tensors, numbers: Numbers, state: list[Tensor]) -> dict[str, Any]:
    """What all kernels take; the sign of the scale goes to the queries."""
    taus, origins, words = state
    least = 1e-30  # −∞ times a scale that is smaller than any number would be NaN
    scales = taus if t.scale is None else t.scale.float().clamp(min=least).contiguous()
    return {
        "query": t.query if numbers.scale > 0 else -t.query,
        "key": t.key,
        "value": t.value,
        "starts": t.starts,
        "ends": t.ends,
        "levels": t.starts if t.levels is None else t.levels,
        **_mask_arguments(t, taus),
        "slopes": taus if t.slopes is None else t.slopes.float().contiguous(),
        "scales": scales,
        "taus": taus,
        "origins": origins,
        "words": words,
        "scale": max(abs(numbers.scale), least),
        "n": t.query.shape[3],
        "n_keys": t.key.shape[2],
        "groups": t.query.shape[2],
        "n_words": words.shape[-1],
    }


@functools.cache
def _plan_of(kernel: Any, launch: _Launch, o: _Options) -> Plan:
    return Plan(kernel, {"o": o, **launch.options}, takes_all_sizes=True)


def _start(kernel: Any, programs: int, launch: _Launch, o: _Options, **given: Any) -> None:
    """Start a kernel with arguments by their names, of which tensors come first."""
    values = [given[name] for name in kernel.arg_names if name != "o"]
    tensors = tuple(x for x in values if isinstance(x, Tensor))
    numbers = tuple(values[len(tensors) :])
    launch_plan(_plan_of(kernel, launch, o), (programs,), tensors, numbers)


def fused_forward(t: Tensors, numbers: Numbers) -> list[Tensor]:
    """The output and what the backward pass needs."""
    out, *state = allocate(t)
    (n_query_blocks, n_blocks), plan = _count_blocks(t), plan_for(t)
    launch = plan.forward
    n_heads = t.query.shape[:3].numel()
    n_items, n_scratch = n_heads * n_query_blocks, n_blocks + 1
    programs = launch.count_for(out.device, n_items)
    _start(
        attention_forward,
        programs,
        launch,
        options_of(t, numbers, launch.stages),
        **_arguments(t, numbers, state),
        out=out,
        live=out.new_empty(programs, n_scratch, dtype=torch.int32),
        taken=out.new_zeros(1, dtype=torch.int32),
        marks=out.new_empty(programs, 2, n_scratch, dtype=torch.int8),
        noted=out.new_empty(programs, plan.queries, MAX_NOTED, 4, dtype=torch.float32),
        n_items=n_items,
        n_heads=n_heads,
        n_scratch=n_scratch,
        tolerance=_TOLERANCES[out.dtype],
    )
    return [out, *state]


def fused_backward(upstream: Tensor, found: list[Tensor], t: Tensors, numbers: Numbers) -> Tensors:
    """The gradients in query, key and value, and in the scale if that is a tensor."""
    out, *state = found
    plan, (n_query_blocks, n_blocks) = plan_for(t), _count_blocks(t)
    n_heads, n_key_heads = t.query.shape[:3].numel(), t.key.shape[:2].numel()
    by_query, by_key, by_value = (torch.empty_like(x) for x in t[:3])
    by_scale: Any = state[0] if t.scale is None else torch.empty_like(state[0])
    shared = {
        **_arguments(t, numbers, state),
        "upstream": upstream.contiguous(),
        "means": state[0].new_empty(*state[0].shape, 2),
    }
    of_queries = {"out": out, "by_query": by_query, "by_scale": by_scale, "n_heads": n_heads}
    of_keys = {"by_key": by_key, "by_value": by_value, "n_key_heads": n_key_heads}
    of_keys |= {"n_query_blocks": n_query_blocks}
    n_pairs = -(-n_blocks // plan.pair)
    taken = iter(out.new_zeros(2, dtype=torch.int32))
    for kernel, launch, more, n_items, n_scratch in (
        (attention_query_gradient, plan.by_query, of_queries, n_heads * n_query_blocks, n_blocks),
        (attention_key_gradient, plan.by_key, of_keys, n_key_heads * n_pairs, 2 * n_query_blocks),
    ):
        programs = launch.count_for(out.device, n_items)
        live = out.new_empty(programs, n_scratch, dtype=torch.int32)
        o = options_of(t, numbers, launch.stages)
        sizes = {"n_items": n_items, "n_scratch": n_scratch}
        more |= {"live": live, "taken": next(taken)}
        _start(kernel, programs, launch, o, **shared, **more, **sizes)
    by_query = by_query if numbers.scale > 0 else -by_query
    by_scale = None if t.scale is None else by_scale.sum(-1)
    return Tensors(by_query, by_key, by_value, scale=by_scale)
