r"""Derivatives, all of them, in one place.

A loss has the gradient :math:`y^\star - y`, its gradient has the Hessian product of the core as
derivative, and that is linear in its direction. Three functions say so, :class:`_Value`,
:class:`_Gradient` and :class:`_HessianProduct`, each for backward and forward mode, so that double
backward and the transforms of ``torch.func`` compose, compiled or not. What has no derivative here
raises: targets, third derivatives, and forward mode inside of forward mode.

:class:`_Plain` is for plain training: it calls an engine without PyTorch's dispatcher, and computes
the gradient of a mean or a sum in the forward pass, where the scores are at hand, and only rescales
it in the backward pass. Without a reduction that would be a needless pass over the gradient, and in
float16 a gradient that waits for the loss scale would underflow; in float64 all backward passes
shall have the same digits, which two kernels do not promise. A compiled graph does without it,
since it could not rescale in place.
"""

from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.autograd import Function

from ..engines.triton.scale import Scale, as_tensor
from ..engines.triton.targets import Smoothed, Target
from . import _operators as operators
from ._arguments import is_plain, rows_along
from ._engine import engine_module
from ._reference import any_target

__all__ = ["link_rows", "loss_rows"]

Gradients = tuple[Tensor | None, ...]


def _apply(function: type[Function], *inputs: Any) -> Any:
    return function.apply(*inputs)  # type: ignore[no-untyped-call]  # PyTorch's is not annotated


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Keep the tensors and the options that a derivative needs."""
    del output
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)
    ctx.options = inputs[len(tensors) :]
    ctx.set_materialize_grads(False)


def _no_target_derivative() -> NoReturn:
    raise NotImplementedError(
        "the losses are differentiated in input and in weights that only multiply rows, not in "
        "target, nor in a weight that changes the target (with label_smoothing, pos_weight); "
        "detach those"
    )


def _no_third_derivative() -> NoReturn:
    raise NotImplementedError(
        "the losses have two derivatives in input and the links one; the next one is not there"
    )


def _check_one_forward_level() -> None:
    """Raise where forward mode runs inside of forward mode.

    PyTorch does not differentiate the ``jvp`` of a Function: the outer derivative would be zero.
    """
    levels = torch._C._functorch.get_interpreter_stack() or []
    if sum(level.key() == torch._C._functorch.TransformType.Jvp for level in levels) > 1:
        raise NotImplementedError(
            "forward mode inside of forward mode is not there for the losses and links; "
            "use torch.func.hessian, or jacrev inside of jacfwd"
        )


class _Value(Function):
    """scale · L(y, θ), row by row; differentiable in the scores and in the scale."""

    generate_vmap_rule = True
    setup_context = staticmethod(_keep)

    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        out: Tensor = operators.value(*inputs)
        return out

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None) -> Gradients:
        if upstream is None:
            return (None,) * 6
        theta, target, scale = ctx.saved_tensors
        by_theta = by_scale = None
        if ctx.needs_input_grad[0]:
            by_theta = _apply(_Gradient, theta, target, scale * upstream, *ctx.options)
        if ctx.needs_input_grad[1]:
            _no_target_derivative()
        if ctx.needs_input_grad[2]:
            by_scale = upstream * _apply(
                _Value, theta, target, torch.ones_like(scale), *ctx.options
            )
        return by_theta, None, by_scale, None, None, None

    @staticmethod
    def jvp(ctx: Any, theta_dot: Any, target_dot: Any, scale_dot: Any, *_: Any) -> Tensor:
        _check_one_forward_level()
        if target_dot is not None:
            _no_target_derivative()
        theta, target, scale = ctx.saved_tensors
        out = torch.zeros_like(scale)
        if theta_dot is not None:
            rows = _apply(_Gradient, theta, target, scale, *ctx.options)
            out = out + (rows * theta_dot).sum(-1).to(scale.dtype)
        if scale_dot is not None:
            out = out + _apply(_Value, theta, target, scale_dot, *ctx.options)
        return out


class _Gradient(Function):
    """scale · (y* − y), row by row; differentiable in the scores and in the scale."""

    generate_vmap_rule = True
    setup_context = staticmethod(_keep)

    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        out: Tensor = operators.gradient(*inputs)
        return out

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None) -> Gradients:
        if upstream is None:
            return (None,) * 6
        theta, target, scale = ctx.saved_tensors
        by_theta = by_scale = None
        if ctx.needs_input_grad[0]:
            by_theta = _hessian_product(theta, target, scale, upstream, ctx.options)
        if ctx.needs_input_grad[1]:
            _no_target_derivative()
        if ctx.needs_input_grad[2]:
            rows = _apply(_Gradient, theta, target, torch.ones_like(scale), *ctx.options)
            by_scale = (rows * upstream).sum(-1).to(scale.dtype)
        return by_theta, None, by_scale, None, None, None

    @staticmethod
    def jvp(ctx: Any, theta_dot: Any, target_dot: Any, scale_dot: Any, *_: Any) -> Tensor:
        _check_one_forward_level()
        if target_dot is not None:
            _no_target_derivative()
        theta, target, scale = ctx.saved_tensors
        out = torch.zeros_like(theta)
        if theta_dot is not None:
            out = out + _hessian_product(theta, target, scale, theta_dot, ctx.options)
        if scale_dot is not None:
            out = out + _apply(_Gradient, theta, target, scale_dot, *ctx.options)
        return out


def _hessian_product(
    theta: Tensor, target: Tensor, scale: Tensor, v: Tensor, options: tuple[str, str, int]
) -> Tensor:
    loss, _, ignore_index = options
    theta = _apply(_NoDerivative, theta)
    scale = _apply(_NoDerivative, scale)
    out: Tensor = _apply(_HessianProduct, theta, target, scale, v, loss, ignore_index)
    return out


class _HessianProduct(Function):
    """scale · ∇²L(y, θ) v, row by row; differentiable in v, in which it is linear and symmetric."""

    generate_vmap_rule = True
    setup_context = staticmethod(_keep)

    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        out: Tensor = operators.hessian_product(*inputs)
        return out

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None) -> Gradients:
        by_v = None
        if upstream is not None and ctx.needs_input_grad[3]:
            theta, target, scale, _ = ctx.saved_tensors
            by_v = _apply(_HessianProduct, theta, target, scale, upstream, *ctx.options)
        return None, None, None, by_v, None, None

    @staticmethod
    def jvp(ctx: Any, theta_dot: Any, _: Any, scale_dot: Any, v_dot: Any, *__: Any) -> Tensor:
        _check_one_forward_level()
        if theta_dot is not None or scale_dot is not None:
            _no_third_derivative()
        theta, target, scale, _v = ctx.saved_tensors
        out: Tensor = _apply(_HessianProduct, theta, target, scale, v_dot, *ctx.options)
        return out


class _NoDerivative(Function):
    """A tensor itself, which raises when somebody asks for the derivative in it.

    Not :class:`_HessianProduct` says so, whose backward pass also runs for the sake of v alone.
    """

    generate_vmap_rule = True
    setup_context = staticmethod(_keep)

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(*_: Any) -> NoReturn:
        _no_third_derivative()

    @staticmethod
    def jvp(*_: Any) -> NoReturn:
        _no_third_derivative()


def _as_rows(target: Target, theta: Tensor) -> Tensor:
    return target.rows(theta.shape[1]) if isinstance(target, Smoothed) else target


class _Plain(Function):
    """:class:`_Value` of plain tensors, or its sum, by an engine that is called directly.

    Where it is ``fused``, the gradient comes from the forward pass: the first backward pass hands
    it out, scaled in place. Without that, and in a second backward pass through the same graph, it
    is computed in the backward pass; by :class:`_Gradient`, where that is differentiated or mapped.
    """

    @staticmethod
    def forward(
        ctx: Any,
        theta: Tensor,
        target: Target,
        scale: Scale,
        options: tuple[str, str, int],
        summed: bool,
        fused: bool,
    ) -> Tensor:
        loss, engine, ignore_index = ctx.options = options
        ctx.save_for_backward(theta, *(target if isinstance(target, Smoothed) else (target,)))
        ctx.scale = scale
        call = engine_module(engine)
        value: Tensor
        if fused:
            # the gradient is not saved as the others are, since it is scaled in place, once
            value, ctx.gradient = call.value_and_gradient(theta, target, scale, loss, ignore_index)
        else:
            value, ctx.gradient = call.value(theta, target, scale, loss, ignore_index), None
        return value.sum() if summed else value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Gradients:
        rows, ctx.gradient = ctx.gradient, None
        loss, engine, ignore_index = ctx.options
        plain = not torch.is_grad_enabled() and is_plain(upstream)
        if plain and rows is not None:
            engine_module(engine).scale_rows_(rows, upstream)
            return rows, None, None, None, None, None
        theta, *parts = ctx.saved_tensors
        target = Smoothed(*parts) if len(parts) > 1 else parts[0]
        scale = as_tensor(ctx.scale, theta, parts[0], ignore_index) * upstream
        if plain:
            rows = engine_module(engine).gradient(theta, target, scale, loss, ignore_index)
        else:
            flat = theta if theta.ndim == 2 else rows_along(theta, 1)
            rows = _apply(_Gradient, flat, _as_rows(target, theta), scale, *ctx.options)
            if theta.ndim == 3:
                outer, k, inner = theta.shape
                rows = rows.reshape(outer, inner, k).transpose(1, 2)
        return rows, None, None, None, None, None


class _Link(Function):
    """ŷ(θ), row by row; its Jacobian is the Hessian of the Fenchel-Young loss at any target."""

    generate_vmap_rule = True
    setup_context = staticmethod(_keep)

    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        out: Tensor = operators.link(*inputs)
        return out

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None) -> Gradients:
        return None if upstream is None else _link_product(ctx, upstream), None

    @staticmethod
    def jvp(ctx: Any, theta_dot: Tensor, _: Any) -> Tensor:
        _check_one_forward_level()
        return _link_product(ctx, theta_dot)


def _link_product(ctx: Any, v: Tensor) -> Tensor:
    (theta,) = ctx.saved_tensors
    (loss,) = ctx.options
    scale = torch.ones_like(theta[:, 0])
    return _hessian_product(theta, any_target(theta, loss), scale, v, (loss, "reference", -1))


# The operators have their derivatives themselves, too, for whoever calls them by name.
for _operator, _function in (
    (operators.value, _Value),
    (operators.gradient, _Gradient),
    (operators.hessian_product, _HessianProduct),
    (operators.link, _Link),
):
    _operator.register_autograd(_function.backward, setup_context=_keep)


# Compilers take these two as they are and look at the operators inside, with their derivatives.
@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]  # PyTorch's is not annotated
def _differentiable_rows(*inputs: Any) -> Tensor:
    out: Tensor = _apply(_Value, *inputs)
    return out


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]  # PyTorch's is not annotated
def _differentiable_link(theta: Tensor, loss: str) -> Tensor:
    out: Tensor = _apply(_Link, theta, loss)
    return out


def loss_rows(
    theta: Tensor,
    target: Target,
    scale: Scale,
    loss: str,
    engine: str,
    ignore_index: int,
    *,
    summed: bool,
) -> Tensor:
    """scale · L(y, θ) of each row, shape (n,), or their sum, with all derivatives in θ.

    Labels may come with scores of shape (outer, k, inner), whose columns are the rows.
    """
    options = loss, engine, ignore_index
    parts = target if isinstance(target, Smoothed) else (target,)
    weights = scale if isinstance(scale, Tensor) else theta
    plain = not torch.compiler.is_compiling() and is_plain(theta, weights, *parts)
    columns = plain and engine == "triton" and isinstance(target, Tensor) and theta.ndim == 3
    if theta.ndim == 3 and not (columns and engine_module(engine).takes_columns(*theta.shape[1:])):
        theta = rows_along(theta, 1)
    if not plain or engine == "reference":
        target = _as_rows(target, theta)
        scale = as_tensor(scale, theta, target, ignore_index)
    out: Tensor
    if not plain:
        out = _differentiable_rows(theta, target, scale, *options)
        return out.sum() if summed else out
    given = any(part.requires_grad for part in parts)
    if not torch.is_grad_enabled() or not (theta.requires_grad or weights.requires_grad or given):
        out = engine_module(engine).value(theta, target, scale, loss, ignore_index)
    elif given:
        _no_target_derivative()
    elif isinstance(scale, Tensor) and scale.requires_grad:
        if theta.ndim == 3:
            theta = rows_along(theta, 1)
        out = _differentiable_rows(theta, _as_rows(target, theta), scale, *options)
    else:
        kernels = theta.dtype in (torch.float32, torch.bfloat16) and summed
        fused = kernels if engine == "triton" else theta.dtype != torch.float16
        out = _apply(_Plain, theta, target, scale, options, summed, fused)
        return out
    return out.sum() if summed else out


def link_rows(theta: Tensor, loss: str) -> Tensor:
    """ŷ(θ) of each row, shape (n, k), once differentiable."""
    out: Tensor = _differentiable_link(theta, loss)
    return out
