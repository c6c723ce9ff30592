"""Which engine computes a loss, and how it is called.

``"reference"`` is the core's formulas on any device, with compiled rows on a CPU; ``"triton"`` is
kernels on a GPU. Which of them has a regularizer is looked up once for each handle.
"""

import functools
import importlib
import os
from importlib.util import find_spec
from typing import Any, NamedTuple

from torch import Tensor

from ..engines import find_kernel
from ..engines.triton.specs import MAX_PROPER_TIGHTNESS, parse_kernel
from ..losses import regularizers_by_name
from ..regularizers import Regularizer
from . import _graphs as graphs
from . import _reference as reference
from ._arguments import rows_along
from ._handles import LossCall, regularizer_of
from ._stats import StatsRequest, clear_uncounted_, numbers_of
from ._targets import Scale, Smoothed, Target, as_rows, scale_vector, working_dtype
from ._transform import Scaling

_ENGINES = ("reference", "triton")
_HAS_TRITON = find_spec("triton") is not None
_IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


class _Kernel(NamedTuple):
    """The Triton kernel of a regularizer, by its name, and which rows it takes."""

    name: str
    is_entrywise: bool
    takes_rows: bool = True
    takes_columns: bool = False


@functools.lru_cache(maxsize=256)
def kernel_of(omega: str) -> _Kernel | None:
    regularizer = regularizer_of(omega)
    name = find_kernel("triton", regularizer)
    if name is None or regularizer.is_entrywise:
        return None if name is None else _Kernel(name, is_entrywise=True)
    spec, _ = parse_kernel(name)
    return _Kernel(name, False, spec.takes_rows, spec.takes_columns)


# a compiler takes the answer as it is, without a look at the table
@graphs.constant
def _has_kernel(omega: str, has_labels: bool) -> bool:
    """True if there are Triton kernels for a regularizer, with class indices or other targets."""
    kernel = kernel_of(omega)
    return kernel is not None and (has_labels or kernel.takes_rows)


@graphs.constant
def entmax_alpha(omega: str) -> float | None:
    return regularizer_of(omega).entmax_alpha


def has_probability_kernel(omega: Regularizer, tightness: float, theta: Tensor) -> bool:
    if not (theta.is_cuda and _HAS_TRITON and 0 < tightness <= MAX_PROPER_TIGHTNESS):
        return False
    return find_kernel("triton", omega) == "logistic"


def check_engine(engine: str | None) -> None:
    if engine is not None and engine not in _ENGINES:
        raise ValueError(f"engine must be one of {', '.join(_ENGINES)} or None, got {engine!r}")


def has_triton(x: Tensor) -> bool:
    return x.is_cuda and _HAS_TRITON


def choose_engine(engine: str | None, theta: Tensor, omega: str, *, has_labels: bool = True) -> str:
    """The engine asked for, or the fastest available; raises if it is not available."""
    if engine is None:
        is_there = has_triton(theta) and _has_kernel(omega, has_labels)
        return "triton" if is_there else "reference"
    check_engine(engine)
    if engine == "triton":
        check_triton(theta, omega, has_labels)
    return engine


def check_triton(theta: Tensor, omega: str, has_labels: bool) -> None:
    if not _HAS_TRITON:
        raise ImportError(
            'engine="triton" needs the package triton, which is not installed; it comes with the '
            'CUDA builds of PyTorch. Use engine="reference", or None to choose automatically'
        )
    if not _has_kernel(omega, has_labels):
        names = ", ".join(
            repr(o) for name, o in regularizers_by_name().items() if _has_kernel(name, has_labels)
        )
        targets = "" if has_labels else " at proportions"
        raise ValueError(
            f"there is no Triton kernel for the losses of {regularizer_of(omega)!r}{targets}; "
            f'there is one for those of {names}. Use engine="reference"'
        )
    if not (theta.is_cuda or _IS_INTERPRETED):
        raise ValueError(
            f'engine="triton" needs scores on a CUDA device, got {theta.device}. Move them with '
            '.cuda(), use engine="reference", or set TRITON_INTERPRET=1 to test on the CPU'
        )


@functools.cache
def launcher(module: str = "launch") -> Any:
    """A module that launches kernels, which loads Triton."""
    return importlib.import_module(f"fitzpatrick.engines.triton.{module}")


