"""Every way to compute a loss, with what it can do as data.

All of them take NumPy arrays and give NumPy arrays, so that a test says what holds and not who
computes it. Nothing is imported before it is used.
"""

from __future__ import annotations

import contextlib
import functools
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import fitzpatrick as fp
from fitzpatrick import engines
from fitzpatrick.regularizers import Regularizer
from tests.helpers import LIBRARIES, TEST_ALL, assert_same_kind, to_numpy
from tests.interpreter import WIDE, limited, speed_up_interpreter

from .batches import REGULARIZERS, TIGHTNESSES

REGISTRY = tuple(fp.losses.regularizers_by_name())
REST = tuple(name for name in REGULARIZERS if name not in REGISTRY)
# modes of the kernels, and of the formulas for labels: 0, 1, between, beyond
MODES = (0.0, 0.5, 1.0, 3.0)
# one of each kind of kernel
ONE_OF_EACH = ("logistic", "sparsemax", "entmax15", "tsallis_1.3", "sigmoid", "squared")


class Result(NamedTuple):
    """Of n rows: values (n,), gradients (n, k), and Hessian products (n, k) if it has them."""

    value: np.ndarray
    gradient: np.ndarray
    product: np.ndarray | None


@dataclass(frozen=True)
class Implementation:
    """One way to compute a loss.

    Attributes:
        package: what has to be installed.
        forms: of targets.
        names: of the regularizers.
        tightnesses: at which it is compared in float64, and in float32.
        rows: how many stored rows are enough where each takes long; None for all.
        has_product: True if it has Hessian products.
        has_link: True if it has links.
        is_wide: True if wide rows are compared, too.
        edges: names of the regularizers by which bad scores, layouts and the like are tested.
        bad_labels: what a label out of range gives; None if labels are trusted.
    """

    name: str
    package: str = "numpy"
    forms: tuple[str, ...] = ("labels", "dense")
    names: tuple[str, ...] = tuple(REGULARIZERS)
    tightnesses: dict[str, tuple[float, ...]] = field(
        default_factory=lambda: {"float64": TIGHTNESSES, "float32": TIGHTNESSES}
    )
    rows: int | None = None
    has_product: bool = True
    has_link: bool = True
    is_wide: bool = False
    edges: tuple[str, ...] = ONE_OF_EACH
    bad_labels: type[Exception] | float | None = float("nan")

    @property
    def is_installed(self) -> bool:
        return find_spec(self.package) is not None

    def forms_of(self, name: str) -> tuple[str, ...]:
        """The forms of targets of one regularizer."""
        has_labels = REGULARIZERS[name].domain.has_labels
        return tuple(form for form in self.forms if form != "labels" or has_labels)

    def evaluate(
        self, omega: Regularizer, tightness: float, y: Any, theta: np.ndarray, v: np.ndarray
    ) -> Result:
        """Values, gradients and Hessian products."""
        raise NotImplementedError

    def links(self, name: str) -> bool:
        """True if it has the link of a regularizer of the reference."""
        return self.has_link

    def link(self, omega: Regularizer, theta: np.ndarray) -> np.ndarray:
        """Links, (n, k)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Core(Implementation):
    """The formulas of the core on NumPy arrays, behind the public edge."""

    def evaluate(self, omega, tightness, y, theta, v):
        loss = fp.Loss(omega, tightness)
        with np.errstate(all="ignore"):  # which the public edge does
            solution = (loss.solve_labels if y.ndim == 1 else loss.solve)(y, theta)
            return Result(solution.value(), solution.gradient(), solution.hessian_product(v))

    def link(self, omega, theta):
        with np.errstate(all="ignore"):
            return omega.solve_link(theta)


@dataclass(frozen=True)
class Public(Implementation):
    """The public methods of a loss on the arrays of a library."""

    def evaluate(self, omega, tightness, y, theta, v):
        loss = fp.Loss(omega, tightness)
        y, theta, v = map(self._array, (y, theta, v))
        results = *loss.value_and_gradient(y, theta), loss.hessian_product(y, theta, v)
        for result in results:
            assert_same_kind(result, theta)
        return Result(*map(to_numpy, results))

    def link(self, omega, theta):
        return to_numpy(fp.Loss(omega, 0.0).link(self._array(theta)))

    def _array(self, array: Any) -> Any:
        # NumPy arrays as they are, since their layout matters
        return array if self.package == "numpy" else LIBRARIES[self.package].asarray(array)


@dataclass(frozen=True)
class Compiled(Implementation):
    """The rows compiled by Numba."""

    def evaluate(self, omega, tightness, y, theta, v):
        given = y, theta.shape[1], theta.dtype
        bound = engines.bind(omega, tightness, *given, engine="numba")
        return Result(*bound.value_and_gradient(theta), bound.hessian_product(theta, v))

    def links(self, name):
        # links of single entries are left to NumPy
        return not REGULARIZERS[name].domain.is_product

    def link(self, omega, theta):
        targets = engines.NoTargets(theta.shape, theta.dtype)
        return engines.bind_trusted(omega, 0.0, targets, engine="numba").y_star(theta)


@dataclass(frozen=True)
class Torch(Implementation):
    """The functions of fitzpatrick.torch on an engine."""

    engine: str | None = None
    # limits of the Triton kernels, by which narrow rows reach the kernels for wide ones
    limits: dict[str, int] = field(default_factory=dict)

    def function(self, omega: Regularizer, tightness: float) -> Any:
        from fitzpatrick.torch import functional

        loss = fp.Loss(omega, tightness)
        function = functional.loss_function(loss)
        return functools.partial(function, reduction="none", engine=self.engine, validate=False)

    def evaluate(self, omega, tightness, y, theta, v):
        import torch

        target, theta, v = map(self._tensor, (y, theta, v))
        theta.requires_grad_()
        with self._limited():
            value = self.function(omega, tightness)(theta, target)
            if omega.is_entrywise:
                value = value.sum(dim=-1)
            is_twice = self.has_product
            (gradient,) = torch.autograd.grad(value.sum(), theta, create_graph=is_twice)
            product = None
            if is_twice:
                (product,) = torch.autograd.grad(
                    gradient, theta, v, allow_unused=True, materialize_grads=True
                )
        assert value.dtype == gradient.dtype == theta.dtype
        product = None if product is None else to_numpy(product)
        return Result(to_numpy(value), to_numpy(gradient), product)

    def link(self, omega, theta):
        from fitzpatrick.torch import functional

        function = functional.link_function(fp.Loss(omega, 0.0))
        options = {"engine": self.engine} if omega.is_coupled else {}  # only these have engines
        with self._limited():
            return to_numpy(function(self._tensor(theta), **options))

    def _tensor(self, array: np.ndarray) -> Any:
        import torch

        on_gpu = self.engine == "triton" and torch.cuda.is_available()
        return torch.tensor(array, device="cuda" if on_gpu else "cpu")

    def _limited(self) -> AbstractContextManager[None]:
        if self.engine != "triton":
            return contextlib.nullcontext()
        speed_up_interpreter()
        return limited(**self.limits)


@dataclass(frozen=True)
class TorchLists(Torch):
    """The functions at lists of classes, one for each row of a CSR array."""

    def _tensor(self, array):
        if not sparse.issparse(array):
            return super()._tensor(array)
        from fitzpatrick.torch import SparseTargets

        counts = np.diff(array.indptr)
        is_entry = np.arange(max(counts, default=0)) < counts[:, None]
        indices = np.full(is_entry.shape, -1)
        values = np.zeros(is_entry.shape, array.dtype)
        indices[is_entry], values[is_entry] = array.indices, array.data
        return SparseTargets(super()._tensor(indices), super()._tensor(values))


@dataclass(frozen=True)
class TorchGraph(Torch):
    """The functions in graphs of torch.compile: traced and differentiated, without Inductor."""

    def function(self, omega, tightness):
        import torch

        torch.compiler.reset()
        function = super().function(omega, tightness)
        return torch.compile(function, fullgraph=True, backend="aot_eager")


@dataclass(frozen=True)
class Jax(Implementation):
    """The functions of fitzpatrick.jax, compiled as users compile them."""

    def evaluate(self, omega, tightness, y, theta, v):
        return Result(*map(to_numpy, _jax_program(omega, tightness, y.ndim == 1)(theta, y, v)))

    def link(self, omega, theta):
        import jax

        from fitzpatrick.jax import make_link

        return to_numpy(jax.jit(make_link(omega), compiler_options=OPTIMIZED)(theta))


# How well XLA optimizes by default; the tests compile with less effort elsewhere (conftest.py), and
# optimization changes digits. It takes six times as long, so that labels are optimized at tightness
# 0, and dense targets above it; with FITZPATRICK_TEST_ALL=1 both always are.
OPTIMIZED = {
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
    "xla_cpu_use_fusion_emitters": True,
}


@functools.cache
def _jax_program(omega: Regularizer, tightness: float, is_label: bool) -> Any:
    import jax
    import jax.numpy as jnp

    from fitzpatrick.jax import make_fitzpatrick_loss

    loss = make_fitzpatrick_loss(omega, tightness, integer_labels=is_label)

    def program(theta, y, v):
        def gradient(theta):
            value, pull = jax.vjp(lambda theta: loss(theta, y), theta)
            return pull(jnp.ones_like(value))[0], value

        slopes, product, value = jax.jvp(gradient, (theta,), (v,), has_aux=True)
        return value, slopes, product

    is_optimized = TEST_ALL or not omega.domain.has_labels or is_label == (tightness == 0)
    return jax.jit(program, compiler_options=OPTIMIZED if is_optimized else {})


# From this many scores on, compiled rows are chosen.
MANY_SCORES = 1 << 15


@dataclass(frozen=True)
class ManyRows(Implementation):
    """Another one, at copies of the rows, as many as make it choose compiled rows."""

    inner: Implementation = field(default_factory=lambda: Public("NumPy"))

    def evaluate(self, omega, tightness, y, theta, v):
        n, copies = len(theta), -(-MANY_SCORES // max(theta.size, 1))
        stack = sparse.vstack if sparse.issparse(y) else np.concatenate
        y, theta, v = stack([y] * copies), *(np.concatenate([x] * copies) for x in (theta, v))
        result = self.inner.evaluate(omega, tightness, y, theta, v)
        return Result(*(x[len(x) - n :] for x in result))

    def link(self, omega, theta):
        copies = -(-MANY_SCORES // theta.size)
        return self.inner.link(omega, np.concatenate([theta] * copies))[-len(theta) :]


def _with_kernel(engine: str) -> tuple[str, ...]:
    return tuple(name for name, omega in REGULARIZERS.items() if engines.find_kernel(engine, omega))


# those of any other α take labels alone
TRITON = tuple(name for name in _with_kernel("triton") if not name.startswith("tsallis"))
NUMPY_ROWS = _with_kernel("numpy")
ROW_KERNELS = ("logistic", "sparsemax", "entmax15")
SIMPLEX = tuple(name for name, omega in REGULARIZERS.items() if omega.domain.has_labels)
SOME = {"float64": MODES, "float32": (0.5,)}
TWO = ("logistic", "sigmoid")
FEW = {"float64": (0.0, 0.5, 3.0), "float32": (1.0,)}  # each is compiled, or interpreted
CSR = ("labels", "dense", "csr")

IMPLEMENTATIONS = [
    Core("core", bad_labels=None),
    Public("NumPy", forms=CSR, names=NUMPY_ROWS, is_wide=True, bad_labels=ValueError),
    Public("NumPy, no rows of its own", forms=CSR, rows=96, is_wide=True, bad_labels=ValueError,
           names=tuple(name for name in REGULARIZERS if name not in NUMPY_ROWS)),
    Public("arrays of PyTorch", "torch", rows=96, tightnesses=SOME, bad_labels=ValueError),
    Public("arrays of JAX", "jax", names=(*REST, "logistic"), rows=48, tightnesses=FEW,
           edges=("logistic",), bad_labels=ValueError, has_link=False),
    Compiled("Numba", "numba", CSR, _with_kernel("numba"), is_wide=True, bad_labels=ValueError),
    Torch("PyTorch", "torch", rows=96, is_wide=True, tightnesses=SOME),
    ManyRows("NumPy, many rows", "numba", CSR, _with_kernel("numba"), rows=48, tightnesses=FEW,
             bad_labels=ValueError),
    ManyRows("PyTorch, many rows", "torch", names=_with_kernel("numba"), rows=48,
             tightnesses=FEW, inner=Torch("PyTorch")),
    Torch("PyTorch, reference", "torch", rows=96, tightnesses=SOME, engine="reference"),
    Torch("Triton", "triton", names=TRITON, tightnesses=SOME, rows=24, is_wide=True,
          engine="triton"),
    Torch("Triton, any α", "triton", forms=("labels",), names=("tsallis_1.1", "tsallis_1.9"),
          tightnesses=FEW, rows=8, engine="triton"),
    Torch("Triton, wide rows", "triton", names=ROW_KERNELS,
          tightnesses=FEW, rows=12, engine="triton", limits=WIDE, has_link=False),
    TorchLists("lists of classes", "torch", ("csr",), SIMPLEX, rows=96, tightnesses=SOME, edges=(),
               has_link=False),
    TorchLists("Triton, lists of classes", "triton", ("csr",), ROW_KERNELS,
               tightnesses=SOME, rows=12, engine="triton", has_link=False, edges=()),
    TorchGraph("torch.compile", "torch", names=REGISTRY, tightnesses={"float64": (0.5,)},
               rows=48, has_product=False, has_link=False, edges=("logistic",)),
    Jax("JAX", "jax", names=REGISTRY, tightnesses={"float64": (0.0, 3.0), "float32": (0.5,)},
        rows=96, edges=(*TWO, "sparsemax")),
]  # fmt: skip
