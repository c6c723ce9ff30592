"""Checks of what a user passes in: shapes and dtypes always, values where that is asked for."""

import math

import torch
from torch import Tensor

from .._validation import check_membership
from ..sets import ConvexSet

__all__ = [
    "check_labels",
    "check_reduction",
    "check_rows",
    "check_scores",
    "check_target",
    "class_dim",
    "looks_at_values",
    "output_dtype",
    "rows_along",
]

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def check_scores(input: Tensor) -> None:  # noqa: A002  # PyTorch's name
    """Raise unless ``input`` holds floating-point scores."""
    if not isinstance(input, Tensor):
        raise TypeError(f"input must be a tensor of scores, got {type(input).__name__}")
    if input.dtype not in _FLOATS:
        raise TypeError(
            f"input must hold floating-point scores, got {input.dtype}; convert it with .float()"
        )


def check_target(target: Tensor, input: Tensor) -> None:  # noqa: A002
    """Raise unless ``target`` is a tensor beside ``input`` that wants no gradient."""
    if not isinstance(target, Tensor):
        raise TypeError(f"target must be a tensor, got {type(target).__name__}")
    if target.device != input.device:
        raise ValueError(
            f"input is on {input.device} and target on {target.device}; "
            "move the target with target.to(input.device)"
        )
    if target.dtype == torch.bool or target.is_complex():
        raise TypeError(
            f"target must hold class indices or numbers of the domain, got {target.dtype}; "
            "convert it with .long() or .float()"
        )
    if target.requires_grad:
        raise ValueError(
            "the losses are differentiated in input, not in target; pass target.detach()"
        )


def check_reduction(reduction: str) -> None:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"reduction must be 'none', 'mean' or 'sum', got {reduction!r}")


def class_dim(input: Tensor, dim: int | None) -> int:  # noqa: A002
    """The axis of the classes, non-negative: ``dim``, or PyTorch's choice, 1 (0 for a vector)."""
    if input.ndim == 0:
        raise ValueError("input must have at least one axis, the classes, got a scalar")
    if dim is None:
        return min(1, input.ndim - 1)
    if not -input.ndim <= dim < input.ndim:
        raise ValueError(f"dim={dim} is not an axis of input, which has shape {tuple(input.shape)}")
    return dim % input.ndim


def looks_at_values(validate: bool | None, x: Tensor) -> bool:
    """Whether values are checked: as asked, else on the CPU, where looking costs no wait."""
    traced = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    if validate is None:
        return x.device.type == "cpu" and not traced
    if validate and traced:
        raise RuntimeError(
            "validate=True looks at the values of the target, which torch.compile and torch.func "
            "cannot; check outside of the transformed function, or pass validate=False"
        )
    return validate


def check_labels(labels: Tensor, k: int, ignore_index: int) -> None:
    """Raise with the first label that is neither a class nor ``ignore_index``."""
    outside = ((labels < 0) | (labels >= k)) & (labels != ignore_index)
    if not bool(outside.any()):
        return
    first = tuple(int(i) for i in outside.nonzero()[0])
    where = first[0] if len(first) == 1 else first
    raise ValueError(
        f"target {int(labels[first])} at {where if first else 'the only place'} is out of range: "
        f"input has {k} classes, 0 to {k - 1}, and ignore_index is {ignore_index}"
    )


def check_rows(y: Tensor, domain: ConvexSet) -> None:
    """Raise with the first row of targets that is outside of the domain."""
    check_membership(y, domain, "target")


def output_dtype(input: Tensor) -> torch.dtype:  # noqa: A002
    """The dtype of a loss: the scores' own; float32 for half precision under autocast."""
    half = input.dtype in (torch.float16, torch.bfloat16)
    if half and torch.is_autocast_enabled(input.device.type):
        return torch.float32
    return input.dtype


def rows_along(x: Tensor, axis: int) -> Tensor:
    """The vectors along ``axis`` as rows, shape (n, k); a matrix of rows is itself."""
    if x.ndim == 2 and axis == 1:
        return x
    moved = x.movedim(axis, -1)
    return moved.reshape(math.prod(moved.shape[:-1]), moved.shape[-1])
