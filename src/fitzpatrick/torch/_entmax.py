r"""Links, and their derivatives: α-entmax, α-normmax, sparsemax with a budget, and those of any Ω.

Everything here has its classes in axis 1: scores (n, k), or (outer, k, inner) on a GPU, where they
are not copied. The parameter is a number, or a tensor with one for each row; a mask says which
entries are kept. The backward pass needs the predictions alone, and is a formula of PyTorch's own
operators where it is itself differentiated.
"""

# ruff: noqa: A002  # ``input`` is PyTorch's name

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.library import custom_op

from ..engines.rows import for_each_block
from ..regularizers.norm import normmax_alpha_slope, normmax_link, normmax_product
from ..regularizers.tsallis import entmax_alpha_slope, entmax_link, entmax_slope
from ..sets.budget import budget_product, budget_slope, project_to_budget
from . import _arguments as arguments
from . import _graphs as graphs
from . import _reference as reference
from ._autograd import THIRD_DERIVATIVE, Gradients, apply, hessian_product, refuse_derivative
from ._engines import choose_engine, entmax_alpha, takes_columns
from ._handles import LossCall, regularizer_of
from ._operators import register_rows
from ._targets import working_dtype

# Blocks of the core's formulas, whose intermediate results stay in cache.
_BLOCK_BYTES = 1 << 19


def _coupled_product(d: Tensor, v: Tensor) -> Tensor:
    """(diag(d) − ddᵀ/⟨d, 1⟩) v, row by row."""
    weight = d.sum(-1, keepdim=True)  # 0 where everything is masked
    return d * (v - (d * v).sum(-1, keepdim=True) / torch.where(weight == 0, 1.0, weight))


def _entmax_product(p: Tensor, v: Tensor, alpha: Tensor) -> Tensor:
    return _coupled_product(entmax_slope(p, alpha), v)


class Formulas(NamedTuple):
    """A link: its predictions p, J v from p, and ∂p/∂parameter from p; symmetric J."""

    solve: Callable[..., Any]
    product: Callable[..., Any]
    slope: Callable[..., Any]


_FORMULAS = {
    "entmax": Formulas(entmax_link, _entmax_product, entmax_alpha_slope),
    "normmax": Formulas(normmax_link, normmax_product, normmax_alpha_slope),
    "budget": Formulas(
        project_to_budget, lambda p, v, _: budget_product(p, v), lambda p, _: budget_slope(p)
    ),
}


def _with_whole_rows(p: Tensor) -> tuple[Tensor, Tensor]:
    """Which rows (…, k) are not masked throughout; p, where the others have some derivatives."""
    is_kept = (p != 0).any(-1, keepdim=True)
    return is_kept, torch.where(is_kept, p, 1.0)


class EntmaxCall(NamedTuple):
    """What is asked for besides tensors: Ω and α if they are known, "" and 0 else.

    ``kind`` is one of the formulas, or "any" for a link of whatever Ω, which has one derivative.
    """

    omega: str
    alpha: float
    engine: str
    kind: str = "entmax"


def _shaped(alpha: Tensor | None, number: float, p: Tensor) -> Tensor:
    """The parameter in working precision, (…, 1) for rows (…, k)."""
    if alpha is None:
        return torch.full((), number, dtype=working_dtype(p), device=p.device)
    return alpha.to(working_dtype(p)).reshape(*p.shape[:-1], 1)


@reference.exact
def _solve_by_core(theta: Tensor, alpha: Tensor | None, call: EntmaxCall) -> Tensor:
    """Compiled rows, or the core; on a CPU in blocks of NumPy's, which end where they converge."""
    solve, scores = _FORMULAS[call.kind].solve, reference.widen(theta)
    if call.kind == "entmax" and alpha is not None:
        compiled = reference.solve_entmax(scores, alpha)
        if compiled is not None:
            return compiled.to(theta.dtype)
    parameter = _shaped(alpha, call.alpha, scores).expand(*scores.shape[:-1], 1)
    if not theta.is_cpu:
        found: Tensor = solve(scores, parameter)
        return found.to(theta.dtype)
    x, orders = scores.numpy(force=True), parameter.numpy(force=True)
    out = np.empty(x.shape, x.dtype)

    def work(rows: slice, _: Any) -> None:
        out[rows] = solve(x[rows], orders[rows])

    for_each_block(x.shape, x.itemsize, torch.get_num_threads(), work, _BLOCK_BYTES)
    return torch.from_numpy(out).to(theta.dtype)


