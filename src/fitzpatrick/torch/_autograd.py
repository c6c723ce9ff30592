r"""Derivatives, all of them, in one place.

A loss has the gradient :math:`y^\star - y`, and its gradient has the Hessian product of the core as
derivative. Two functions say so, :class:`_Value` and :class:`_Gradient`, each for backward and
forward mode, so that double backward and the transforms of ``torch.func`` compose.
:class:`_FusedSum` is for plain training: it computes the gradient in the forward pass, where the
scores are at hand, and only rescales it in the backward pass.

While a compiler traces, the operators are called themselves, with the same derivatives registered
for the backward pass.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from . import _operators as operators
from ._engine import triton_engine

__all__ = ["link_rows", "loss_rows", "loss_sum"]


def _apply(function: type[Function], *inputs: Any) -> Any:
    return function.apply(*inputs)  # type: ignore[no-untyped-call]  # PyTorch's is not annotated


def _saved(ctx: Any) -> tuple[Tensor, Tensor, Tensor]:
    theta, target, scale = ctx.saved_tensors
    return theta, target, scale


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Keep what a derivative needs: scores, target and scale, and the options behind them."""
    del output
    theta, target, scale, loss, engine, ignore_index = inputs
    ctx.save_for_backward(theta, target, scale)
    ctx.options = loss, engine, ignore_index


