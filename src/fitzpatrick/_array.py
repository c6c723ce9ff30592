"""Plumbing between the formulas and the array libraries.

Every formula of the package is written once against the array-API standard. The few questions
that the standard leaves open are answered here: which namespace an input belongs to, which
precision to compute in, and whether Python may look at the values (it may not while JAX or
``torch.compile`` traces the code).
"""

import functools
import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ParamSpec, TypeVar

import array_api_compat
import array_api_compat.numpy
import numpy as np
from scipy import sparse

# NumPy, PyTorch and JAX arrays have no common static type.
Array = Any
Namespace = Any
NumpyArray = np.ndarray[Any, Any]
Map = Callable[[Array], Array]
# s ↦ (p, ∂p/∂s), entry by entry
Point = Callable[[Array], tuple[Array, Array]]

P = ParamSpec("P")
R = TypeVar("R")

_HALF = ("float16", "bfloat16")
_FULL = ("float32", "float64")


def is_numpy(x: Any) -> bool:
    """True if ``x`` is a NumPy array or scalar."""
    return isinstance(x, (np.ndarray, np.generic))


def is_torch(x: Any) -> bool:
    """True if ``x`` is a PyTorch tensor; never imports PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_jax(x: Any) -> bool:
    """True if ``x`` is a JAX array or tracer; never imports JAX."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.Array)


def namespace(*arrays: Array) -> Namespace:
    """Array-API namespace shared by ``arrays``.

    The three libraries that are tested are told apart by hand, which ``torch.compile`` can trace.
    Any other library goes through array-api-compat.
    """
    if all(is_numpy(x) for x in arrays):
        return array_api_compat.numpy
    if all(is_torch(x) for x in arrays):
        import array_api_compat.torch as torch_namespace

        return torch_namespace
    if all(is_jax(x) for x in arrays):
        import jax.numpy as jax_namespace

        return jax_namespace
    return array_api_compat.array_namespace(*arrays)


