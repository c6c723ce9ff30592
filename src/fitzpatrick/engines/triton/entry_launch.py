"""Entry-wise losses as functions of PyTorch tensors: loss and gradient in one kernel.

Arguments are trusted: scores and targets of one shape, weights that are expanded to it.
"""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .entries import entry_losses
from .launch import launch
from .plan import KernelOptions, Plan, arithmetic, ceil_div, working_dtype

_BLOCK = 1024


class EntryCall(NamedTuple):
    """What is asked for, of which kernel of the table."""

    kernel: str
    tightness: float
    is_summed: bool
    with_value: bool = True
    with_gradient: bool = True


@dataclass(frozen=True)
class EntryOptions(KernelOptions):
    """What a kernel is compiled for."""

    kind: str
    lower: float
    upper: float
    mode: str
    acc: Any
    fast: bool
    refine: int
    weighted: bool
    pos_weighted: bool
    with_value: bool
    with_gradient: bool
    summed: bool
    rough: bool = False
    block: int = _BLOCK


@functools.lru_cache(maxsize=1024)
def plan_entries(kernel: str, dtype: torch.dtype, **given: Any) -> Plan:
    """How to compute entries by a kernel of the table, with those of its options."""
    kind, *bounds = kernel.split(":")
    lower, upper = map(float, bounds or ("-inf", "inf"))
    refine = 2 if dtype == torch.float64 else 1
    options = EntryOptions(kind, lower, upper, refine=refine, **arithmetic(dtype), **given)
    return Plan(entry_losses, {"o": options, "num_warps": 4})


def _strides(weight: Tensor | None, k: int, like: Tensor) -> tuple[Tensor, int, int]:
    """A weight that is expanded to the scores, and its strides along rows and columns."""
    if weight is None:
        return like, 0, 0
    if any(weight.stride()[:-1]):  # more than a row that repeats itself
        weight = weight.reshape(-1, k)
        return weight, weight.stride(0), weight.stride(1)
    return weight, 0, weight.stride(-1) if weight.ndim else 0


def entry_loss(
    theta: Tensor,
    target: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    divisor: int,
    call: EntryCall,
) -> tuple[Tensor, Tensor]:
    """Losses in working precision, or sums of parts of them, and gradients in the dtype of θ.

    The sums are as many as there are programs; empty where not wanted.
    """
    theta, target = theta.contiguous(), target.contiguous()
    n, k = theta.numel(), theta.shape[-1] if theta.ndim else 1
    programs = ceil_div(n, _BLOCK)
    size = (programs if call.is_summed else n) if call.with_value else 0
    values = theta.new_empty(size, dtype=working_dtype(theta.dtype))
    gradients = torch.empty_like(theta) if call.with_gradient else theta.new_empty(0)
    if n == 0:
        return values, gradients
    plan = plan_entries(
        call.kernel,
        theta.dtype,
        mode={0.0: "zero", 1.0: "one"}.get(call.tightness, "other"),
        weighted=weight is not None,
        pos_weighted=pos_weight is not None,
        with_value=call.with_value,
        with_gradient=call.with_gradient,
        summed=call.is_summed,
    )
    weight, *weight_strides = _strides(weight, k, theta)
    pos_weight, *pos_strides = _strides(pos_weight, k, theta)
    launch(
        plan, (programs,), (theta, target, weight, pos_weight, values, gradients),
        (n, k, *weight_strides, *pos_strides, divisor), (call.tightness,),
    )  # fmt: skip
    return values if call.is_summed else values.reshape(theta.shape if size else 0), gradients
