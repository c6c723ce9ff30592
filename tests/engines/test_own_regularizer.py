"""A separable regularizer of a user has everything that those of the package have."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from fitzpatrick import engines
from fitzpatrick.engines import RowBlocks
from fitzpatrick.engines.rows import CoreKernel
from fitzpatrick.engines.targets import SparseTargets
from fitzpatrick.regularizers import Elementwise, Negentropy, SeparableRegularizer, SquaredNorm
from fitzpatrick.sets import ConvexSet, Simplex

from .cases import TIGHTNESSES, scores


@dataclass(frozen=True, eq=False)
class TwiceKernel(Elementwise):
    y: Any
    tightness: float

    @property
    def power(self) -> float:
        return 1.0

    def start(self, theta: Any) -> Any:
        return -2 * (1 + self.tightness) + 0 * theta[..., :1]

    def point(self, s: Any) -> tuple[Any, Any]:
        p = np.maximum(s / 2 + self.tightness * self.y, 0) / (1 + self.tightness)
        return p, (p > 0) / (2 * (1 + self.tightness))

    def terms(self, s: Any) -> Any:
        c, p = self.tightness, self.point(s)[0]
        return (1 + c) * (self.y - p) ** 2 + self.y * np.maximum(-s - 2 * c * self.y, 0)


@dataclass(frozen=True)
class SquaredNormTwice(SeparableRegularizer):
    """ψ(y) = y², so that the losses are twice those of sparsemax at θ/2."""

    @property
    def domain(self) -> ConvexSet:
        return Simplex()

    def potential(self, y: Any) -> Any:
        return np.sum(y * y, axis=-1)

    def potential_gradient(self, z: Any) -> Any:
        return 2 * z

    def potential_curvature(self, z: Any, v: Any) -> Any:
        return 2 * np.sum(v * v, axis=-1)

    def kernel(self, y: Any, tightness: float) -> Elementwise:
        return TwiceKernel(y, tightness)

    def slope(self, p: Any, y: Any, tightness: float) -> Any:
        return (p > 0) / (2 * (1 + tightness))


@pytest.mark.parametrize("form", ["labels", "csr", "dense"])
def test_rows_labels_and_sparse_targets(form: str) -> None:
    n, k = 900, 40  # more than one piece of the core
    labels = np.arange(n) * 7 % k
    soft = np.zeros((n, k))
    soft[np.arange(n), labels], soft[np.arange(n), (labels + 3) % k] = 0.75, 0.25
    y = {"labels": labels, "csr": sparse.csr_array(soft), "dense": soft}[form]
    theta, v = scores(n, k, 2.0, "float64", 0), scores(n, k, 1.0, "float64", 1)
    for tightness in TIGHTNESSES:
        bound = engines.bind(SquaredNormTwice(), tightness, y, k, n_threads=2)
        assert isinstance(bound, RowBlocks)
        assert isinstance(bound.kernel, CoreKernel)
        if form == "csr":
            assert isinstance(bound.kernel.targets, SparseTargets)
        half = engines.bind(SquaredNorm(Simplex()), tightness, y, k)
        value, gradient = bound.value_and_gradient(theta)
        expected, expected_gradient = half.value_and_gradient(theta / 2)
        np.testing.assert_allclose(value, 2 * expected, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(gradient, expected_gradient, atol=1e-14)
        np.testing.assert_allclose(bound.y_star(theta), half.y_star(theta / 2), atol=1e-14)
        product = bound.hessian_operator(theta)(v)
        np.testing.assert_allclose(product, half.hessian_product(theta / 2, v) / 2, atol=1e-14)


class OtherNegentropy(Negentropy):
    """A subclass, which may have formulas of its own."""


@pytest.mark.parametrize("engine", ["numpy", "numba", "triton"])
def test_a_subclass_does_not_take_the_kernel_of_its_parent(engine: str) -> None:
    assert engines.find_kernel(engine, Negentropy()) is not None
    assert engines.find_kernel(engine, OtherNegentropy()) is None
