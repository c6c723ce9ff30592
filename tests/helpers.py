"""What the tests share: array libraries, seeded inputs for any domain, and checks that raise.

PyTorch and JAX are optional: neither is imported before a test asks for an array of theirs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import array_api_compat
import numpy as np

from fitzpatrick.sets import ConvexSet

DTYPES = ("float64", "float32")

# ``make test-all`` asks for more draws, sizes and combinations than every change needs.
TEST_ALL = os.environ.get("FITZPATRICK_TEST_ALL", "") not in ("", "0")

# FITZPATRICK_TEST_SEED=1, 2, … draws other inputs than usual, in all tests.
TEST_SEED = int(os.environ.get("FITZPATRICK_TEST_SEED") or "0")

# The accuracy that the documentation promises: a relative error, or an absolute one of a few
# spacings of the dtype at the larger of 1 and the largest target of the row.
RELATIVE = {"float64": 1e-13, "float32": 1e-5}
FLOOR_IN_EPS = 4


def seeded(seed: int | list[int]) -> np.random.Generator:
    """A generator for a test: that of the seed, or another one where FITZPATRICK_TEST_SEED says."""
    return np.random.default_rng([TEST_SEED, *np.atleast_1d(seed)] if TEST_SEED else seed)


def eps(dtype: str) -> float:
    return float(np.finfo(dtype).eps)


# Two ways to the same float64 numbers, each as accurate as promised, with targets and directions of
# the size of one. A Hessian product of four classes is a sum of that many terms, of either sign.
TWO_WAYS = {
    "rtol": 2 * RELATIVE["float64"],
    "atol": 2 * 4 * FLOOR_IN_EPS * eps("float64"),
}


@dataclass(frozen=True)
class Library:
    """One array library: how to make its arrays."""

    name: str

    def asarray(self, values: Any, dtype: str | None = None) -> Any:
        """A fresh array; NumPy arrays are read-only, so that a write to an input raises."""
        values = np.array(values, dtype=dtype)
        if self.name == "torch":
            import torch

            return torch.from_numpy(values)
        if self.name == "jax":
            import jax.numpy as jnp

            return jnp.asarray(values)
        values.flags.writeable = False
        return values

    def compiled(self, function: Any) -> Any:
        """The function as JAX compiles it, which takes a fraction of the time of its steps."""
        if self.name != "jax":
            return function
        import jax

        return jax.jit(function)

    @property
    def flushes_subnormals(self) -> bool:
        """XLA's code for the CPU rounds subnormal numbers to zero."""
        return self.name == "jax"


LIBRARIES = {name: Library(name) for name in ("numpy", "torch", "jax")}


def to_numpy(x: Any) -> np.ndarray:
    """The values of an array of any library, in float64 where they are floats."""
    out = np.asarray(x.detach().cpu() if array_api_compat.is_torch_array(x) else x)
    return out.astype(np.float64) if np.issubdtype(out.dtype, np.floating) else out


# Checks.


def assert_at_most(lower: Any, upper: Any, slack: Any) -> None:
    """Every entry of ``lower`` is at most that of ``upper``, up to ``slack``; NaN fails."""
    lower, upper = np.broadcast_arrays(to_numpy(lower), to_numpy(upper))
    ok = (lower <= upper + slack) | (upper == np.inf)
    if not np.all(ok):
        at = tuple(np.argwhere(~ok)[0])
        raise AssertionError(f"at {at}: {lower[at]!r} exceeds {upper[at]!r} by more than {slack}")


def assert_close(actual: Any, expected: Any, *, rtol: float, atol: Any) -> None:
    """Equal up to ``rtol`` |expected| + ``atol`` (which may be an array); infinities exactly."""
    actual, expected = np.broadcast_arrays(to_numpy(actual), to_numpy(expected))
    with np.errstate(invalid="ignore"):
        ok = np.abs(actual - expected) <= rtol * np.abs(expected) + atol
    ok = np.where(np.isinf(expected), actual == expected, ok)  # all numbers are within rtol · ∞
    if not np.all(ok):
        at = tuple(np.argwhere(~ok)[0])
        atol = np.broadcast_to(atol, ok.shape)[at]
        raise AssertionError(f"at {at}: {actual[at]!r} is not {expected[at]!r} ({rtol=}, {atol=})")


