"""Which engine computes a loss: the core's formulas, or Triton kernels on a GPU."""

import importlib
import os
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor

from ..engines import find_kernel
from ..losses import regularizers_by_name
from ._handles import regularizer_of

__all__ = ["check_engine", "choose_engine", "engine_module"]

_ENGINES = {
    "reference": "fitzpatrick.torch._reference",
    "triton": "fitzpatrick.engines.triton.launch",
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
def _has_kernel(omega: str) -> bool:
    """Whether there are Triton kernels for a regularizer."""
    return find_kernel("triton", regularizer_of(omega)) is not None


def choose_engine(engine: str | None, theta: Tensor, omega: str) -> str:
    """The engine asked for, or the fastest one that is there; raises where it is not there."""
    if engine is None:
        return "triton" if theta.is_cuda and _HAS_TRITON and _has_kernel(omega) else "reference"
    check_engine(engine)
    if engine == "triton":
        _check_triton(theta, omega)
    return engine


def _check_triton(theta: Tensor, omega: str) -> None:
    if not _HAS_TRITON:
        raise ImportError(
            'engine="triton" needs the package triton, which is not installed; it comes with the '
            'CUDA builds of PyTorch. Use engine="reference", or None to choose automatically'
        )
    if not _has_kernel(omega):
        names = ", ".join(
            repr(o) for name, o in regularizers_by_name().items() if _has_kernel(name)
        )
        raise ValueError(
            f"there is no Triton kernel for the losses of {regularizer_of(omega)!r}; there is one "
            f'for those of {names}. Use engine="reference"'
        )
    if not (theta.is_cuda or _IS_INTERPRETED):
        raise ValueError(
            f'engine="triton" needs scores on a CUDA device, got {theta.device}. Move them with '
            '.cuda(), use engine="reference", or set TRITON_INTERPRET=1 to test on the CPU'
        )
