"""A separable regularizer of a user has everything that those of the package have."""

import numpy as np
import pytest
from scipy import sparse

from fitzpatrick import engines
from fitzpatrick.engines import RowBlocks
from fitzpatrick.engines.rows import CoreKernel
from fitzpatrick.engines.targets import SparseTargets
from fitzpatrick.regularizers import Negentropy, SquaredNorm
from fitzpatrick.sets import Simplex
from tests.user_regularizer import ScaledDistance

from .cases import scores


@pytest.mark.parametrize("form", ["labels", "csr", "dense"])
def test_rows_labels_and_sparse_targets(form: str) -> None:
    """w/2 ‖y − a‖² has w times the losses of sparsemax at θ/w; τ absorbs the anchor a."""
    n, k = 900, 40  # more than one piece of the core
    labels = np.arange(n) * 7 % k
    soft = np.zeros((n, k))
    soft[np.arange(n), labels], soft[np.arange(n), (labels + 3) % k] = 0.75, 0.25
    y = {"labels": labels, "csr": sparse.csr_array(soft), "dense": soft}[form]
    theta, v = scores(n, k, 2.0, "float64", 0), scores(n, k, 1.0, "float64", 1)
    for tightness in (0.0, 0.5, 1.0, 10.0):
        bound = engines.bind(ScaledDistance(2.0, 0.25), tightness, y, k, n_threads=2)
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
