"""Compiled rows on a CPU: when they pay, and the shortest way to them for a small batch.

Loading compiled rows takes a second, and some more the first time after an installation. They pay
once a regularizer has seen as many scores as one large call would have, in however many calls.
"""

import functools
import math
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..engines import BoundLoss, DenseTargets, Labels, RowBlocks, bind_trusted, find_kernel
from ..engines._bind import MIN_COMPILED_SIZE, Engine, _numba_compiles
from ..engines._blocks import FloatArray, IntArray, Scratch
from ..engines._output import Output
from ..engines._row_kernel import BlockTask
from ..engines.table import load_kernel
from ..losses import Loss
from ._handles import loss_of, regularizer_of

KernelMaker = Callable[[Loss, Labels | DenseTargets], Any]

# Up to so many scores are one block of rows, for one thread.
_MAX_BLOCK = 1 << 16
_SCORES_SEEN: Counter[str] = Counter()


class _Buffers(threading.local):
    """The buffers of a thread, which stay."""

    def __init__(self) -> None:
        self.scratch = Scratch()


_BUFFERS = _Buffers()


class _OneBlock(RowBlocks):
    """Few rows, by this thread alone: anything else would take longer than the rows themselves."""

    def _for_each_block(self, work: Callable[[slice, Scratch], None]) -> None:
        work(slice(0, self.kernel.targets.shape[0]), _BUFFERS.scratch)


@functools.lru_cache(maxsize=256)
def _load(omega: str) -> KernelMaker | None:
    name = find_kernel("numba", regularizer_of(omega))
    if name is None or not _numba_compiles():
        return None
    make: KernelMaker = load_kernel(name)
    return make


def _compiled_kernel(omega: str, size: int) -> KernelMaker | None:
    """What makes the compiled kernel for so many scores; None where there is none, or not yet.

    Where algorithms have to be deterministic, the calls before do not count: a training that is
    resumed has the digits of one that never stopped.
    """
    if size < MIN_COMPILED_SIZE and not torch.are_deterministic_algorithms_enabled():
        _SCORES_SEEN[omega] += size
        size = _SCORES_SEEN[omega]
    return _load(omega) if size >= MIN_COMPILED_SIZE else None


def bind_rows(omega: str, loss: Loss, targets: Labels | DenseTargets) -> BoundLoss:
    """A row-wise loss at its targets, by compiled rows where they pay."""
    size = math.prod(targets.shape)
    make = _compiled_kernel(omega, size)
    if make is not None and size <= _MAX_BLOCK:
        return _OneBlock(make(loss, targets), 1)
    engine: Engine | None = None if make is None else "numba"
    bound = bind_trusted(loss, targets, torch.get_num_threads(), engine)
    if bound is None:
        raise TypeError(f"{loss.regularizer!r} is row-wise, but no engine has it")
    return bound


def _few_rows(
    theta: Tensor, y: IntArray, omega: str, tightness: float, output: Output, divisor: float
) -> tuple[float, FloatArray] | None:
    """The sum of the losses of a small batch at int64 labels, and an output of each row; divided.

    None where compiled rows do not pay, or do not know one of them, such as one with a label that
    is no class.
    """
    n, k = theta.shape
    make = _compiled_kernel(omega, n * k) if 0 < n * k <= _MAX_BLOCK else None
    if make is None:
        return None
    x = theta.numpy(force=True)
    if not x.flags.carray:
        return None
    kernel = make(loss_of(omega, tightness), Labels((n, k), x.dtype, y))
    scratch = _BUFFERS.scratch
    values, rows = scratch.array("values", (n,), x.dtype), np.empty((n, k), x.dtype)
    task = BlockTask(output, slice(0, n), x, values, rows, scratch)
    total = kernel.sum_losses(task, divisor)
    return None if math.isnan(total) else (total, rows)


def compute_few_labels(
    theta: Tensor, labels: Tensor, omega: str, tightness: float, divisor: float
) -> tuple[Tensor, Tensor] | None:
    """The sum of the losses of a small batch, and its gradient, both divided; None as above."""
    computed = _few_rows(theta, labels.numpy(), omega, tightness, Output.GRADIENT, float(divisor))
    if computed is None:
        return None
    total, rows = computed
    return torch.from_numpy(np.asarray(total, rows.dtype)), torch.from_numpy(rows)


@functools.lru_cache(maxsize=8)
def _any_labels(n: int) -> IntArray:
    """Labels that are only to be read."""
    return np.zeros(n, np.int64)


def compute_few_links(theta: Tensor, omega: str) -> Tensor | None:
    """The predictions of a small batch on the simplex, which are the same for all labels."""
    computed = _few_rows(theta, _any_labels(theta.shape[0]), omega, 0.0, Output.Y_STAR, 1.0)
    return None if computed is None else torch.from_numpy(computed[1])


@functools.lru_cache(maxsize=256)
def _load_link_product(make: KernelMaker, omega: str) -> Callable[..., None]:
    no_rows = Labels((0, 1), np.dtype(np.float64), _any_labels(0))
    formula = make(loss_of(omega, 0.0), no_rows).link_formula
    return functools.partial(load_kernel("compiled._jacobian:multiply_by_jacobian"), formula)


def compute_link_product(p: Tensor, v: Tensor, omega: str) -> Tensor | None:
    """The Jacobian of a link on the simplex at its predictions, times v.

    None where compiled rows do not pay, or the tensors are none of theirs.
    """
    if not (p.is_cpu and p.dtype in (torch.float32, torch.float64) and v.dtype == p.dtype):
        return None
    size = p.numel()
    make = _compiled_kernel(omega, size)
    if make is None:
        return None
    x = p.numpy(force=True)
    out = np.empty(x.shape, x.dtype)
    n_threads = torch.get_num_threads() if size > _MAX_BLOCK else 1
    _load_link_product(make, omega)(x, v.numpy(force=True), out, n_threads)
    return torch.from_numpy(out)
