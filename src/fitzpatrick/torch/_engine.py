"""Which engine computes a loss: the core's formulas, or Triton kernels on a GPU."""

import functools
import importlib
import os
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor

from ..engines import find_kernel
from ..engines.triton.specs import parse_kernel
from ..losses import regularizers_by_name
from ._handles import regularizer_of

_ENGINES = {
    "reference": "fitzpatrick.torch._reference",
    "triton": "fitzpatrick.torch._triton",
}
_HAS_TRITON = find_spec("triton") is not None
_IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
_LOADED: dict[str, ModuleType] = {}


def engine_module(engine: str) -> ModuleType:
    """The module with an engine's ``value``, ``gradient`` and ``value_and_gradient``."""
    if engine not in _LOADED:
        _LOADED[engine] = importlib.import_module(_ENGINES[engine])
    return _LOADED[engine]


def check_engine(engine: str | None) -> None:
    """Raise unless ``engine`` is the name of one, or None."""
    if engine is not None and engine not in _ENGINES:
        raise ValueError(f"engine must be one of {', '.join(_ENGINES)} or None, got {engine!r}")


# a compiler takes the answer as it is, without a look at the table
@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # PyTorch's is not annotated
def _has_kernel(omega: str, has_labels: bool) -> bool:
    """Whether there are Triton kernels for a regularizer, with class indices or other targets."""
    kernel = find_kernel("triton", regularizer_of(omega))
    if kernel is None or has_labels or regularizer_of(omega).is_entrywise:
        return kernel is not None
    return parse_kernel(kernel)[0].takes_rows


def has_column_kernel(omega: str) -> bool:
    """Whether the Triton kernel of a regularizer takes scores of shape (outer, k, inner)."""
    return parse_kernel(kernel_of(omega))[0].takes_columns


@functools.lru_cache(maxsize=256)
def kernel_of(omega: str) -> str:
    """The name of the Triton kernel of a regularizer that has one."""
    kernel = find_kernel("triton", regularizer_of(omega))
    if kernel is None:
        raise ValueError(f"there is no Triton kernel for {regularizer_of(omega)!r}")
    return kernel


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # PyTorch's is not annotated
def entmax_alpha(omega: str) -> float | None:
    """α where a link is α-entmax for a number α; None where it is another one."""
    return _find_alpha(omega)


@functools.lru_cache(maxsize=256)
def _find_alpha(omega: str) -> float | None:
    kernel = find_kernel("triton", regularizer_of(omega))
    if kernel is None or regularizer_of(omega).is_entrywise:
        return None
    spec, alpha = parse_kernel(kernel)
    return alpha or spec.alpha


def choose_engine(engine: str | None, theta: Tensor, omega: str, *, has_labels: bool = True) -> str:
    """The engine asked for, or the fastest one that is there; raises where it is not there."""
    if engine is None:
        is_there = theta.is_cuda and _HAS_TRITON and _has_kernel(omega, has_labels)
        return "triton" if is_there else "reference"
    check_engine(engine)
    if engine == "triton":
        _check_triton(theta, omega, has_labels)
    return engine


def _check_triton(theta: Tensor, omega: str, has_labels: bool) -> None:
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
