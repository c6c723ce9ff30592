"""Targets and scores for the engines: every form of targets, next to the same in dense form."""

from dataclasses import dataclass
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
TIGHTNESSES = (0.0, 0.25, 0.5, 1.0, 2.0, 10.0)
RELATIVE = {"float64": 1e-13, "float32": 1e-5}


def make_loss(name: str, tightness: float = 1.0) -> fp.losses.Loss:
    """The loss of a regularizer at a tightness."""
    return fp.FitzpatrickLoss(REGULARIZERS[name], tightness)


def bind_loss(loss: fp.losses.Loss, y: Any, k: int, *args: Any, **options: Any) -> Any:
    """The regularizer and the tightness of a loss, bound to targets."""
    return fp.engines.bind(loss.regularizer, loss.tightness, y, k, *args, **options)


@dataclass(frozen=True)
class Case:
    """Targets in one form, and the same in dense form."""

    form: str
    y: Any
    dense: np.ndarray[Any, Any]


def proportions(
    rng: np.random.Generator, n: int, k: int, labels: int, concentration: float = 1.0
) -> np.ndarray[Any, Any]:
    """Rows with so many positive entries, which sum to one."""
    y = np.zeros((n, k))
    labels = min(labels, k)
    for row in y:
        row[rng.choice(k, labels, replace=False)] = rng.dirichlet(np.full(labels, concentration))
    return y / np.maximum(y.sum(axis=1, keepdims=True), 1e-300)


def cases(name: str, n: int, k: int, seed: int) -> list[Case]:
    """All forms that the targets of a loss can have."""
    rng = seeded(seed)
    domain = REGULARIZERS[name].domain
    if not domain.has_labels:
        y = domain.project(rng.normal(size=(n, k)) * 2)
        few = np.where(rng.random((n, k)) < 0.2, y, 0.0)
        inside = domain.project(rng.random((n, k)))
        return [
            Case("dense", y, y),
            Case("csr", sparse.csr_array(few), few),
            Case("inside", inside, inside),
        ]
    labels = rng.integers(0, k, n)
    hard = np.eye(k)[labels]
    full = rng.dirichlet(np.ones(k), n)
    tiny = proportions(rng, n, k, k, concentration=0.02)
    few = proportions(rng, n, k, 3)
    mixed = np.where(np.arange(n)[:, None] % 2 == 0, full, few)
    return [
        Case("labels", labels, hard),
        Case("csr", sparse.csr_array(few), few),
        Case("dense", full, full),
        Case("dense tiny", tiny, tiny),
        Case("dense mixed", mixed, mixed),
        Case("csc", sparse.csc_matrix(few), few),
        Case("csr hard", sparse.csr_array(hard), hard),
        Case("dense sparse", few, few),
        Case("dense hard", hard, hard),
    ]


def scores(n: int, k: int, scale: float, dtype: str, seed: int) -> np.ndarray[Any, Any]:
    """Gaussian scores; scale 0 makes them all equal."""
    theta = seeded(seed).normal(size=(n, k)) * scale
    return theta.astype(dtype)


@np.errstate(all="ignore")
def core(loss: fp.losses.Loss, case: Case, theta: np.ndarray[Any, Any]) -> Any:
    """The core's value, gradient, maximizer and Hessian product, at the dense targets."""
    y = case.dense.astype(theta.dtype)
    solution = loss.solve(y, theta)
    return solution.value(), solution.y_star - y, solution.y_star, solution.hessian_product


def assert_same_digits(actual: Any, expected: Any, dtype: str, scale: float = 1.0) -> None:
    """Equal within the promised relative error, or a few spacings of the dtype at ``scale``."""
    floor = 8 * float(np.finfo(dtype).eps) * scale
    np.testing.assert_allclose(actual, expected, rtol=RELATIVE[dtype], atol=floor)
