"""The losses as PyTorch operators, ``torch.ops.fitzpatrick.*``.

An operator is opaque to compilers: they see its signature and the shapes it returns, never what is
inside, which may be the core's formulas or a GPU kernel. The operators work on rows: scores (n, k),
a target of labels (n,) or of rows (n, k), and one scale (n,) that multiplies each row's loss.
``entry_loss`` alone works on entries, in any shape.

The tightness is a number. A compiler that keeps it symbolic, so as not to compile anew for each
value, cannot hand a symbol over to an operator: ``symbolic_tightness`` is a tensor that holds it.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch._library.custom_ops import CustomOpDef
from torch.library import custom_op, register_vmap

from . import _reference as reference
from ._engines import compute, compute_entries
from ._handles import LossCall
from ._targets import working_dtype


def as_operator_arguments(tightness: float) -> tuple[float, Tensor | None]:
    """``tightness`` and ``symbolic_tightness`` of a number that may be a compiler's symbol."""
    if isinstance(tightness, torch.SymFloat):
        # of all that makes a tensor of a symbol, compilers follow a product
        return math.nan, torch.ones((), dtype=torch.float64) * tightness
    return tightness, None


def as_number(tightness: float, symbolic_tightness: Tensor | None) -> float:
    """The number that :func:`as_operator_arguments` passed on."""
    return tightness if symbolic_tightness is None else float(symbolic_tightness)


def _loss_operator(name: str, place: int) -> CustomOpDef:
    """The operator of one of the results of :func:`.compute`."""

    def compute_one(
        theta: Tensor,
        target: Tensor,
        scale: Tensor,
        omega: str,
        tightness: float,
        engine: str,
        ignore_index: int,
        symbolic_tightness: Tensor | None = None,
    ) -> Tensor:
        call = LossCall(omega, as_number(tightness, symbolic_tightness), engine, ignore_index)
        return compute(theta, target, scale, call, place == 0, place == 1)[place]

    return custom_op(f"fitzpatrick::{name}", compute_one, mutates_args=())


value = _loss_operator("value", 0)  # losses of the rows, (n,)
gradient = _loss_operator("gradient", 1)  # gradients in θ, (n, k)


@custom_op("fitzpatrick::hessian_product", mutates_args=())
def hessian_product(
    theta: Tensor,
    target: Tensor,
    scale: Tensor,
    v: Tensor,
    omega: str,
    tightness: float,
    ignore_index: int,
    symbolic_tightness: Tensor | None = None,
) -> Tensor:
    """Hessians in θ, applied to the rows of v, (n, k)."""
    c = as_number(tightness, symbolic_tightness)
    call = LossCall(omega, c, "reference", ignore_index)
    return reference.hessian_product(theta, target, scale, v, call)


@custom_op("fitzpatrick::entry_loss", mutates_args=())
def entry_loss(
    theta: Tensor,
    target: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    omega: str,
    tightness: float,
    divisor: int,
    is_summed: bool,
    symbolic_tightness: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Entry-wise losses by a GPU kernel, or their sum, and the gradient of their sum."""
    c = as_number(tightness, symbolic_tightness)
    given = theta, target, weight, pos_weight, divisor
    return compute_entries(*given, omega, c, is_summed)


@entry_loss.register_fake
def _(theta: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    is_summed = others[6]
    values = theta.new_empty(() if is_summed else theta.shape, dtype=working_dtype(theta))
    return values, theta.new_empty(theta.shape)


@value.register_fake
def _(theta: Tensor, *_: Any) -> Tensor:
    return theta.new_empty(theta.shape[:1], dtype=working_dtype(theta))


@gradient.register_fake
@hessian_product.register_fake
def _(theta: Tensor, *_: Any) -> Tensor:
    return theta.new_empty(theta.shape)


def register_rows(operator: CustomOpDef, n_row_tensors: int) -> None:
    """A batch of rows is more rows: fold the mapped axis into the first one and unfold after.

    The first ``n_row_tensors`` arguments have rows or are None; the others are for all rows.
    """

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        size, theta, dim = info.batch_size, args[0], in_dims[0]
        n = theta.shape[0] if dim is None else theta.movedim(dim, 0).shape[1]

        def fold(x: Tensor | None, dim: int | None) -> Tensor | None:
            if x is None:
                return None
            x = x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
            return x.flatten(0, 1)

        rows = [fold(x, dim) for x, dim in zip(args[:n_row_tensors], in_dims, strict=False)]
        out = operator(*rows, *args[n_row_tensors:])
        return out.reshape(size, n, *out.shape[1:]), 0

    register_vmap(operator, rule)


for _operator, _n_row_tensors in ((value, 3), (gradient, 3), (hessian_product, 4)):
    register_rows(_operator, _n_row_tensors)
