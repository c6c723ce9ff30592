"""Checks of what a user passes in: shapes and dtypes always, values where that is asked for."""

# ruff: noqa: A002  # ``input`` is PyTorch's name

import math
import operator
import sys
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np
import torch
from torch import Tensor
from torch._C._functorch import is_legacy_batchedtensor  # what is_grads_batched=True makes
from torch.autograd import forward_ad

from .._validation import check_membership, read_number
from ..sets import ConvexSet

_PLAIN = (Tensor, torch.nn.Parameter)
# NumPy checks up to this many targets faster than PyTorch, which starts threads.
MAX_NUMPY_SIZE = 1 << 16
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def check_scores(input: Tensor) -> None:
    check_dense(input, "input", "scores", ". Losses take the scores first, the target second")


def _check_tensor(x: Tensor, name: str, content: str = "") -> None:
    if not isinstance(x, Tensor):
        content = f" of {content}" if content else ""
        raise TypeError(f"{name} must be a tensor{content}, got {type(x).__name__}")


def check_dense(x: Tensor, name: str, content: str, hint: str = "") -> None:
    _check_tensor(x, name, content)
    if x.dtype not in _FLOATS:
        raise TypeError(
            f"{name} must hold floating-point {content}, got {x.dtype}; convert it with "
            f".float(){hint}"
        )
    if x.is_nested:
        raise TypeError(f"{name} must be a dense tensor, got a nested one; use to_padded_tensor()")
    if x.layout is not torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got {x.layout}; convert it to_dense()")


def check_device(x: Tensor, input: Tensor, name: str, more: str = "", of: str = "input") -> None:
    if x.device != input.device:
        raise ValueError(
            f"{of} is on {input.device} and {name} on {x.device}; "
            f"move it with {name}.to({of}.device){more}"
        )


_OR_THE_MODULE = ", or the module with .to(device)"


def check_features(input: Tensor) -> None:
    _check_tensor(input, "input", "features")


def check_layer(input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Raise unless a linear layer of this weight (k, h) and bias (k,) takes ``input`` (…, h)."""
    if input.ndim == 0:
        raise ValueError("input must have at least one axis, the features, got a scalar")
    parts = [("linear_weight", weight)]
    parts += [] if bias is None else [("linear_bias", bias)]
    for name, part in [("input", input), *parts]:
        check_dense(part, name, "features" if part is input else "parameters")
        if is_dtensor(part):
            raise TypeError(
                f"{name} is a DTensor, which heads do not take; pass its to_local(), and "
                "process_group=mesh.get_group() where its classes are sharded"
            )
        check_device(part, input, name, _OR_THE_MODULE)
    if weight.ndim != 2 or weight.shape[1] != input.shape[-1]:
        raise ValueError(
            f"linear_weight must have shape (classes, {input.shape[-1]}) to go with input of shape "
            f"{tuple(input.shape)}, got {tuple(weight.shape)}"
        )
    if weight.shape[0] == 0:
        raise ValueError("linear_weight must have at least one class, on every rank, got none")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(
            f"linear_bias must have one entry per class, ({weight.shape[0]},), "
            f"got {tuple(bias.shape)}"
        )
    for name, part in parts:
        if part.dtype != input.dtype and not is_autocast(input):
            raise TypeError(
                f"input is {input.dtype} and {name} {part.dtype}; convert one of them, "
                "or use torch.autocast"
            )


def check_target(target: Tensor, input: Tensor) -> None:
    _check_tensor(target, "target")
    check_device(target, input, "target")
    if target.dtype == torch.bool or target.is_complex():
        raise TypeError(
            f"target must hold class indices or numbers of the domain, got {target.dtype}; "
            "convert it with .long() or .float()"
        )
    if target.requires_grad:
        raise ValueError(
            "the losses are differentiated in input, not in target; pass target.detach()"
        )


def check_weight(weight: Tensor, input: Tensor, name: str = "weight") -> None:
    check_dense(weight, name, "numbers")
    check_device(weight, input, name, _OR_THE_MODULE)


def check_class_weight(weight: Tensor, k: int | None, look: bool) -> None:
    if weight.ndim != 1 or k not in (None, len(weight)):
        expected = "" if k is None else f" ({k},),"
        raise ValueError(
            f"weight must have one entry per class,{expected} got {tuple(weight.shape)}"
        )
    if look and bool((weight < 0).any()):
        raise ValueError(
            "weight must not be negative with label_smoothing, where it changes the target, "
            f"got {float(weight.min())}"
        )


def check_class_target(
    target: Tensor, shape: tuple[int, ...], axis: int, ignore_index: int
) -> None:
    """Raise unless the target's shape is right for class indices, or for proportions.

    The scores have that shape, with classes in ``axis``.
    """
    if target.is_floating_point():
        check_same_shape(target, shape, "; class indices are integers: convert them with .long()")
        if ignore_index >= 0:
            raise ValueError(
                f"ignore_index={ignore_index} is a class index and the target holds proportions, "
                "which have none; a weight of 0 leaves a class out"
            )
        return
    expected = (*shape[:axis], *shape[axis + 1 :])
    if target.shape != expected:
        one_hot = "; one-hot rows are proportions: convert them with .float()"
        hint = one_hot if target.shape == shape else ""
        raise ValueError(
            f"class indices must have shape {expected} to go with scores of shape "
            f"{tuple(shape)} and classes in axis {axis}, got {tuple(target.shape)}{hint}"
        )


def check_same_shape(target: Tensor, shape: tuple[int, ...], hint: str = "") -> None:
    if target.shape != shape:
        raise ValueError(
            f"target must have the shape of the scores, {tuple(shape)}, got "
            f"{tuple(target.shape)}{hint}"
        )


def as_integer(value: SupportsIndex, what: str) -> int:
    """``value`` in Python; it may be an integer of NumPy, or a tensor."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{what}, got {value!r}")
    return operator.index(value)


