"""Which engine computes a loss: the core's formulas, or Triton kernels on a GPU.

What ``torch.compile`` has to see of the choice is constants of this module, since it cannot trace
the import of another one.
"""

import importlib
import os
from importlib.util import find_spec
from types import ModuleType

from torch import Tensor

from ..engines.triton.specs import SPECS
from ..losses import ends
from ._handles import describe

__all__ = ["check_engine", "choose_engine", "engine_module"]

_ENGINES = {"reference": "fitzpatrick.torch._reference", "triton": "fitzpatrick.torch._kernels"}
_KERNELS = tuple(name for omega in SPECS for name in ends(omega))
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


def choose_engine(engine: str | None, theta: Tensor, loss: str) -> str:
    """The engine asked for, or the fastest one that is there; raises where it is not there."""
    if engine is None:
        return "triton" if theta.is_cuda and _HAS_TRITON and loss in _KERNELS else "reference"
    check_engine(engine)
    if engine == "triton":
        _check_triton(theta, loss)
    return engine


def _check_triton(theta: Tensor, loss: str) -> None:
    if not _HAS_TRITON:
        raise ImportError(
            'engine="triton" needs the package triton, which is not installed; it comes with the '
            'CUDA builds of PyTorch. Use engine="reference", or None to choose automatically'
        )
    if loss not in _KERNELS:
        raise ValueError(
            f"there is no Triton kernel for the loss {describe(loss)}; there is one for "
            f'{", ".join(_KERNELS)}. Use engine="reference"'
        )
    if not (theta.is_cuda or _IS_INTERPRETED):
        raise ValueError(
            f'engine="triton" needs scores on a CUDA device, got {theta.device}. Move them with '
            '.cuda(), use engine="reference", or set TRITON_INTERPRET=1 to test on the CPU'
        )