def quiet(function: Callable[P, R]) -> Callable[P, R]:
    """Turn off NumPy's floating-point warnings: ±∞ and NaN are handled, or passed on, on purpose.

    PyTorch calls go through untouched, since ``torch.compile`` cannot trace NumPy's settings.
    """

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        if any(is_torch(x) for x in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return wrapper


def dtype_name(x: Array) -> str:
    """Name of the dtype of ``x`` without its library: ``"float32"``."""
    return str(x.dtype).rsplit(".", 1)[-1]


def is_supported_float(x: Array) -> bool:
    return dtype_name(x) in _HALF + _FULL


def as_array(x: Any, name: str) -> Array:
    """``x`` as an array; numbers, lists and tuples become NumPy arrays."""
    if isinstance(x, (list, tuple, int, float, np.generic)):
        x = np.asarray(x)
    if sparse.issparse(x):
        raise TypeError(f"{name} is a SciPy sparse array; only targets y may be sparse")
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be ignored; fill it first")
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray:
        x = x.view(np.ndarray)  # products and indices of np.matrix are others
    if not (is_numpy(x) or is_torch(x) or is_jax(x) or array_api_compat.is_array_api_obj(x)):
        raise TypeError(
            f"{name} must be a NumPy, PyTorch or JAX array (or a list of numbers), "
            f"got {type(x).__name__}"
        )
    return x


def as_library(x: Any, like: Array) -> Array:
    """Numbers or a list of numbers as an array of the library and on the device of ``like``."""
    if is_numpy(like):
        return np.asarray(x)
    # a copy of our own: other libraries refuse to share memory in some layouts
    return namespace(like).asarray(np.array(x), device=None if is_jax(like) else like.device)


def is_foreign(x: Any) -> bool:
    """True if ``x`` is an array of another library than NumPy."""
    return not is_numpy(x) and bool(array_api_compat.is_array_api_obj(x))


def to_numpy(x: Array) -> NumpyArray:
    """The values of an array of any library, in the memory of the host."""
    if is_torch(x):
        values: NumpyArray = x.numpy(force=True)
        return values
    if array_api_compat.is_cupy_array(x):
        return np.asarray(x.get())
    if hasattr(x, "__dlpack__") and not (is_numpy(x) or is_jax(x)):
        return np.array(np.from_dlpack(x))  # from any device
    return np.asarray(x)


def is_integer(x: Array) -> bool:
    """True if the dtype of ``x`` is an integer type."""
    return bool(namespace(x).isdtype(x.dtype, "integral"))


def as_float(x: Array, name: str) -> Array:
    """``x`` in a floating-point dtype; integers and booleans are cast, anything else raises."""
    if is_supported_float(x):
        return x
    xp = namespace(x)
    if xp.isdtype(x.dtype, ("integral", "bool")):
        return xp.astype(x, xp.asarray(0.0).dtype)
    raise TypeError(
        f"{name} must be real numbers in float16 to float64 or integers, got dtype {x.dtype}"
    )


def as_real(x: Any, name: str) -> Array:
    """``x`` as a floating-point array, from an array or a list of numbers."""
    return as_float(as_array(x, name), name)


def working_precision(x: Array) -> Array:
    """``x`` itself, or its float32 copy where it is half precision."""
    if dtype_name(x) in _HALF:
        xp = namespace(x)
        return xp.astype(x, xp.float32)
    return x


def eps(x: Array) -> float:
    """Spacing of the floating-point numbers of ``x`` at 1."""
    return float(namespace(x).finfo(x.dtype).eps)


def precision_bits(x: Array) -> int:
    """Bits of the significand: 24 for float32, 53 for float64."""
    return 1 - round(math.log2(eps(x)))


def is_concrete(x: Array) -> bool:
    """True if Python may branch on the values of ``x``: not while a compiler traces."""
    if is_numpy(x):
        return True
    if is_jax(x):
        return not isinstance(x, sys.modules["jax"].core.Tracer)
    if is_torch(x):
        return not sys.modules["torch"].compiler.is_compiling()
    return False


def eagerly(x: Array) -> AbstractContextManager[None]:
    """A context in which operations on a concrete ``x`` have values, even while JAX traces."""
    if is_jax(x):
        context: AbstractContextManager[None] = sys.modules["jax"].ensure_compile_time_eval()
        return context
    return nullcontext()


def may_stop_early(x: Array) -> bool:
    """True if an iteration on ``x`` may end when it has converged.

    Only NumPy may: other libraries always run the fixed number of steps, so that they run the same
    code eagerly as when they trace.
    """
    return is_numpy(x)


def class_indices(x: Array) -> Array:
    """The indices 0, …, k − 1 of the last axis of ``x``, on its device."""
    xp = namespace(x)
    if is_jax(x):  # while JAX traces, an array has no device; an index follows the array anyway
        return xp.arange(x.shape[-1])
    return xp.arange(x.shape[-1], device=x.device)


def row_sum(x: Array) -> Array:
    """Sum over the last axis, which is kept."""
    return namespace(x).sum(x, axis=-1, keepdims=True)


def row_max(x: Array) -> Array:
    """Maximum over the last axis, which is kept."""
    return namespace(x).max(x, axis=-1, keepdims=True)


def inner(x: Array, theta: Array) -> Array:
    """Inner product ⟨x, θ⟩ over the last axis, where 0 · ±∞ counts as 0."""
    xp = namespace(x, theta)
    return xp.sum(xp.where(x == 0, 0.0, x * theta), axis=-1)


def positive_part(x: Array) -> Array:
    """max(x, 0), entry by entry, with the derivative 1 at 0; NaN stays."""
    return namespace(x).where(x < 0, 0.0, x)


def coupled_product(d: Array, v: Array) -> Array:
    """(diag(d) − ddᵀ/⟨d, 1⟩) v along the last axis, the Jacobian where entries share one τ."""
    return d * (v - row_sum(d * v) / row_sum(d))


def without_derivatives(x: Array) -> Array:
    """``x`` as a constant to PyTorch's and JAX's differentiation."""
    if is_jax(x):
        return sys.modules["jax"].lax.stop_gradient(x)
    return x.detach() if is_torch(x) else x


def with_derivative(p: Array, x: Array, product: Map) -> Array:
    """p, which an iteration found from x, with the derivative v ↦ J v attached."""
    if not (is_jax(x) or (is_torch(x) and x.requires_grad)):
        return p
    xp = namespace(x)
    step = x - without_derivatives(x)  # zero, with the derivative of x
    return p + product(xp.where(xp.isfinite(x), step, 0.0))


def on_host(function: Callable[..., Any], x: Array, shape: tuple[int, ...] | None = None) -> Array:
    """Apply a NumPy function to x; the result has the library, device and dtype of x.

    JAX calls it back from compiled code. The result has no derivative. ``shape`` replaces the last
    axis of x; by default the result has the shape of x.
    """
    shape = tuple(x.shape) if shape is None else (*x.shape[:-1], *shape)
    if is_jax(x):
        jax = sys.modules["jax"]

        def call(values: Any) -> Any:
            return np.asarray(function(np.asarray(values)), x.dtype)

        result = jax.ShapeDtypeStruct(shape, x.dtype)
        return jax.pure_callback(call, result, without_derivatives(x), vmap_method="broadcast_all")
    values = np.asarray(function(to_numpy(working_precision(x))))
    return namespace(x).astype(as_library(values, x), x.dtype, copy=False)