def takes_columns(theta: Tensor) -> bool:
    """True if kernels read the columns of scores (outer, k, inner) without a copy."""
    return bool(launcher("plan").takes_columns(*theta.shape[1:]))


def takes_transforms(target: Target, call: LossCall) -> bool:
    """True if a kernel changes the scores of a loss on its way, and computes numbers of rows."""
    if call.engine != "triton" or isinstance(target, Smoothed) or target.ndim == 2:
        return False
    kernel = kernel_of(call.omega)
    return kernel is not None and not kernel.is_entrywise and kernel.takes_rows


def compute(
    theta: Tensor,
    target: Target,
    scale: Scale,
    call: LossCall,
    with_value: bool = True,
    with_gradient: bool = True,
    in_place: bool = False,
    stats: StatsRequest | None = None,
    transform: Scaling | None = None,
    by_factor: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Losses of the rows, (n,), and their gradients in θ, both scaled; of no use if not asked for.

    ``in_place`` allows an engine to write the gradients over the scores. A request for numbers of
    the rows is answered. A transform is for kernels that take one; the derivatives of the rows in
    its factor are written into ``by_factor``.
    """
    out: tuple[Tensor, Tensor]
    if call.engine == "reference":
        y = as_rows(target, theta.shape[1])
        return reference.compute(theta, y, scale, call, with_gradient, stats)
    working, numbers = working_dtype(theta), None
    if stats is not None and stats.target is target and takes_transforms(target, call):
        numbers = theta.new_empty((len(stats.target), 4), dtype=working)
    elif stats is not None:
        stats.answer = numbers_of(rows_along(theta, 1), stats.target, call.ignore_index)
    kernel: Any = kernel_of(call.omega)
    wanted = with_value, with_gradient
    if not kernel.is_entrywise:
        loss = kernel.name, call.tightness, call.ignore_index
        factor, cap = transform or (None, 0.0)
        if isinstance(factor, float):
            factor = theta.new_full((), factor, dtype=working)
        extras = launcher().Extras(factor, cap, by_factor, numbers)
        out = launcher().launch_loss(theta, target, scale, *loss, *wanted, in_place, extras)
        if numbers is not None and stats is not None:
            k = theta.shape[1]
            stats.answer = clear_uncounted_(numbers, stats.target, k, call.ignore_index)
        return out
    divisor, weight = (scale, None) if isinstance(scale, int) else (1, scale)
    if weight is not None:
        weight = scale_vector(weight, theta, theta, -1)[:, None].expand(theta.shape)
    loss_of_entries = call.omega, call.tightness, False, *wanted
    values, gradients = compute_entries(theta, target, weight, None, divisor, *loss_of_entries)
    return values.reshape(-1), gradients


def compute_entries(
    theta: Tensor,
    target: Target,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    divisor: int,
    omega: str,
    tightness: float,
    is_summed: bool,
    with_value: bool = True,
    with_gradient: bool = True,
) -> tuple[Tensor, Tensor]:
    """Entry-wise losses by a kernel, or their sum, and their gradients; empty if not asked for."""
    kernels, kernel = launcher("entry_launch"), kernel_of(omega)
    if kernel is None:
        raise ValueError(f"there is no Triton kernel for {regularizer_of(omega)!r}")
    call = kernels.EntryCall(kernel.name, tightness, is_summed, with_value, with_gradient)
    values, gradients = kernels.entry_loss(theta, target, weight, pos_weight, divisor, call)
    return values.sum() if is_summed else values, gradients


def scale_(gradient: Tensor, factors: Tensor, engine: str) -> Tensor:
    """Multiply a gradient by one factor, or its rows by one each, in place."""
    if engine == "triton":
        rows = gradient if gradient.ndim > 1 else gradient.reshape(1, -1)
        if rows.ndim > 2 and not factors.ndim:
            rows = rows.flatten(1)
        if rows.numel():
            launcher().scale_rows_(rows, factors)
    elif factors.ndim:
        gradient.mul_(factors[:, None])
    elif not gradient.is_cpu or factors.item() != 1:
        gradient.mul_(factors)
    return gradient