def _solve(theta: Tensor, alpha: Tensor | None, mask: Tensor | None, call: EntmaxCall) -> Tensor:
    """The predictions, without a derivative; a mask has the shape of the scores."""
    if call.engine == "triton":
        from ..engines.triton.link_launch import link, row_mask

        kept = None if mask is None else row_mask(mask, theta)
        return link(theta, call.alpha if alpha is None else alpha, kept)
    if mask is not None:
        mask = mask.reshape(theta.shape)
        theta = theta.masked_fill(~mask, -torch.inf)
    p = reference.link(theta, call.omega) if call.omega else _solve_by_core(theta, alpha, call)
    return p if mask is None else torch.where(mask.any(1, keepdim=True), p, 0.0)


def _kept(theta: Tensor, p: Tensor, call: EntmaxCall) -> Tensor:
    """What the Jacobian is made of: the predictions, but for entries of any Ω their scores."""
    return theta if call.kind == "any" and not regularizer_of(call.omega).is_coupled else p


def _any_product(kept: Tensor, v: Tensor, handle: str) -> Tensor:
    """J v for any Ω: the Hessian of the Fenchel-Young loss at any target."""
    omega: Any = regularizer_of(handle)
    dtype = working_dtype(kept)
    if not omega.is_coupled:
        target = torch.zeros_like(kept)  # any: nothing depends on it
        if omega.domain.has_labels:
            target = torch.zeros_like(kept[:, 0], dtype=torch.int64)
        scale = torch.ones_like(kept[:, 0], dtype=dtype)
        call = LossCall(handle, tightness=0.0, engine="reference")
        return hessian_product(kept, target, scale, v, *call, None)
    p = kept
    if torch.is_grad_enabled():
        p = refuse_derivative(kept, THIRD_DERIVATIVE)
        v = v + 0 * p  # a slope may be constant between its kinks, without a trace of p
    return _coupled_product(omega.slope(p.to(dtype), p.to(dtype), 0.0), v.to(dtype)).to(p.dtype)


def _differentiable_product(
    p: Tensor, v: Tensor, alpha: Tensor | None, call: EntmaxCall
) -> tuple[Tensor, Tensor | None]:
    """J v and the derivative along v in the parameter, (n,), which can be differentiated."""
    if call.kind == "any":
        return _any_product(p, v, call.omega), None
    dtype, formulas = working_dtype(p), _FORMULAS[call.kind]
    is_kept, entries = _with_whole_rows(p.to(dtype).movedim(1, -1))
    v = torch.where(is_kept, v.to(dtype).movedim(1, -1), 0.0)
    shaped = _shaped(alpha, call.alpha, entries)
    by_theta = formulas.product(entries, v, shaped).to(p.dtype).movedim(-1, 1)
    if alpha is None:
        return by_theta, None
    return by_theta, (formulas.slope(entries, shaped) * v).sum(-1).reshape(-1)


def _product(
    p: Tensor, v: Tensor, alpha: Tensor | None, call: EntmaxCall, with_alpha: bool
) -> tuple[Tensor, Tensor | None]:
    """J v by an engine, and the derivative in α if it is asked for; neither is differentiated."""
    if call.engine == "triton":
        from ..engines.triton.link_launch import link_gradient

        return link_gradient(p, v.to(p.dtype), call.alpha if alpha is None else alpha, with_alpha)
    if call.kind == "entmax":
        if alpha is not None:
            both = reference.compute_entmax_product(p, v, alpha)
            if both is not None:
                return both
        elif call.omega:
            by_theta = reference.compute_link_product(p, v, call.omega)
            if by_theta is not None:
                return by_theta, None
    return _differentiable_product(p, v, alpha, call)


def _saved(ctx: Any) -> tuple[Tensor, Tensor | None]:
    p, *alpha = ctx.saved_tensors
    return p, alpha[0] if alpha else None


