"""Which engine computes a loss: the core's formulas, or Triton kernels on a GPU."""

import functools
import importlib
import importlib.util
from types import ModuleType

from torch import Tensor

__all__ = ["choose_engine", "triton_engine"]

_ENGINES = ("reference", "triton")


@functools.cache
def triton_engine() -> ModuleType:
    """The module of kernels; raises where Triton is not installed."""
    if importlib.util.find_spec("triton") is None:
        raise ImportError(
            'engine="triton" needs the package triton, which is not installed; it comes with the '
            'CUDA builds of PyTorch. Use engine="reference", or None to choose automatically'
        )
    return importlib.import_module("fitzpatrick.engines.triton")


@functools.cache
def _triton_is_installed() -> bool:
    return importlib.util.find_spec("triton") is not None


def choose_engine(engine: str | None, theta: Tensor, loss: str) -> str:
    """The engine asked for, or the fastest one that is there; raises where it is not there."""
    if engine is None:
        if theta.is_cuda and _triton_is_installed() and triton_engine().supports(loss):
            return "triton"
        return "reference"
    if engine not in _ENGINES:
        raise ValueError(f"engine must be one of {', '.join(_ENGINES)} or None, got {engine!r}")
    if engine == "triton":
        triton_engine().check(theta, loss)
    return engine
