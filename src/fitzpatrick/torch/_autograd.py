r"""Derivatives, all of them, in one place.

A loss has the gradient :math:`y^\star - y`, its gradient has the Hessian product of the core as
derivative, and that is linear in its direction. Three functions say so, :class:`_Value`,
:class:`_Gradient` and :class:`_HessianProduct`, each for backward and forward mode, so that double
backward and the transforms of ``torch.func`` compose, compiled or not. They take the arguments of
the operators. What has no derivative here raises: targets, third derivatives, and forward mode
inside of forward mode.

:class:`_TrainingLoss` is for plain training: it calls an engine without PyTorch's dispatcher, and
computes the gradient of a mean or a sum in the forward pass, where the scores are at hand, and only
rescales it in the backward pass. Without a reduction that would be a needless pass over the
gradient, and in float16 a gradient that waits for the loss scale would underflow; in float64 all
backward passes shall have the same digits, which two kernels do not promise. A compiled graph does
without it, since it could not rescale in place. Entry-wise losses have an operator for it that
returns both: the compiler fuses the rescaling with the backward pass of what stands before.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, cast

import torch
from torch import Tensor
from torch.autograd import Function

from ..engines.triton.scale import Scale, as_tensor, working_dtype
from ..engines.triton.targets import Smoothed, Target
from ..regularizers import SeparableRegularizer
from . import _operators as operators
from . import _reference as reference
from ._arguments import check_one_forward_level, is_plain, rows_along
from ._compiled import compute_few_labels
from ._engine import engine_module, has_column_kernel, kernel_of
from ._handles import regularizer_of

Gradients = tuple[Tensor | None, ...]
Rows = Callable[..., Tensor]


class LossCall(NamedTuple):
    """What an operator is told besides its tensors."""

    omega: str
    tightness: float
    engine: str
    ignore_index: int


def apply(function: type[Function], *inputs: Any) -> Tensor:
    """What a function of PyTorch's returns; theirs has no types."""
    out: Tensor = function.apply(*inputs)  # type: ignore[no-untyped-call]
    return out


