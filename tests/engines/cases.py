"""Targets and scores for the engines, in every form of targets."""

from typing import Any

import numpy as np
from scipy import sparse

import fitzpatrick as fp
from fitzpatrick.regularizers import Regularizer, Tsallis
from tests.helpers import seeded

# by the name of the Fenchel-Young loss; the last has a number for a name
REGULARIZERS: dict[str, Regularizer] = {
    **fp.losses.regularizers_by_name(),
    "entmax13": Tsallis(1.3),
}
SIMPLEX = [name for name, omega in REGULARIZERS.items() if omega.domain.has_labels]


def make_loss(name: str, tightness: float = 1.0) -> fp.losses.Loss:
    """The loss of a regularizer at a tightness."""
    return fp.FitzpatrickLoss(REGULARIZERS[name], tightness)


def bind_loss(loss: fp.losses.Loss, y: Any, k: int, *args: Any, **options: Any) -> Any:
    """The regularizer and the tightness of a loss, bound to targets."""
    return fp.engines.bind(loss.regularizer, loss.tightness, y, k, *args, **options)


def proportions(rng: np.random.Generator, n: int, k: int, labels: int) -> np.ndarray:
    """Rows with that many positive entries, which sum to one."""
    y = np.zeros((n, k))
    labels = min(labels, k)
    for row in y:
        row[rng.choice(k, labels, replace=False)] = rng.dirichlet(np.ones(labels))
    return y


def targets(name: str, n: int, k: int, seed: int) -> list[Any]:
    """Targets of a loss: dense and CSR, of few entries and of all, and labels if it has any."""
    rng = seeded(seed)
    domain = REGULARIZERS[name].domain
    if not domain.has_labels:
        y = domain.project(rng.normal(size=(n, k)) * 2)
        return [y, sparse.csr_array(np.where(rng.random((n, k)) < 0.2, y, 0.0))]
    few, full = proportions(rng, n, k, 3), proportions(rng, n, k, k)
    return [rng.integers(0, k, n), sparse.csr_array(few), few, full]


def scores(n: int, k: int, scale: float, dtype: str, seed: int) -> np.ndarray:
    """Gaussian scores; scale 0 makes them all equal."""
    return (seeded(seed).normal(size=(n, k)) * scale).astype(dtype)


def assert_same_digits(actual: Any, expected: Any, dtype: str) -> None:
    """Equal within the promised relative error, or a few spacings of the dtype at one."""
    relative, floor = {"float64": 1e-13, "float32": 1e-5}[dtype], 8 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(actual, expected, rtol=relative, atol=floor)
