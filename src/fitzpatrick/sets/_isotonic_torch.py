"""Isotonic regression of PyTorch tensors: by kernels on a GPU, by NumPy elsewhere.

The operators are opaque to compilers and to ``torch.func``. The mean of a block is linear and
symmetric in its entries, so that it is its own derivative, forward and backward.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad
from torch.library import custom_op, register_vmap

from .._array import to_numpy, working_precision
from . import isotonic

_HAS_TRITON = find_spec("triton") is not None


def _kernels(x: Tensor) -> Any:
    """The module that serves rows where they are, or None for NumPy on the host."""
    name = isotonic.KERNELS.get(x.device.type)
    return None if name is None or not _HAS_TRITON else import_module(name)


@custom_op("fitzpatrick::decreasing_blocks", mutates_args=())
def _blocks(x: Tensor, log_weights: Tensor | None) -> Tensor:
    rows = [None if a is None else working_precision(a) for a in (x, log_weights)]
    if (kernels := _kernels(x)) is not None:
        starts: Tensor = kernels.decreasing_blocks(*rows)
        return starts
    found = isotonic.decreasing_blocks(*(None if a is None else to_numpy(a) for a in rows))
    return torch.tensor(found, device=x.device)


@custom_op("fitzpatrick::block_means", mutates_args=())
def _means(u: Tensor, starts: Tensor) -> Tensor:
    rows = working_precision(u)
    if (kernels := _kernels(u)) is not None:
        means: Tensor = kernels.block_means(rows, starts)
    else:
        means = torch.tensor(isotonic.block_means(to_numpy(rows), to_numpy(starts)))
    return means.to(u)


@_blocks.register_fake
def _(x: Tensor, _: Tensor | None) -> Tensor:
    return x.new_empty(x.shape, dtype=torch.bool)


@_means.register_fake
def _(u: Tensor, _: Tensor) -> Tensor:
    return u.new_empty(u.shape)


def _register_batches(operator: Any) -> None:
    """A batch of rows is one more axis in front of them."""

    def rule(
        info: Any, in_dims: tuple[int | None, ...], *given: Tensor | None
    ) -> tuple[Tensor, int]:
        def batch(x: Tensor | None, dim: int | None) -> Tensor | None:
            if x is None or dim is None:
                return None if x is None else x.expand(info.batch_size, *x.shape)
            return x.movedim(dim, 0)

        return operator(*map(batch, given, in_dims)), 0

    register_vmap(operator, rule)


_register_batches(_blocks)
_register_batches(_means)


def _save(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    del output
    ctx.save_for_backward(inputs[1])


def _pull_back(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
    return block_means(upstream, *ctx.saved_tensors), None


_means.register_autograd(_pull_back, setup_context=_save)


class _Means(Function):
    """The operator for transformations, which want this form, and forward mode."""

    generate_vmap_rule = True
    forward = staticmethod(_means)
    backward = staticmethod(_pull_back)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        _save(ctx, inputs, output)
        ctx.save_for_forward(inputs[1])

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        return block_means(tangent, *ctx.saved_tensors)


def decreasing_blocks(x: Tensor, log_weights: Tensor | None = None) -> Tensor:
    """Where blocks begin, which is locally constant."""
    w = None if log_weights is None else log_weights.detach()
    starts: Tensor = _blocks(x.detach(), w)
    return starts


def block_means(u: Tensor, starts: Tensor) -> Tensor:
    """Means of blocks, any number of times differentiable."""
    is_transformed = forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active()
    apply: Any = _Means.apply if is_transformed else _means
    means: Tensor = apply(u, starts)
    return means