def _save_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Save the inputs for :func:`_saved_inputs`."""
    del output
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)
    ctx.inputs = [None if isinstance(x, Tensor) else x for x in inputs]
    ctx.places = [i for i, x in enumerate(inputs) if isinstance(x, Tensor)]
    ctx.set_materialize_grads(False)


def _saved_inputs(ctx: Any) -> list[Any]:
    """The inputs of a function, in their order."""
    inputs: list[Any] = list(ctx.inputs)
    for i, x in zip(ctx.places, ctx.saved_tensors, strict=True):
        inputs[i] = x
    return inputs


def no_target_derivative() -> NoReturn:
    """Raise for a target that wants a gradient."""
    raise NotImplementedError(
        "the losses are differentiated in input and in weights that only multiply rows, not in "
        "target, nor in a weight that changes the target (with label_smoothing, pos_weight); "
        "detach those"
    )


def _no_third_derivative() -> NoReturn:
    raise NotImplementedError(
        "the losses have two derivatives in input and the links one; there is no further one"
    )


def _pull_back(ctx: Any, upstream: Tensor | None, by_theta: Rows, by_scale: Rows) -> Gradients:
    """The derivatives in the scores and in the scale, as far as somebody asks for them."""
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


def _scaled_gradient(*rows: Any) -> Tensor:
    theta, target, scale, v, *others = rows
    return apply(_Gradient, theta, target, scale * v, *others)


def _gradient_along(*rows: Any) -> Tensor:
    theta, target, scale, v, *others = rows
    product = apply(_Gradient, theta, target, scale, *others) * v
    along: Tensor = product.sum(-1).to(scale.dtype)
    return along


def _scaled_value(*rows: Any) -> Tensor:
    theta, target, scale, v, *others = rows
    out: Tensor = v * apply(_Value, theta, target, scale, *others)
    return out


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
        return _pull_back(ctx, upstream, _hessian_product, _gradient_along)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        return _push_forward(ctx, tangents, _Gradient, _hessian_product)


def _hessian_product(
    theta: Tensor, target: Tensor, scale: Tensor, v: Tensor, *others: Any
) -> Tensor:
    """By the core, whatever engine computed the gradient."""
    omega, tightness, _, ignore_index, symbolic_tightness = others
    theta, scale = apply(_NoFurtherDerivative, theta), apply(_NoFurtherDerivative, scale)
    others = omega, tightness, ignore_index, symbolic_tightness
    return apply(_HessianProduct, theta, target, scale, v, *others)


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
            _no_third_derivative()
        theta, target, scale, _v, *others = _saved_inputs(ctx)
        return apply(_HessianProduct, theta, target, scale, v_dot, *others)


class _OnceDifferentiated(Function):
    """A gradient itself, which raises when somebody differentiates it."""

    @staticmethod
    def forward(ctx: Any, message: str, gradient: Tensor, *sources: Tensor) -> Tensor:
        del sources
        ctx.message = message
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> NoReturn:
        raise NotImplementedError(ctx.message)


def once_differentiated(gradient: Tensor, message: str, *sources: Tensor) -> Tensor:
    """A gradient in the sources that says why it has no derivative, when asked for one."""
    return apply(_OnceDifferentiated, message, gradient, *sources)


class _NoFurtherDerivative(_RowFunction):
    """A tensor itself, which raises when somebody asks for the derivative in it.

    It is not :class:`_HessianProduct` that raises: its backward pass also runs for v alone.
    """

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


class _TrainingLoss(Function):
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
        call: LossCall,
        is_summed: bool,
        is_fused: bool,
    ) -> Tensor:
        ctx.save_for_backward(theta, *(target if isinstance(target, Smoothed) else (target,)))
        ctx.scale, ctx.call = scale, call
        engine = engine_module(call.engine)
        arguments = theta, target, scale, call.omega, call.tightness, call.ignore_index
        value: Tensor
        if is_fused:
            # the gradient is not saved as the others are, since it is scaled in place, once
            value, ctx.gradient = engine.value_and_gradient(*arguments)
        else:
            value, ctx.gradient = engine.value(*arguments), None
        return value.sum() if is_summed else value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Gradients:
        rows, ctx.gradient = ctx.gradient, None
        call: LossCall = ctx.call
        engine = engine_module(call.engine)
        plain = not torch.is_grad_enabled() and is_plain(upstream)
        if plain and rows is not None:
            engine.scale_rows_(rows, upstream)
            return rows, None, None, None, None, None
        theta, *parts = ctx.saved_tensors
        target = Smoothed(*parts) if len(parts) > 1 else parts[0]
        scale = as_tensor(ctx.scale, theta, parts[0], call.ignore_index) * upstream
        if plain:
            number = call.tightness
            rows = engine.gradient(theta, target, scale, call.omega, number, call.ignore_index)
        else:
            flat = theta if theta.ndim == 2 else rows_along(theta, 1)
            rows = apply(_Gradient, flat, _as_rows(target, theta), scale, *call, None)
            if theta.ndim == 3:
                outer, k, inner = theta.shape
                rows = rows.reshape(outer, inner, k).transpose(1, 2)
        return rows, None, None, None, None, None


class _LabelLoss(_TrainingLoss):
    """The same for labels that are computed already."""

    @staticmethod
    def forward(ctx: Any, theta: Tensor, computed: Any) -> Tensor:  # type: ignore[override]
        target, call, loss, ctx.scale, ctx.gradient = computed
        ctx.save_for_backward(theta, target)
        ctx.call = call
        out: Tensor = loss
        return out


def few_labels(
    theta: Tensor, target: Tensor, omega: str, tightness: float, ignore_index: int, is_mean: bool
) -> Tensor | None:
    """The mean or the sum of L(y, θ) over a small batch; None where that is for others to do.

    The tensors are plain ones on a CPU: scores (n, k) in float32 or float64, int64 labels (n,),
    which may be no classes; ``ignore_index`` is none.
    """
    count = theta.shape[0] if is_mean else 1
    computed = compute_few_labels(theta, target, omega, tightness, count)
    if computed is None or not (theta.requires_grad and torch.is_grad_enabled()):
        return computed and computed[0]
    loss, gradient = computed
    call = LossCall(omega, tightness, "reference", ignore_index)
    return apply(_LabelLoss, theta, (target, call, loss, count, gradient))


class _TrainingEntries(Function):
    """Entry-wise losses, or their sum, by one kernel; the gradient comes with a sum."""

    @staticmethod
    def forward(
        ctx: Any,
        theta: Tensor,
        target: Tensor,
        weight: Tensor | None,
        pos_weight: Tensor | None,
        divisor: int,
        call: Any,
        by_rows: Callable[[Tensor], Tensor],
    ) -> Tensor:
        ctx.save_for_backward(theta, target, *(w for w in (weight, pos_weight) if w is not None))
        ctx.has_weights = weight is not None, pos_weight is not None
        ctx.divisor, ctx.call, ctx.by_rows = divisor, call, by_rows
        values, gradient = engine_module("triton").entry_loss(
            theta, target, weight, pos_weight, divisor, call
        )
        ctx.gradient = gradient if call.with_gradient else None
        out: Tensor = values.sum() if call.is_summed else values
        return out

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Gradients:
        rows, ctx.gradient = ctx.gradient, None
        engine = engine_module("triton")
        theta, target, *weights = ctx.saved_tensors
        nothing = (None,) * 6
        if torch.is_grad_enabled() or not is_plain(upstream):
            with torch.enable_grad():
                loss = ctx.by_rows(theta)
            (rows,) = torch.autograd.grad(
                loss, theta, upstream.to(loss.dtype), create_graph=torch.is_grad_enabled()
            )
            return rows, *nothing
        if rows is not None:
            engine.scale_rows_(rows.reshape(-1, rows.shape[-1] if rows.ndim else 1), upstream)
            return rows, *nothing
        given = iter(weights)
        weight, pos_weight = (next(given) if has else None for has in ctx.has_weights)
        weight = upstream.expand(theta.shape) * (1 if weight is None else weight)
        call = ctx.call._replace(is_summed=False, with_value=False, with_gradient=True)
        _, rows = engine.entry_loss(theta, target, weight, pos_weight, ctx.divisor, call)
        return rows, *nothing


def training_entries(
    theta: Tensor,
    target: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    call: LossCall,
    reduction: str,
    by_rows: Callable[[Tensor], Tensor],
) -> Tensor | None:
    """Entry-wise losses of plain tensors in one pass; None where that is for others to do.

    That is: transforms, and weights that are learned. ``by_rows`` is the loss in another
    way, which can be differentiated again.
    """
    weights = [w for w in (weight, pos_weight) if w is not None]
    if torch.is_grad_enabled() and any(w.requires_grad for w in weights):
        return None
    is_summed = reduction != "none"
    needs_grad = theta.requires_grad and torch.is_grad_enabled()
    if torch.compiler.is_compiling():
        if not needs_grad or theta.dtype == torch.float16:
            return None
        number, symbol = operators.as_operator_arguments(call.tightness)
        divisor = theta.numel() if reduction == "mean" else 1
        given = theta, target, weight, pos_weight
        loss: Tensor = operators.entry_loss(*given, call.omega, number, divisor, is_summed, symbol)[
            0
        ]
        return loss
    if not is_plain(theta, target, *weights):
        return None
    # in float16 a gradient that waits for the loss scale would underflow
    is_fused = needs_grad and is_summed and theta.dtype != torch.float16
    engine = engine_module("triton")
    asked = engine.EntryCall(
        kernel_of(call.omega), call.tightness, is_summed, with_gradient=is_fused
    )
    divisor = theta.numel() if reduction == "mean" else 1
    inputs = theta, target, weight, pos_weight, divisor, asked
    out: Tensor
    if needs_grad:
        out = apply(_TrainingEntries, *inputs, by_rows)
    else:
        values, _ = engine.entry_loss(*inputs)
        out = values.sum() if is_summed else values
    return out


def _save_for_link(ctx: Any, inputs: tuple[Tensor, str], output: Tensor) -> None:
    """Save what the Jacobian of a link is made of: on the simplex, the predictions alone."""
    theta, ctx.omega = inputs
    kept = output if regularizer_of(ctx.omega).is_coupled else theta
    ctx.save_for_backward(kept)
    ctx.save_for_forward(kept)
    ctx.set_materialize_grads(False)


class _Link(Function):
    """ŷ(θ), row by row; its Jacobian is the Hessian of the Fenchel-Young loss at any target."""

    generate_vmap_rule = True
    setup_context = staticmethod(_save_for_link)

    forward = staticmethod(operators.link)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None) -> Gradients:
        return None if upstream is None else _link_product(ctx, upstream), None

    @staticmethod
    def jvp(ctx: Any, theta_dot: Tensor, _: Any) -> Tensor:
        check_one_forward_level()
        return _link_product(ctx, theta_dot)


class _PlainLink(Function):
    """The same for plain tensors, without PyTorch's dispatcher."""

    @staticmethod
    def forward(ctx: Any, theta: Tensor, omega: str) -> Tensor:
        p = reference.link(theta, omega)
        _save_for_link(ctx, (theta, omega), p)
        return p

    backward = _Link.backward