def as_float(value: float, name: str) -> float:
    number = read_number(value, name)
    is_number = isinstance(number, (int, float, np.integer, np.floating))
    if isinstance(number, bool) or not is_number:
        raise TypeError(f"{name} must be a number, got {value!r}")
    return float(number)


def as_chunk_size(chunk_size: SupportsIndex | None = None) -> int | None:
    if chunk_size is None:
        return None
    size = as_integer(chunk_size, "chunk_size must be a number of rows, or None")
    if size < 1:
        raise ValueError(f"chunk_size must be at least one row, got {size}; None chooses it")
    return size


def check_accumulate_dtype(dtype: torch.dtype | None, own: torch.dtype) -> None:
    wider = (own, torch.float32) if own != torch.float64 else (own,)
    if dtype is not None and dtype not in wider:
        raise ValueError(
            f"accumulate_dtype must be {' or '.join(map(str, dict.fromkeys(wider)))} for a "
            f"linear_weight in {own}, or None, got {dtype}"
        )


def check_options(
    reduction: str = "mean", label_smoothing: float = 0.0, validate: bool | None = None
) -> float:
    """Raise for options that no input could go with; ``label_smoothing`` as a number."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    label_smoothing = as_float(label_smoothing, "label_smoothing")
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"label_smoothing must be between 0 and 1, got {label_smoothing}")
    if validate not in (None, True, False):
        raise TypeError(f"validate must be True, False or None, got {validate!r}")
    return label_smoothing


def class_dim(input: Tensor, dim: SupportsIndex | None) -> int:
    """The axis of the classes, non-negative: ``dim``, or PyTorch's choice, 1 (0 for a vector)."""
    if input.ndim == 0:
        raise ValueError("input must have at least one axis, the classes, got a scalar")
    if dim is None:
        return min(1, input.ndim - 1)
    dim = as_integer(dim, "dim must be the number of an axis")
    if not -input.ndim <= dim < input.ndim:
        raise ValueError(f"dim={dim} is not an axis of input, which has shape {tuple(input.shape)}")
    return dim % input.ndim


def check_parameters(x: Tensor, input: Tensor, name: str, low: float, high: float) -> None:
    """Raise unless ``x`` is a floating-point tensor beside ``input``, between two numbers.

    Its values are looked at on a CPU; on a GPU one out of range makes its rows NaN.
    """
    check_weight(x, input, name)
    is_wrong = ~((x >= low) & (x <= high))
    if looks_at_values(None, x) and bool(is_wrong.any()):
        wrong = x[is_wrong][0].item()
        raise ValueError(f"{name} must be between {low:g} and {high:g}, got {wrong}")


def expand_to(
    x: Tensor, shape: Sequence[int], name: str, meaning: str = "the shape of input"
) -> Tensor:
    try:
        return x.expand(tuple(shape))
    except RuntimeError as error:
        raise ValueError(
            f"{name} of shape {tuple(x.shape)} cannot be broadcast to {tuple(shape)}, {meaning}"
        ) from error


def expand_over_rows(x: Tensor, input: Tensor, axis: int, name: str) -> Tensor:
    """One number of ``x`` for each row of ``input``, with an axis of one entry at the end."""
    shape = [1 if i == axis else size for i, size in enumerate(input.shape)]
    where = "the shape of input with one entry in place of the classes"
    return expand_to(x, shape, name, where).movedim(axis, -1)


def expand_mask(mask: Tensor, input: Tensor) -> Tensor:
    found = getattr(mask, "dtype", type(mask).__name__)
    if found != torch.bool:
        raise TypeError(f"mask must be a boolean tensor, True where an entry is kept, got {found}")
    check_device(mask, input, "mask")
    return expand_to(mask, input.shape, "mask")


