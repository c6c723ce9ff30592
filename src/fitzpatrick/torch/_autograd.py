r"""Derivatives, all of them, in one place.

A loss has the gradient :math:`y^\star - y`, its gradient has the Hessian product of the core as
derivative, and that is linear in its direction. Three functions say so, :class:`_Value`,
:class:`_Gradient` and :class:`_HessianProduct`, each for backward and forward mode, so that double
backward and the transforms of ``torch.func`` compose, compiled or not. They take the arguments of
the operators. What has no derivative here raises: targets, third derivatives, and forward mode
inside of forward mode.

:class:`_Computed` is for plain training: an engine is called without PyTorch's dispatcher, and
computes the gradient of a mean or a sum in the forward pass, where the scores are at hand; the
backward pass only rescales it. Without a reduction that would be a needless pass over the
gradient, and in float16 a gradient that waits for the loss scale would underflow. In float64 every
backward pass returns the same digits, which two kernels do not promise. A compiled graph does
without it, since it could not rescale in place. Entry-wise losses have an operator for it that
returns both: the compiler fuses the rescaling with the backward pass of what stands before.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.autograd import Function

from . import _graphs as graphs
from . import _operators as operators
from . import _reference as reference
from ._arguments import check_one_forward_level, is_plain, rows_along
from ._engines import compute, compute_entries, kernel_of, scale_, takes_columns, takes_transforms
from ._handles import LossCall
from ._stats import StatsRequest, numbers_of
from ._targets import (
    Scale,
    Smoothed,
    Target,
    as_rows,
    parts_of,
    scale_vector,
    target_of,
    working_dtype,
)
from ._transform import Scaling

Gradients = tuple[Tensor | None, ...]
Rows = Callable[..., Tensor]
# The backward pass of a loss that is computed already. From the tensors that it was computed of,
# the gradients that came with it (in the first backward pass; they may be overwritten), the
# upstream gradient and which tensors want a gradient: the gradients in the first tensors.
Pullback = Callable[[Any, Gradients | None, Tensor, Any], Gradients]

THIRD_DERIVATIVE = (
    "the losses have two derivatives in input and the links one; there is no further one"
)


def apply(function: type[Function], *inputs: Any) -> Tensor:
    """Call a function of PyTorch's, which has no types."""
    out: Tensor = function.apply(*inputs)  # type: ignore[no-untyped-call]
    return out


def _save_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    del output
    tensors = [x if isinstance(x, Tensor) else None for x in inputs]
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)
    ctx.inputs = [None if isinstance(x, Tensor) else x for x in inputs]
    ctx.set_materialize_grads(False)


def _saved_inputs(ctx: Any) -> list[Any]:
    saved = zip(ctx.saved_tensors, ctx.inputs, strict=True)
    return [other if tensor is None else tensor for tensor, other in saved]


def no_target_derivative() -> NoReturn:
    raise NotImplementedError(
        "the losses are differentiated in input and in weights that only multiply rows, not in "
        "target, nor in a weight that changes the target (with label_smoothing, pos_weight); "
        "detach those"
    )


def _pull_back(ctx: Any, upstream: Tensor | None, by_theta: Rows, by_scale: Rows) -> Gradients:
    """The derivatives in the scores and in the scale that are asked for."""
    inputs = _saved_inputs(ctx)
    theta, target, scale, *others = inputs
    out: list[Tensor | None] = [None for _ in inputs]
    if upstream is not None:
        if ctx.needs_input_grad[0]:
            out[0] = by_theta(theta, target, scale, upstream, *others)
        if ctx.needs_input_grad[1]:
            no_target_derivative()
        if ctx.needs_input_grad[2]:
            ones = torch.ones_like(scale)
            out[2] = by_scale(theta, target, ones, upstream, *others).to(scale.dtype)
    return tuple(out)