def _coupled_product(d: Tensor, v: Tensor) -> Tensor:
    """(diag(d) − ddᵀ/⟨d, 1⟩) v, row by row."""
    return d * (v - (d * v).sum(-1, keepdim=True) / d.sum(-1, keepdim=True))


def _link_product(ctx: Any, v: Tensor) -> Tensor:
    (kept,), omega = ctx.saved_tensors, regularizer_of(ctx.omega)
    if omega.is_coupled:
        omega = cast(SeparableRegularizer, omega)  # entries that share τ are those of a sum
        p, dtype = kept, working_dtype(kept)
        if torch.is_grad_enabled():
            p = apply(_NoFurtherDerivative, kept)
            v = v + 0 * p  # a slope may be constant between its kinks, without a trace of p
        if p.dtype == v.dtype == dtype:
            return _coupled_product(omega.slope(p, p, 0.0), v)
        p = p.to(dtype)
        return _coupled_product(omega.slope(p, p, 0.0), v.to(dtype)).to(kept.dtype)
    scale = torch.ones_like(kept[:, 0], dtype=working_dtype(kept))
    call = LossCall(ctx.omega, tightness=0.0, engine="reference", ignore_index=-1)
    return _hessian_product(kept, reference.any_target(kept, ctx.omega), scale, v, *call, None)