def assert_promised(actual: Any, expected: Any, y: Any, dtype: str, factor: float = 1.0) -> None:
    """Within ``factor`` times the documented accuracy."""
    expected, y = to_numpy(expected), to_numpy(y)
    scale = np.maximum(1, np.max(np.abs(y), axis=-1, initial=0))
    floor = FLOOR_IN_EPS * eps(dtype) * (scale if expected.ndim == y.ndim - 1 else scale[..., None])
    assert_close(actual, expected, rtol=factor * RELATIVE[dtype], atol=factor * floor)


def assert_same_kind(out: Any, like: Any) -> None:
    """The library, the dtype and the device of the output are those of the input."""
    assert array_api_compat.array_namespace(out) is array_api_compat.array_namespace(like)
    assert out.dtype == like.dtype
    assert out.device == like.device


# Inputs. Every generator returns float64 values that the dtype under test represents exactly.


def simplex_rows(rng: np.random.Generator, n: int, k: int, tiny: float) -> np.ndarray:
    """One-hot, uniform, sparse, dense and tiny targets, by turns."""
    rows = np.empty((n, k))
    for i in range(n):
        kind = i % 5
        if kind == 0:
            row = np.eye(k)[rng.integers(k)]
        elif kind == 1:
            row = np.ones(k)
        elif kind == 2:
            row = np.zeros(k)
            row[rng.permutation(k)[: rng.integers(1, k + 1)]] = 1
        else:
            row = rng.dirichlet(np.ones(k)) + 1e-3
            if kind == 4 and k > 1:
                row[rng.integers(k)] = tiny
        rows[i] = row / row.sum()
    return rows


def product_rows(rng: np.random.Generator, n: int, k: int, bounds: tuple[float, float]) -> Any:
    """Points inside, and at each finite end, by turns."""
    lower, upper = bounds
    size = rng.exponential(size=(n, k))
    if np.isfinite(upper):
        rows = rng.uniform(lower, upper, (n, k))
    else:
        rows = lower + size if np.isfinite(lower) else rng.choice([-1, 1], (n, k)) * size
    for bound in bounds:
        if np.isfinite(bound):
            at_bound = (rng.random((n, k)) < 0.3) & (np.arange(n) % 3 > 0)[:, None]
            rows = np.where(at_bound, bound, rows)
    return rows


def targets(domain: ConvexSet, rng: np.random.Generator, n: int, k: int, dtype: str) -> np.ndarray:
    """Seeded points of any domain, inside and on the boundary."""
    if domain.has_labels:
        rows = simplex_rows(rng, n, k, tiny=1e-300 if dtype == "float64" else 1e-37)
    elif domain.is_product:
        rows = product_rows(rng, n, k, domain.bounds)
    else:
        rows = rng.normal(size=(n, k)) * rng.choice([0.01, 0.3, 3.0], (n, 1))
        rows = np.array(domain.project(rows))
        rows[::4] = domain.maximize(np.eye(k)[rng.integers(k, size=len(rows[::4]))])  # vertices
        # still inside after rounding
        center = np.asarray(domain.project(np.zeros(k)))
        rows = center + (rows - center) * (1 - 4 * eps(dtype))
    return rows.astype(dtype).astype(np.float64)


def scores(
    domain: ConvexSet, rng: np.random.Generator, n: int, k: int, dtype: str, scale: float
) -> np.ndarray:
    """Seeded scores of many sizes, with ties; bounded by 10 where the domain has no bound."""
    sizes = scale ** rng.uniform(-1, 1, (n, 1)) if scale > 1 else np.full((n, 1), scale)
    rows = sizes * rng.normal(size=(n, k))
    rows[::5] = np.round(rows[::5])  # ties
    rows[4::7] = rows[4::7, :1]  # all equal
    unbounded = domain.is_product and not np.all(np.isfinite(domain.bounds))
    limit = 10.0 if unbounded else 1e4
    return np.clip(rows, -limit, limit).astype(dtype).astype(np.float64)