def _keep_both(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _keep(ctx, inputs, output)
    ctx.save_for_forward(*inputs[:3])


def _gradient(theta: Tensor, target: Tensor, scale: Tensor, options: Any) -> Tensor:
    """Gradient rows, differentiable themselves."""
    if torch.compiler.is_compiling():
        out: Tensor = operators.gradient(theta, target, scale, *options)
    else:
        out = _apply(_Gradient, theta, target, scale, *options)
    return out


def _value_backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
    theta, target, scale = _saved(ctx)
    return _gradient(theta, target, scale * upstream, ctx.options), None, None, None, None, None


def _value_jvp(ctx: Any, theta_dot: Tensor, *_: Any) -> Tensor:
    theta, target, scale = _saved(ctx)
    rows = _gradient(theta, target, scale, ctx.options)
    return (rows * theta_dot).sum(-1).to(scale.dtype)


def _gradient_backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
    theta, target, scale = _saved(ctx)
    loss, _, ignore_index = ctx.options
    by_theta = by_scale = None
    if ctx.needs_input_grad[0]:
        by_theta = operators.hessian_product(theta, target, scale, upstream, loss, ignore_index)
    if ctx.needs_input_grad[2]:
        rows = operators.gradient(theta, target, torch.ones_like(scale), *ctx.options)
        by_scale = (rows * upstream).sum(-1).to(scale.dtype)
    return by_theta, None, by_scale, None, None, None


class _Value(Function):
    """scale · L(y, θ), row by row."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        out: Tensor = operators.value(*inputs)
        return out

    setup_context = staticmethod(_keep_both)
    backward = staticmethod(_value_backward)
    jvp = staticmethod(_value_jvp)


class _Gradient(Function):
    """scale · (y* − y), row by row; differentiable in the scores and in the scale."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        out: Tensor = operators.gradient(*inputs)
        return out

    setup_context = staticmethod(_keep_both)
    backward = staticmethod(_gradient_backward)

    @staticmethod
    def jvp(
        ctx: Any, theta_dot: Tensor | None, _: Any, scale_dot: Tensor | None, *__: Any
    ) -> Tensor:
        theta, target, scale = _saved(ctx)
        loss, _engine, ignore_index = ctx.options
        out = torch.zeros_like(theta)
        if theta_dot is not None:
            out = operators.hessian_product(theta, target, scale, theta_dot, loss, ignore_index)
        if scale_dot is not None:
            out = out + operators.gradient(theta, target, scale_dot, *ctx.options)
        return out


class _FusedSum(Function):
    """The sum of :class:`_Value` over rows, with the gradient computed in the forward pass.

    The first backward pass hands the gradient out, scaled in place; a second one through the same
    graph, and a backward pass that is itself differentiated, compute it anew.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        value, ctx.gradient = _value_and_gradient(*inputs)
        _keep_both(ctx, inputs, value)
        return value.sum()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        rows, ctx.gradient = ctx.gradient, None
        if rows is None or torch.is_grad_enabled():
            return _value_backward(ctx, upstream)
        if ctx.options[1] == "triton":
            triton_engine().scale_rows_(rows, upstream)
        else:
            rows.mul_(upstream)
        return rows, None, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        return _value_jvp(ctx, *tangents).sum()


def _value_and_gradient(
    theta: Tensor, target: Tensor, scale: Tensor, loss: str, engine: str, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Both; past the dispatcher, which costs more than a small kernel, where nothing listens."""
    if engine == "triton" and type(theta) is Tensor and not torch._C._len_torch_dispatch_stack():
        kernels = triton_engine()
        value, rows = kernels.value_and_gradient(theta, target, scale, loss, ignore_index)
    else:
        value, rows = operators.value_and_gradient(theta, target, scale, loss, engine, ignore_index)
    return value, rows


class _Link(Function):
    """ŷ(θ), row by row; its Jacobian is the Hessian of the Fenchel-Young loss at any target."""

    generate_vmap_rule = True

    @staticmethod
    def forward(theta: Tensor, loss: str) -> Tensor:
        out: Tensor = operators.link(theta, loss)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        del output
        theta, ctx.loss = inputs
        ctx.save_for_backward(theta)
        ctx.save_for_forward(theta)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        return _link_product(ctx, upstream), None

    @staticmethod
    def jvp(ctx: Any, theta_dot: Tensor, _: Any) -> Tensor:
        return _link_product(ctx, theta_dot)


def _link_product(ctx: Any, v: Tensor) -> Tensor:
    (theta,) = ctx.saved_tensors
    target = torch.zeros_like(theta)
    scale = torch.ones_like(theta[:, 0])
    out: Tensor = operators.hessian_product(theta, target, scale, v, ctx.loss, 0)
    return out


def _keep_link(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    del output
    theta, ctx.loss = inputs
    ctx.save_for_backward(theta)


operators.value.register_autograd(_value_backward, setup_context=_keep)
operators.gradient.register_autograd(_gradient_backward, setup_context=_keep)
operators.link.register_autograd(
    lambda ctx, upstream: (_link_product(ctx, upstream), None), setup_context=_keep_link
)


def loss_rows(
    theta: Tensor, target: Tensor, scale: Tensor, loss: str, engine: str, ignore_index: int
) -> Tensor:
    """scale · L(y, θ) of each row, shape (n,), with all derivatives in θ."""
    inputs = theta, target, scale, loss, engine, ignore_index
    if torch.compiler.is_compiling():
        out: Tensor = operators.value(*inputs)
    else:
        out = _apply(_Value, *inputs)
    return out


def loss_sum(
    theta: Tensor, target: Tensor, scale: Tensor, loss: str, engine: str, ignore_index: int
) -> Tensor:
    """The sum of :func:`loss_rows`."""
    inputs = theta, target, scale, loss, engine, ignore_index
    if not torch.compiler.is_compiling() and _may_fuse(theta):
        out: Tensor = _apply(_FusedSum, *inputs)
        return out
    return loss_rows(*inputs).sum()


def _may_fuse(theta: Tensor) -> bool:
    return (
        theta.requires_grad
        and torch.is_grad_enabled()
        # in half precision a gradient that waits for the loss scale would underflow
        and theta.dtype != torch.float16
        and not torch._C._are_functorch_transforms_active()
    )


def link_rows(theta: Tensor, loss: str) -> Tensor:
    """ŷ(θ) of each row, shape (n, k), once differentiable."""
    if torch.compiler.is_compiling():
        out: Tensor = operators.link(theta, loss)
    else:
        out = _apply(_Link, theta, loss)
    return out