# The operators have their derivatives themselves, too, for whoever calls them by name.
for _operator, _function in (
    (operators.value, _Value),
    (operators.gradient, _Gradient),
    (operators.hessian_product, _HessianProduct),
    (operators.link, _Link),
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


# Compilers take these two as they are and look at the operators inside, with their derivatives.
@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]  # PyTorch's is not annotated
def _differentiable_rows(
    theta: Tensor, target: Tensor, scale: Tensor, omega: str, tightness: float, *others: Any
) -> Tensor:
    number, symbol = operators.as_operator_arguments(tightness)
    return apply(_Value, theta, target, scale, omega, number, *others, symbol)


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]  # PyTorch's is not annotated
def _differentiable_link(theta: Tensor, omega: str) -> Tensor:
    return apply(_Link, theta, omega)


def loss_rows(
    theta: Tensor, target: Target, scale: Scale, call: LossCall, *, is_summed: bool
) -> Tensor:
    """scale · L(y, θ) of each row, shape (n,), or their sum, with all derivatives in θ.

    Labels may come with scores of shape (outer, k, inner), whose columns are the rows.
    """
    parts = target if isinstance(target, Smoothed) else (target,)
    weights = scale if isinstance(scale, Tensor) else theta
    if torch.compiler.is_compiling() or not is_plain(theta, weights, *parts):
        return _any_loss_rows(theta, target, scale, call, is_summed)
    if theta.ndim == 3 and not _takes_columns(theta, target, call):
        theta = rows_along(theta, 1)
    if call.engine == "reference":
        target = _as_rows(target, theta)
    is_target_given = any(part.requires_grad for part in parts)
    needs_grad = theta.requires_grad or weights.requires_grad or is_target_given
    if not (needs_grad and torch.is_grad_enabled()):
        omega, tightness, engine, ignore_index = call
        value = engine_module(engine).value(theta, target, scale, omega, tightness, ignore_index)
        loss: Tensor = value.sum() if is_summed else value
        return loss
    if is_target_given:
        no_target_derivative()
    if weights.requires_grad and weights is not theta:
        return _any_loss_rows(theta, target, scale, call, is_summed)
    has_kernel = theta.dtype in (torch.float32, torch.bfloat16) and is_summed
    is_fused = has_kernel if call.engine == "triton" else theta.dtype != torch.float16
    return apply(_TrainingLoss, theta, target, scale, call, is_summed, is_fused)


def _any_loss_rows(
    theta: Tensor, target: Target, scale: Scale, call: LossCall, is_summed: bool
) -> Tensor:
    """The same through PyTorch's dispatcher, for compilers, transforms and learned weights."""
    if theta.ndim == 3:
        theta = rows_along(theta, 1)
    rows = _as_rows(target, theta)
    factors = as_tensor(scale, theta, rows, call.ignore_index)
    out: Tensor = _differentiable_rows(theta, rows, factors, *call)
    return out.sum() if is_summed else out


def _takes_columns(theta: Tensor, target: Target, call: LossCall) -> bool:
    """Whether an engine computes the columns of (outer, k, inner) scores where they are."""
    if call.engine != "triton" or isinstance(target, Smoothed) or not has_column_kernel(call.omega):
        return False
    takes_columns: bool = engine_module(call.engine).takes_columns(*theta.shape[1:])
    return takes_columns


def link_rows(theta: Tensor, omega: str) -> Tensor:
    """ŷ(θ) of each row, shape (n, k), once differentiable."""
    out: Tensor
    if torch.compiler.is_compiling() or not is_plain(theta):
        out = _differentiable_link(theta, omega)
    elif theta.requires_grad and torch.is_grad_enabled():
        out = apply(_PlainLink, theta, omega)
    else:
        out = reference.link(theta, omega)
    return out
