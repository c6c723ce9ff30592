"""What compiled kernels share: blocks in the memory layout they know, and the core for the rest."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..rows import BlockTask, CoreKernel, Output, RowKernel
from ..targets import FloatArray, Scratch
from ._lists import usable

# as numbers that compiled code knows
GRADIENT, Y_STAR, SLOPE = (int(output) for output in Output)


@dataclass(frozen=True, eq=False)
class CompiledKernel(RowKernel):
    """Rows of one loss by compiled code, which computes in float64 whatever the scores are.

    It leaves NaN as the loss of a row that holds something it does not know. The core computes
    that row, and all between the first and the last such row of a block.
    """

    block_bytes: ClassVar[int] = 1 << 20

    @abstractmethod
    def _call(self, task: BlockTask) -> None:
        """Call the compiled code on contiguous arrays that may be written to."""

    def compute(self, task: BlockTask) -> None:
        output, rows, theta, value, out, scratch = task
        theta = usable(theta)
        own_value = _buffer(value, "value", theta.shape[:1], theta.dtype, scratch)
        own_out = _buffer(out, "out", theta.shape, theta.dtype, scratch)
        whole = BlockTask(output, rows, theta, own_value, own_out, scratch)
        self._call(whole)
        bad = np.flatnonzero(np.isnan(own_value))
        if len(bad):
            part = slice(int(bad[0]), int(bad[-1]) + 1)
            CoreKernel(self.omega, self.tightness, self.targets).compute(whole.part(part))
        if value is not None and value is not own_value:
            value[...] = own_value
        if out is not None and out is not own_out:
            out[...] = own_out


def _buffer(
    given: FloatArray | None, name: str, shape: tuple[int, ...], dtype: Any, scratch: Scratch
) -> FloatArray:
    """What was given, if compiled code can write into it."""
    if given is not None and given.flags.carray:
        return given
    return scratch.array(f"compiled {name}", shape, dtype)