def is_plain(*tensors: Tensor) -> bool:
    """True if these are ordinary eager tensors, whose values may be looked at.

    That is: no subclass, functorch transform, dispatch mode, tracing or meta device. An engine may
    then be called without PyTorch's dispatcher, which costs more than a small kernel. PyTorch has
    no public name for most of these questions.
    """
    for x in tensors:
        if type(x) not in _PLAIN or x.is_meta or is_legacy_batchedtensor(x):
            return False
    return (
        not torch._C._are_functorch_transforms_active()
        and not torch._C._len_torch_dispatch_stack()
        and torch._C._get_tracing_state() is None
        and forward_ad._current_level < 0
    )


def is_dtensor(x: Tensor) -> bool:
    """True if ``x`` is spread over a device mesh; never imports PyTorch's module for that."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(x, module.DTensor)


def check_one_forward_level() -> None:
    """Raise where forward mode runs inside of forward mode.

    PyTorch does not differentiate the ``jvp`` of a Function: the outer derivative would be zero.
    """
    levels = torch._C._functorch.get_interpreter_stack() or []
    if sum(level.key() == torch._C._functorch.TransformType.Jvp for level in levels) > 1:
        raise NotImplementedError(
            "the losses and links do not support forward mode inside of forward mode; "
            "use torch.func.hessian, or jacrev inside of jacfwd"
        )


def is_in_forward_mode() -> bool:
    return forward_ad._current_level >= 0


def is_transformed() -> bool:
    return torch._C._are_functorch_transforms_active() or is_in_forward_mode()


def is_eager(*tensors: Tensor | None) -> bool:
    """True if the tensors are ordinary ones, and no compiler traces what happens to them."""
    given = [x for x in tensors if x is not None]
    return not torch.compiler.is_compiling() and is_plain(*given)


def looks_at_values(validate: bool | None, x: Tensor, eager: bool | None = None) -> bool:
    """True if values are checked: as asked, else on the CPU, where looking costs no wait."""
    eager = is_eager(x) if eager is None else eager
    if validate is None:
        return x.is_cpu and eager
    # asked once more, since a compiler that gives up on this call resumes with what it traced
    if validate and not eager and (torch.compiler.is_compiling() or not is_plain(x)):
        raise RuntimeError(
            "validate=True looks at the values of the target, which torch.compile and torch.func "
            "do not show, and meta tensors do not have; check outside of the transformed function, "
            "or pass validate=False"
        )
    return validate


def check_labels(labels: Tensor, k: int, ignore_index: int) -> None:
    """Raise with the first label, an int64, that is neither a class nor ``ignore_index``."""
    if labels.numel() == 0:
        return
    low, high = torch.aminmax(labels)
    if low.item() >= 0 and high.item() < k:
        return
    outside = ((labels < 0) | (labels >= k)) & (labels != ignore_index)
    if not bool(outside.any()):
        return
    first = tuple(int(i) for i in outside.nonzero()[0])
    where = first[0] if len(first) == 1 else first
    raise ValueError(
        f"target {int(labels[first])} at {where if first else 'the only place'} is out of range: "
        f"input has {k} classes, 0 to {k - 1}, and ignore_index is {ignore_index}"
    )


def check_rows(y: Tensor, domain: ConvexSet, axis: int) -> None:
    """Raise with the first vector along ``axis`` that is outside of the domain, and its place."""
    is_small = y.is_cpu and y.itemsize > 2 and y.numel() <= MAX_NUMPY_SIZE
    is_small &= domain.coordinates is not None  # a set of a user's own may be for tensors alone
    check_membership(y.numpy(force=True) if is_small else y, domain, "target", axis=axis)


def output_dtype(input: Tensor, dtype: torch.dtype | None = None) -> torch.dtype:
    """The dtype of a loss: the scores' own; float32 for half precision under autocast."""
    dtype = input.dtype if dtype is None else dtype
    return torch.float32 if dtype.itemsize == 2 and is_autocast(input) else dtype


def product_dtype(input: Tensor) -> torch.dtype:
    """The dtype of matrix products with ``input``; autocast leaves float64 alone."""
    if is_autocast(input) and input.dtype != torch.float64:
        return torch.get_autocast_dtype(input.device.type)
    return input.dtype


def is_autocast(x: Tensor) -> bool:
    """True if PyTorch chooses the precision of what is computed of ``x``."""
    device = x.device.type
    # torch.compile before PyTorch 2.13 cannot ask that; all that it compiles for has autocast
    if not torch.compiler.is_compiling() and not torch.amp.is_autocast_available(device):
        return False
    return torch.is_autocast_enabled(device)


def rows_along(x: Tensor, axis: int) -> Tensor:
    """The vectors along ``axis`` as rows, shape (n, k); a matrix of rows is itself."""
    if x.ndim == 2 and axis == 1:
        return x
    moved = x.movedim(axis, -1)
    return moved.reshape(math.prod(moved.shape[:-1]), moved.shape[-1])


def columns_along(x: Tensor, axis: int) -> Tensor:
    """The vectors along ``axis`` as rows, or, where they are, columns of (outer, k, inner)."""
    if axis == x.ndim - 1 or not x.is_contiguous():
        return rows_along(x, axis)
    return x.reshape(math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]))
