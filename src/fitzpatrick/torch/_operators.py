"""The losses as PyTorch operators, ``torch.ops.fitzpatrick.*``.

An operator is opaque to compilers: they see its signature and the shapes it returns, never what is
inside, which may be the core's formulas or a GPU kernel. All operators work on rows: scores (n, k),
a target of labels (n,) or of rows (n, k), and one scale (n,) that multiplies each row's loss.

The tightness is a number. A compiler that keeps it symbolic, so as not to compile anew for each
value, cannot hand a symbol over to an operator: ``symbolic_tightness`` is a tensor that holds it.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch._library.custom_ops import CustomOpDef
from torch.library import custom_op, register_vmap

from ..engines.triton.scale import working_dtype
from . import _reference
from ._engine import engine_module

__all__ = ["as_operator_arguments", "entmax", "gradient", "hessian_product", "link", "value"]


def as_operator_arguments(tightness: float) -> tuple[float, Tensor | None]:
    """``tightness`` and ``symbolic_tightness`` of a number that may be a compiler's symbol."""
    if isinstance(tightness, torch.SymFloat):
        # of all that makes a tensor of a symbol, compilers follow a product
        return math.nan, torch.ones((), dtype=torch.float64) * tightness
    return tightness, None


def _register_vmap(operator: CustomOpDef, n_row_tensors: int) -> None:
    """A batch of rows is more rows: fold the mapped axis into the first one and unfold after.

    The first ``n_row_tensors`` arguments have rows; the others are the same for all of them.
    """

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        size, theta, dim = info.batch_size, args[0], in_dims[0]
        n = theta.shape[0] if dim is None else theta.movedim(dim, 0).shape[1]

        def fold(x: Tensor, dim: int | None) -> Tensor:
            x = x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
            return x.flatten(0, 1)

        rows = [fold(x, dim) for x, dim in zip(args[:n_row_tensors], in_dims, strict=False)]
        out = operator(*rows, *args[n_row_tensors:])
        return out.reshape(size, n, *out.shape[1:]), 0

    register_vmap(operator, rule)


def _loss_operator(name: str, *row_tensors: str) -> CustomOpDef:
    """The operator of an engine's function of that name, and of what it is told of the loss."""
    rows = ", ".join(f"Tensor {tensor}" for tensor in row_tensors)
    loss = "str omega, float tightness, str engine, int ignore_index"
    schema = f"({rows}, {loss}, Tensor? symbolic_tightness=None) -> Tensor"

    def compute(*arguments: Any) -> Tensor:
        n = len(row_tensors)
        omega, tightness, engine, ignore_index, *symbolic = arguments[n:]
        if symbolic and symbolic[0] is not None:
            tightness = float(symbolic[0])
        function = getattr(engine_module(engine), name)
        out: Tensor = function(*arguments[:n], omega, tightness, ignore_index)
        return out

    operator = custom_op(f"fitzpatrick::{name}", compute, mutates_args=(), schema=schema)
    _register_vmap(operator, len(row_tensors))
    return operator


_ROWS = "theta", "target", "scale"
value = _loss_operator("value", *_ROWS)  # losses of the rows, (n,)
gradient = _loss_operator("gradient", *_ROWS)  # gradients in θ, (n, k)
hessian_product = _loss_operator("hessian_product", *_ROWS, "v")  # Hessians in θ times v, (n, k)


@custom_op("fitzpatrick::link", mutates_args=())
def link(theta: Tensor, omega: str) -> Tensor:
    """The predictions ŷ(θ), (n, k)."""
    return _reference.link(theta, omega)


@custom_op("fitzpatrick::entmax", mutates_args=())
def entmax(theta: Tensor, alpha: Tensor) -> Tensor:
    """α-entmax with an order for each row, (n, 1)."""
    return _reference.entmax(theta, alpha)


_register_vmap(link, 1)
_register_vmap(entmax, 2)


@value.register_fake
def _(theta: Tensor, *_: Any) -> Tensor:
    return theta.new_empty(theta.shape[:1], dtype=working_dtype(theta))


@gradient.register_fake
@hessian_product.register_fake
@link.register_fake
@entmax.register_fake
def _(theta: Tensor, *_: Any) -> Tensor:
    return theta.new_empty(theta.shape)