def _push_forward(ctx: Any, tangents: Any, function: type[Function], by_theta: Rows) -> Tensor:
    """The derivative along directions of the scores and of the scale, in which it is linear."""
    check_one_forward_level()
    theta_dot, target_dot, scale_dot = tangents[:3]
    if target_dot is not None:
        no_target_derivative()
    theta, target, scale, *others = _saved_inputs(ctx)
    terms: list[Tensor] = []
    if theta_dot is not None:
        terms += [by_theta(theta, target, scale, theta_dot, *others)]
    if scale_dot is not None:
        terms += [apply(function, theta, target, scale_dot, *others)]
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]


def _scaled_gradient(theta: Any, target: Any, scale: Any, v: Any, *others: Any) -> Tensor:
    return apply(_Gradient, theta, target, scale * v, *others)


def _gradient_along(theta: Any, target: Any, scale: Any, v: Any, *others: Any) -> Any:
    product = apply(_Gradient, theta, target, scale, *others) * v
    return product.sum(-1).to(scale.dtype)


def _scaled_value(theta: Any, target: Any, scale: Any, v: Any, *others: Any) -> Any:
    return apply(_Value, theta, target, scale, *others) * v


def hessian_product(
    theta: Tensor, target: Tensor, scale: Tensor, v: Tensor, *others: Any
) -> Tensor:
    """By the core, whatever engine computed the gradient."""
    omega, tightness, _, *others_left = others
    theta, scale = (refuse_derivative(x, THIRD_DERIVATIVE) for x in (theta, scale))
    return apply(_HessianProduct, theta, target, scale, v, omega, tightness, *others_left)


class _RowFunction(Function):
    """A function of rows that saves all of its inputs, and may be mapped."""

    generate_vmap_rule = True
    setup_context = staticmethod(_save_inputs)


class _Value(_RowFunction):
    """scale · L(y, θ), row by row; differentiable in the scores and in the scale."""

    forward = staticmethod(operators.value)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None) -> Gradients:
        return _pull_back(ctx, upstream, _scaled_gradient, _scaled_value)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        return _push_forward(ctx, tangents, _Value, _gradient_along)


class _Gradient(_RowFunction):
    """scale · (y* − y), row by row; differentiable in the scores and in the scale."""

    forward = staticmethod(operators.gradient)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None) -> Gradients:
        return _pull_back(ctx, upstream, hessian_product, _gradient_along)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        return _push_forward(ctx, tangents, _Gradient, hessian_product)


class _HessianProduct(_RowFunction):
    """scale · ∇²L(y, θ) v, row by row; differentiable in v, in which it is linear and symmetric."""

    forward = staticmethod(operators.hessian_product)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None) -> Gradients:
        theta, target, scale, _, *others = _saved_inputs(ctx)
        by_v = None
        if upstream is not None and ctx.needs_input_grad[3]:
            by_v = apply(_HessianProduct, theta, target, scale, upstream, *others)
        return None, None, None, by_v, *[None for _ in others]

    @staticmethod
    def jvp(ctx: Any, theta_dot: Any, _: Any, scale_dot: Any, v_dot: Any, *__: Any) -> Tensor:
        check_one_forward_level()
        if theta_dot is not None or scale_dot is not None:
            raise NotImplementedError(THIRD_DERIVATIVE)
        theta, target, scale, _v, *others = _saved_inputs(ctx)
        return apply(_HessianProduct, theta, target, scale, v_dot, *others)


