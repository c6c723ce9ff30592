"""The losses as PyTorch operators, ``torch.ops.fitzpatrick.*``.

An operator is opaque to compilers: they see its signature and the shapes it returns, never what is
inside, which may be the core's formulas or a GPU kernel. All operators work on rows: scores (n, k),
a target of labels (n,) or of rows (n, k), and one scale (n,) that multiplies each row's loss.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.library import custom_op, register_vmap

from ..engines.triton.scale import working_dtype
from . import _reference
from ._engine import engine_module

__all__ = ["gradient", "hessian_product", "link", "value"]


@custom_op("fitzpatrick::value", mutates_args=())
def value(
    theta: Tensor, target: Tensor, scale: Tensor, loss: str, engine: str, ignore_index: int
) -> Tensor:
    """Losses of the rows, shape (n,)."""
    out: Tensor = engine_module(engine).value(theta, target, scale, loss, ignore_index)
    return out


@custom_op("fitzpatrick::gradient", mutates_args=())
def gradient(
    theta: Tensor, target: Tensor, scale: Tensor, loss: str, engine: str, ignore_index: int
) -> Tensor:
    """Gradients in θ, shape (n, k)."""
    out: Tensor = engine_module(engine).gradient(theta, target, scale, loss, ignore_index)
    return out


@custom_op("fitzpatrick::hessian_product", mutates_args=())
def hessian_product(
    theta: Tensor, target: Tensor, scale: Tensor, v: Tensor, loss: str, ignore_index: int
) -> Tensor:
    """Hessians in θ, applied to the rows of v, shape (n, k)."""
    return _reference.hessian_product(theta, target, scale, v, loss, ignore_index)


@custom_op("fitzpatrick::link", mutates_args=())
def link(theta: Tensor, loss: str) -> Tensor:
    """The predictions ŷ(θ), shape (n, k)."""
    return _reference.link(theta, loss)


@value.register_fake
def _(theta: Tensor, *_: Any) -> Tensor:
    return theta.new_empty(theta.shape[:1], dtype=working_dtype(theta))


@gradient.register_fake
@hessian_product.register_fake
@link.register_fake
def _(theta: Tensor, *_: Any) -> Tensor:
    return theta.new_empty(theta.shape)


def _register_vmap(operator: Callable[..., Any]) -> None:
    """A batch of rows is more rows: fold the mapped axis into the first one and unfold after."""

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        size, theta, dim = info.batch_size, args[0], in_dims[0]
        n = theta.shape[0] if dim is None else theta.movedim(dim, 0).shape[1]

        def fold(x: Any, dim: int | None) -> Any:
            if not isinstance(x, Tensor):
                return x
            x = x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
            return x.flatten(0, 1)

        def unfold(x: Any) -> Any:
            return x.reshape(size, n, *x.shape[1:])

        return unfold(operator(*(fold(x, dim) for x, dim in zip(args, in_dims, strict=True)))), 0

    register_vmap(operator, rule)  # type: ignore[arg-type]  # takes an operator or its name


for _operator in (value, gradient, hessian_product, link):
    _register_vmap(_operator)