def _backward(ctx: Any, upstream: Tensor | None) -> Gradients:
    p, alpha = _saved(ctx)
    by_theta = by_alpha = None
    if upstream is not None:
        with_alpha = alpha is not None and ctx.needs_input_grad[1]
        if torch.is_grad_enabled() or not arguments.is_plain(upstream, p):
            by_theta, slopes = _differentiable_product(p, upstream, alpha, ctx.call)
        else:
            by_theta, slopes = _product(p, upstream, alpha, ctx.call, with_alpha)
        if alpha is not None and slopes is not None and with_alpha:
            by_alpha = slopes.to(alpha.dtype)
    return by_theta, by_alpha, None, None, None, None, None


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    theta, alpha, _, *call = inputs
    ctx.call = EntmaxCall(*call)
    kept = _kept(theta, output, ctx.call), *(() if alpha is None else (alpha,))
    ctx.save_for_backward(*kept)
    ctx.save_for_forward(*kept)
    ctx.set_materialize_grads(False)


@custom_op("fitzpatrick::link", mutates_args=())
def link(
    theta: Tensor,
    alpha: Tensor | None,
    mask: Tensor | None,
    omega: str,
    number: float,
    engine: str,
    kind: str,
) -> Tensor:
    """The predictions of rows (n, k) as an operator, for compilers and transforms."""
    return _solve(theta, alpha, mask, EntmaxCall(omega, number, engine, kind))


