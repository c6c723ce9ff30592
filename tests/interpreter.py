"""Triton's interpreter, without what takes it most of its time."""

import contextlib
import functools
import os
import warnings
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np

# so that narrow rows reach the kernels for wide ones
WIDE = dict.fromkeys(
    ("max_logistic_labels", "max_sparse_labels", "max_rows", "max_heavy_rows", "max_precise"), 0
)


@contextlib.contextmanager
def limited(**limits: int) -> Iterator[None]:
    """Other limits for the planner of Triton's kernels."""
    from fitzpatrick.engines.triton import plan

    before, plan.LIMITS = plan.LIMITS, plan.Limits(**limits)
    plan.plan_for.cache_clear()
    try:
        yield
    finally:
        plan.LIMITS = before
        plan.plan_for.cache_clear()


@functools.cache
def speed_up_interpreter():
    """Patch Triton's interpreter so that it does the same in less time; without effect on a GPU."""
    if find_spec("triton") is None or os.environ.get("TRITON_INTERPRET") != "1":
        return
    from triton.runtime import interpreter

    _patch_language_once(interpreter)
    _remember_dtypes(interpreter)
    _remember_shapes(interpreter)
    interpreter.ReduceOps.generic_reduce = _reduce_by_halves
    interpreter.GridExecutor.__call__ = _without_warnings(interpreter.GridExecutor.__call__)
    # it computes whether integers overflow, and asserts that they do not in debug mode alone
    options = interpreter.InterpreterOptions(sanitize_overflow=False)
    interpreter.interpreter_builder.options = options


def _without_warnings(launch):
    """A launch in which NumPy does not warn of infinities and NaN: a GPU does not."""

    def call(*args, **options):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            launch(*args, **options)

    return call


def _patch_language_once(interpreter):
    """Patch Triton's language once for each module of device functions.

    The interpreter patches it again whenever a kernel calls one, which takes a millisecond. A
    kernel has patched what it shares with the functions of its package; the functions of Triton's
    own modules see another one, which stays patched.
    """
    import triton.language as tl

    patched = set()

    def call(self, *args, **options):
        names = self.fn.__globals__
        if names.get("tl") is not tl and id(names) not in patched:
            interpreter._patch_lang(self.fn)
            patched.add(id(names))
        return self.rewrite()(*args, **options)

    interpreter.InterpretedFunction.__call__ = call


def _remember_dtypes(interpreter):
    """Look a dtype up once; the interpreter makes the same table in each of very many calls."""
    look_up, known = interpreter._get_np_dtype, {}

    def find(dtype):
        name = dtype.scalar.name
        if name not in known:
            known[name] = look_up(dtype)
        return known[name]

    interpreter._get_np_dtype = find


def _remember_shapes(interpreter):
    """Make the type of each shape once, and broadcast only what differs; blocks have few shapes."""
    from triton.language import core

    initialize, known = core.block_type.__init__, {}
    of_scalars = {"shape": core.tuple(()), "numel": core.constexpr(1)}

    def find(self, element_ty, shape):
        key = element_ty.name, *map(core._unwrap_if_constexpr, shape)
        if key not in known:
            initialize(self, element_ty, shape)
            axes, numel = map(core.constexpr, self.shape), core.constexpr(self.numel)
            self.of_tensors = {"shape": core.tuple(axes), "numel": numel}
            known[key] = vars(self).copy()
        vars(self).update(known[key])

    def make(self, handle, kind):
        self.handle, self.type, self.dtype = handle, kind, kind.scalar
        vars(self).update(kind.of_tensors if kind.is_block() else of_scalars)

    broadcast = interpreter.TritonSemantic.broadcast_impl_value

    def broadcast_others(self, lhs, rhs):
        left, right = lhs.type, rhs.type
        is_same = left.is_block() and right.is_block() and left.shape.values == right.shape.values
        return (lhs, rhs) if is_same else broadcast(self, lhs, rhs)

    core.block_type.__init__, core.tensor.__init__ = find, make
    interpreter.TritonSemantic.broadcast_impl_value = broadcast_others


def _reduce_by_halves(self, inputs):
    """A reduction by a function of ours: half of the entries onto the other half, as on a GPU.

    The interpreter's own goes entry by entry.
    """
    dtypes = [x.dtype for x in inputs]
    arrays = [x.handle.data for x in inputs]
    rank, axis = arrays[0].ndim, self.axis
    if axis is None:
        arrays, axis = [x.reshape(-1) for x in arrays], 0
    arrays = [np.moveaxis(x, axis, 0) for x in arrays]

    def as_tensors(parts):
        return [
            self.to_tensor(np.ascontiguousarray(x), d) for x, d in zip(parts, dtypes, strict=True)
        ]

    while len(arrays[0]) > 1:
        middle = len(arrays[0]) // 2  # blocks have powers of two
        halves = as_tensors([x[:middle] for x in arrays])
        halves += as_tensors([x[middle:] for x in arrays])
        combined = self.combine_fn.fn(*halves)
        combined = combined if isinstance(combined, tuple) else (combined,)
        arrays = [x.handle.data for x in combined]
    arrays = [x[0] for x in arrays]
    if self.keep_dims:
        axes = tuple(range(rank)) if self.axis is None else axis
        arrays = [np.expand_dims(x, axes) for x in arrays]
    return [self.to_tensor(x, d) for x, d in zip(arrays, dtypes, strict=True)]