class _Refusal(Function):
    """A tensor itself, which raises when its derivative in it, or in the sources, is asked for.

    It is not :class:`_HessianProduct` that raises: its backward pass also runs for v alone.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(_message: str, x: Tensor, *_sources: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], _output: Tensor) -> None:
        ctx.message = inputs[0]

    @staticmethod
    def backward(ctx: Any, *_: Any) -> NoReturn:
        raise NotImplementedError(ctx.message)

    jvp = backward


def refuse_derivative(x: Tensor, message: str, *sources: Tensor) -> Tensor:
    """A tensor that says why it has no derivative, in itself or in sources, if asked for one."""
    return apply(_Refusal, message, x, *sources)


class _Computed(Function):
    """A loss of plain tensors that is computed already, perhaps with its gradients.

    These are not saved as the tensors are, since the first backward pass scales them in place.
    """

    @staticmethod
    def forward(
        ctx: Any, loss: tuple[Tensor], pull_back: Any, gradients: Any, *tensors: Any
    ) -> Any:
        ctx.pull_back, ctx.gradients = pull_back, gradients
        ctx.save_for_backward(*tensors)
        return loss[0]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Gradients:
        gradients, ctx.gradients = ctx.gradients, None
        tensors, needed = ctx.saved_tensors, ctx.needs_input_grad[3:]
        out = ctx.pull_back(tensors, gradients, upstream, needed)
        return None, None, None, *out, *(None,) * (len(tensors) - len(out))


def computed_loss(
    loss: Tensor, pull_back: Pullback, gradients: Gradients | None, *tensors: Tensor | None
) -> Tensor:
    """A loss that is computed, with a backward pass into the tensors that it was computed of."""
    return apply(_Computed, (loss,), pull_back, gradients, *tensors)


def _pull_back_rows(
    scale: Scale,
    call: LossCall,
    transform: Scaling | None,
    tensors: Any,
    gradients: Any,
    upstream: Tensor,
    needed: Any,
) -> Gradients:
    """Into rows of scores and their factor: by an engine, or, if differentiated or mapped, by
    :class:`_Gradient`.
    """
    theta, factor, *parts = tensors
    is_final = not torch.is_grad_enabled() and is_plain(upstream)
    if is_final and gradients is not None:
        gradient, by_factor = gradients
        by_factor = None if by_factor is None else by_factor.sum() * upstream
        return scale_(gradient, upstream, call.engine), by_factor
    target = target_of(tuple(parts))
    factors = scale_vector(scale, theta, parts[0], call.ignore_index) * upstream
    if is_final:
        by_factor = factors.new_empty(factors.shape) if needed[1] else None
        told: Any = {"transform": transform and transform.detach(), "by_factor": by_factor}
        _, rows = compute(theta, target, factors, call, with_value=False, **told)
        return rows, None if by_factor is None else by_factor.sum()
    seen = theta
    if transform is not None:
        transform = transform if factor is None else transform._replace(factor=factor)
        with torch.enable_grad():
            seen = transform.apply(theta)
    flat = seen if theta.ndim == 2 else rows_along(seen, 1)
    rows = apply(_Gradient, flat, as_rows(target, theta.shape[1]), factors, *call, None)
    if theta.ndim == 3:
        outer, k, inner = theta.shape
        rows = rows.reshape(outer, inner, k).transpose(1, 2)
    if transform is None:
        return rows, None
    leaves = [x for x, need in zip((theta, factor), needed, strict=False) if need]
    graph = torch.is_grad_enabled()
    found = iter(torch.autograd.grad(seen, leaves, rows, create_graph=graph, retain_graph=True))
    return tuple(next(found) if need else None for need in needed[:2])


def few_labels(
    theta: Tensor, target: Any, omega: str, tightness: float, ignore_index: Any, reduction: str
) -> Tensor | None:
    """The loss of a small plain batch on a CPU, by the shortest way; None if there is none.

    It assumes hard labels and no weights, and nothing else: whatever it does not recognize, be it
    wrong or only rare, goes the general way, which checks it.
    """
    if not getattr(theta, "is_cpu", False) or torch.compiler.is_compiling():
        return None
    if not is_plain(theta, target) or not (target.is_cpu and target.dtype is torch.int64):
        return None
    if theta.dtype is not torch.float32 and theta.dtype is not torch.float64:
        return None
    if theta.ndim != 2 or target.shape != theta.shape[:1] or reduction not in ("mean", "sum"):
        return None
    if type(ignore_index) is not int or ignore_index >= 0:
        return None
    if type(tightness) is not float or not 0 <= tightness < math.inf:
        return None
    count = theta.shape[0] if reduction == "mean" else 1
    computed = reference.compute_few_labels(theta, target, omega, tightness, count)
    if computed is None or not (theta.requires_grad and torch.is_grad_enabled()):
        return computed and computed[0]
    loss, gradient = computed
    call = LossCall(omega, tightness, "reference", ignore_index)
    pull_back = functools.partial(_pull_back_rows, count, call, None)
    return computed_loss(loss, pull_back, (gradient, None), theta, None, target)


def _pull_back_entries(
    divisor: int,
    call: LossCall,
    by_rows: Callable[[Tensor], Tensor],
    tensors: Any,
    gradients: Any,
    upstream: Tensor,
    _needed: Any,
) -> Gradients:
    """Into entries that one kernel computes, or through ``by_rows`` if differentiated or mapped."""
    theta, target, weight, pos_weight = tensors
    if torch.is_grad_enabled() or not is_plain(upstream):
        with torch.enable_grad():
            loss = by_rows(theta)
        graph = {"create_graph": torch.is_grad_enabled()}
        (rows,) = torch.autograd.grad(loss, theta, upstream.to(loss.dtype), **graph)
        return (rows,)
    if gradients is not None:
        return (scale_(gradients[0], upstream, "triton"),)
    weight = upstream.expand(theta.shape) * (1 if weight is None else weight)
    given = theta, target, weight, pos_weight, divisor, call.omega, call.tightness, False
    return (compute_entries(*given, with_value=False)[1],)


def training_entries(
    theta: Tensor,
    target: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    call: LossCall,
    reduction: str,
    by_rows: Callable[[Tensor], Tensor],
) -> Tensor | None:
    """Entry-wise losses in one pass of a kernel; None for transforms, and for learned weights.

    ``by_rows`` is the loss in another way, which can be differentiated again.
    """
    weights = [w for w in (weight, pos_weight) if w is not None]
    if torch.is_grad_enabled() and any(w.requires_grad for w in weights):
        return None
    is_summed = reduction != "none"
    needs_grad = theta.requires_grad and torch.is_grad_enabled()
    # in float16 a gradient that waits for the loss scale would underflow
    is_float16 = theta.dtype == torch.float16
    divisor = theta.numel() if reduction == "mean" else 1
    given = theta, target, weight, pos_weight
    loss: Tensor
    if torch.compiler.is_compiling():
        if not needs_grad or is_float16:
            return None
        number, symbol = operators.as_operator_arguments(call.tightness)
        loss, _ = operators.entry_loss(*given, call.omega, number, divisor, is_summed, symbol)
        return loss
    if not is_plain(theta, target, *weights):
        return None
    is_fused = needs_grad and is_summed and not is_float16
    asked = call.omega, call.tightness, is_summed
    detached = theta.detach(), *given[1:], divisor
    loss, gradient = compute_entries(*detached, *asked, with_gradient=is_fused)
    if not needs_grad:
        return loss
    pull_back = functools.partial(_pull_back_entries, divisor, call, by_rows)
    return computed_loss(loss, pull_back, (gradient,) if is_fused else None, *given)


# The operators themselves have derivatives, too, for calls by their names.
for _operator, _function in (
    (operators.value, _Value),
    (operators.gradient, _Gradient),
    (operators.hessian_product, _HessianProduct),
):
    _operator.register_autograd(_function.backward, setup_context=_function.setup_context)


def _save_entry_gradient(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.n_inputs = len(inputs)
    ctx.save_for_backward(output[1])
    ctx.set_materialize_grads(False)


def _entry_backward(ctx: Any, upstream: Tensor | None, of_gradient: Tensor | None) -> Gradients:
    if of_gradient is not None or any(ctx.needs_input_grad[1:4]):
        raise NotImplementedError(
            "fitzpatrick::entry_loss has one derivative, in its scores; call the functions of "
            "fitzpatrick.torch.functional for more"
        )
    (rows,) = ctx.saved_tensors
    out = None if upstream is None else (rows * upstream).to(rows.dtype)
    return out, *(None,) * (ctx.n_inputs - 1)


operators.entry_loss.register_autograd(_entry_backward, setup_context=_save_entry_gradient)


# Compilers take this as it is and look at the operator inside, with its derivatives.
@graphs.allowed
def _differentiable_rows(
    theta: Tensor, target: Tensor, scale: Tensor, omega: str, tightness: float, *others: Any
) -> Tensor:
    number, symbol = operators.as_operator_arguments(tightness)
    return apply(_Value, theta, target, scale, omega, number, *others, symbol)


def loss_rows(
    theta: Tensor,
    target: Target,
    scale: Scale,
    call: LossCall,
    *,
    is_summed: bool,
    is_eager: bool,
    stats: StatsRequest | None = None,
    transform: Scaling | None = None,
) -> Tensor:
    """scale · L(y, θ) of each row, shape (n,), or their sum, with all derivatives in θ.

    Labels may come with scores of shape (outer, k, inner), whose columns are the rows. The tensors
    are ordinary ones if ``is_eager``. A request for numbers of the rows is answered. The loss sees
    the scores after the transform.
    """
    parts, has_graph = parts_of(target), torch.is_grad_enabled()
    if is_eager and has_graph and any(part.requires_grad for part in parts):
        no_target_derivative()
    is_learned = isinstance(scale, Tensor) and scale.requires_grad and has_graph
    is_dispatched = not is_eager or is_learned
    factor = None
    if transform is not None:
        factor = transform.factor if isinstance(transform.factor, Tensor) else None
        is_near = factor is None or (is_plain(factor) and factor.device == theta.device)
        if is_dispatched or not (is_near and takes_transforms(target, call)):
            theta, transform, factor = transform.apply(theta), None, None
    if theta.ndim == 3 and (is_dispatched or not _takes_columns(theta, target, call)):
        theta = rows_along(theta, 1)
    if is_dispatched:  # for compilers, transforms and learned weights
        rows = as_rows(target, theta.shape[1])
        factors = scale_vector(scale, theta, rows, call.ignore_index)
        if stats is not None:
            stats.answer = numbers_of(theta, stats.target, call.ignore_index)
        out = _differentiable_rows(theta, rows, factors, *call)
        return out.sum() if is_summed else out
    is_factor_learned = factor is not None and factor.requires_grad
    needs_grad = (theta.requires_grad or is_factor_learned) and has_graph
    is_fused = needs_grad and theta.dtype != torch.float16
    if call.engine == "triton":
        is_fused = is_fused and theta.dtype != torch.float64 and is_summed
    else:
        target = as_rows(target, theta.shape[1])
        parts = (target,)
    by_factor = None
    if is_fused and is_factor_learned:
        by_factor = theta.new_empty(parts[0].shape[:1], dtype=working_dtype(theta))
    told: Any = {"transform": transform and transform.detach(), "by_factor": by_factor}
    given = theta.detach(), target, scale, call
    loss, gradient = compute(*given, with_gradient=is_fused, stats=stats, **told)
    loss = loss.sum() if is_summed else loss
    if not needs_grad:
        return loss
    gradients = (gradient, by_factor) if is_fused else None
    pull_back = functools.partial(_pull_back_rows, scale, call, transform)
    return computed_loss(loss, pull_back, gradients, theta, factor, *parts)


def _takes_columns(theta: Tensor, target: Target, call: LossCall) -> bool:
    """True if an engine computes the columns of (outer, k, inner) scores without a copy."""
    kernel = kernel_of(call.omega) if call.engine == "triton" else None
    is_taken = kernel is not None and kernel.takes_columns and not isinstance(target, Smoothed)
    return is_taken and takes_columns(theta)