@link.register_fake
def _(theta: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(theta, memory_format=torch.contiguous_format)


link.register_autograd(_backward, setup_context=_setup)
register_rows(link, 3)


class _Entmax(Function):
    """The operator, differentiable backward and forward, as often as one likes backward."""

    generate_vmap_rule = True
    setup_context = staticmethod(_setup)
    forward = staticmethod(link)
    backward = staticmethod(_backward)

    @staticmethod
    def jvp(ctx: Any, theta_dot: Tensor | None, alpha_dot: Tensor | None, *_: Any) -> Tensor:
        arguments.check_one_forward_level()
        p, alpha = _saved(ctx)
        out = torch.zeros_like(p)
        if theta_dot is not None:
            out = out + _differentiable_product(p, theta_dot, alpha, ctx.call)[0]
        if alpha_dot is not None:
            is_kept, entries = _with_whole_rows(p.to(working_dtype(p)))
            slopes = _FORMULAS[ctx.call.kind].slope(entries, _shaped(alpha, 0.0, p))
            along = torch.where(is_kept, slopes * _shaped(alpha_dot, 0.0, p), 0.0)
            out = out + along.to(p.dtype)
        return out


class _PlainEntmax(Function):
    """The operator for plain tensors, without PyTorch's dispatcher."""

    @staticmethod
    def forward(ctx: Any, theta: Tensor, alpha: Tensor | None, mask: Any, *call: Any) -> Tensor:
        p = _solve(theta, alpha, mask, EntmaxCall(*call))
        _setup(ctx, (theta, alpha, mask, *call), p)
        return p

    backward = staticmethod(_backward)


# Compilers take this as it is and look at the operator inside, with its derivatives.
@graphs.allowed
def _differentiable_entmax(*inputs: Any) -> Tensor:
    return apply(_Entmax, *inputs)


def _solve_by_sorting(theta: Tensor, *, is_linear: bool) -> Tensor:
    """Sparsemax, or 1.5-entmax, from a τ for each number of entries that may be positive."""
    x = theta - theta.amax(-1, keepdim=True)
    x = x if is_linear else x / 2
    ordered = x.sort(-1, descending=True).values
    count = torch.arange(1, x.shape[-1] + 1, device=x.device).to(x.dtype)
    mean = ordered.cumsum(-1) / count
    if is_linear:
        taus = mean - 1 / count
    else:  # Σ (x − τ)² = 1
        spread = ordered.square().cumsum(-1) / count - mean.square()
        taus = mean - torch.sqrt((1 / count - spread).clamp(min=0))
    size = (ordered > taus).sum(-1, keepdim=True)
    s = torch.relu(x - taus.gather(-1, (size - 1).clamp(min=0)))
    return s if is_linear else s.square()


@reference.exact
def _solve_in_graph(
    theta: Tensor, alpha: Tensor | None, mask: Tensor | None, call: EntmaxCall
) -> Tensor:
    """The predictions by the formulas of the core, operation by operation, for another runtime."""
    scores = reference.widen(theta)
    if mask is not None:
        mask = mask.reshape(theta.shape)
        scores = scores.masked_fill(~mask, -torch.inf)
    if call.kind == "any":
        p: Tensor = regularizer_of(call.omega).solve_link(scores)
    elif call.kind == "entmax" and alpha is None and call.alpha == 1:
        p = torch.softmax(scores, -1)
    elif call.kind == "entmax" and alpha is None and call.alpha in (1.5, 2):
        p = _solve_by_sorting(scores, is_linear=call.alpha == 2)
    else:
        p = _FORMULAS[call.kind].solve(scores, _shaped(alpha, call.alpha, scores))
    if mask is not None:
        p = torch.where(mask.any(-1, keepdim=True), p, 0.0)
    return p.to(theta.dtype)


def entmax_rows(
    theta: Tensor, alpha: Tensor | None, mask: Tensor | None, call: EntmaxCall
) -> Tensor:
    """The predictions, with all derivatives in the scores and in α.

    ``mask`` is expanded to the scores before they were made rows, with the classes last, or has
    the shape (outer, k, inner).
    """
    if torch.onnx.is_in_onnx_export():
        return _solve_in_graph(theta, alpha, mask, call)
    if not arguments.is_eager(theta, alpha, mask):
        rows = None if mask is None else mask.reshape(theta.shape)
        return _differentiable_entmax(theta, alpha, rows, *call)
    needs_grad = theta.requires_grad or (alpha is not None and alpha.requires_grad)
    if not (needs_grad and torch.is_grad_enabled()):
        return _solve(theta, alpha, mask, call)
    return apply(_PlainEntmax, theta, alpha, mask, *call)


def along(
    input: Tensor,
    parameter: Tensor | None,
    call: EntmaxCall,
    dim: SupportsIndex | None,
    mask: Tensor | None = None,
) -> Tensor:
    """A link along an axis, in the dtype of the scores, which are checked.

    A tensor as the parameter broadcasts to the scores with one entry in place of the classes.
    """
    axis = arguments.class_dim(input, dim)
    if arguments.is_dtensor(input):
        from ._sharded import link_of_dtensor

        if mask is not None or parameter is not None:
            raise NotImplementedError("mask and tensor parameters need input.to_local()")
        local: Any = functools.partial(along, parameter=None, call=call, dim=axis)
        return link_of_dtensor(input, axis, local)  # type: ignore[arg-type]
    if mask is not None:
        mask = arguments.expand_mask(mask, input)
    if parameter is not None:
        name = "budget" if call.kind == "budget" else "alpha"
        parameter = arguments.expand_over_rows(parameter, input, axis, name).reshape(-1)
    if input.numel() == 0:
        return input.clone()
    is_kernel = call.engine == "triton"
    if is_kernel and call.alpha == 1.0 and mask is None:
        with torch.autocast(input.device.type, enabled=False):
            return torch.softmax(input, axis)
    theta = arguments.columns_along(input, axis) if is_kernel else arguments.rows_along(input, axis)
    if theta.ndim == 3 and not (arguments.is_eager(input) and takes_columns(theta)):
        theta = arguments.rows_along(input, axis)
    is_rows = theta.ndim == 2
    if mask is not None:
        mask = mask.movedim(axis, -1) if is_rows else mask.reshape(theta.shape)
    p = entmax_rows(theta, parameter, mask, call)
    if theta is input:
        return p
    if not is_rows:
        return p.reshape(input.shape)
    return p.reshape(input.movedim(axis, -1).shape).movedim(-1, axis)


def link_along(
    omega: str,
    input: Tensor,
    dim: SupportsIndex | None = -1,
    *,
    mask: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    arguments.check_scores(input)
    alpha = entmax_alpha(omega)
    if alpha is not None:
        engine = choose_engine(engine, input, omega)
        return along(input, None, EntmaxCall(omega, alpha, engine), dim, mask)
    if mask is not None:
        raise TypeError(f"mask is for links on the simplex, not for {regularizer_of(omega)!r}")
    if input.ndim == 0 and regularizer_of(omega).is_entrywise:
        return link_along(omega, input.reshape(1), dim).reshape(())
    return along(input, None, EntmaxCall(omega, 0.0, "reference", "any"), dim)
