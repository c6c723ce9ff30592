"""Targets and scores for the engines: every form of targets, next to its dense twin."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

import fitzpatrick as fp
from fitzpatrick.sets import Simplex

LOSSES = fp.loss_names()
SIMPLEX_LOSSES = [
    name for name in LOSSES if isinstance(fp.get_loss(name).regularizer.domain, Simplex)
]
RELATIVE = {"float64": 1e-13, "float32": 1e-5}


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
    rng = np.random.default_rng(seed)
    domain = fp.get_loss(name).regularizer.domain
    if not isinstance(domain, Simplex):
        y = domain.project(rng.normal(size=(n, k)) * 2)
        few = np.where(rng.random((n, k)) < 0.2, y, 0.0)
        return [Case("dense", y, y), Case("csr", sparse.csr_array(few), few)]
    labels = rng.integers(0, k, n)
    hard = np.eye(k)[labels]
    full = rng.dirichlet(np.ones(k), n)
    tiny = proportions(rng, n, k, k, concentration=0.02)
    few = proportions(rng, n, k, 3)
    mixed = np.where(np.arange(n)[:, None] % 2 == 0, full, few)
    return [
        Case("labels", labels, hard),
        Case("csr hard", sparse.csr_array(hard), hard),
        Case("csr", sparse.csr_array(few), few),
        Case("csc", sparse.csc_matrix(few), few),
        Case("dense", full, full),
        Case("dense tiny", tiny, tiny),
        Case("dense sparse", few, few),
        Case("dense mixed", mixed, mixed),
        Case("dense hard", hard, hard),
    ]


def scores(n: int, k: int, scale: float, dtype: str, seed: int) -> np.ndarray[Any, Any]:
    """Gaussian scores; scale 0 makes them all equal."""
    theta = np.random.default_rng(seed).normal(size=(n, k)) * scale
    return theta.astype(dtype)


def core(name: str, case: Case, theta: np.ndarray[Any, Any]) -> Any:
    """The core's solution for the dense twin, with its gradient."""
    y = case.dense.astype(theta.dtype)
    with np.errstate(all="ignore"):
        solution = fp.get_loss(name).solve(y, theta)
        return solution.value(), solution.y_star - y, solution.y_star, solution.hessian_product


def assert_same_digits(actual: Any, expected: Any, dtype: str, scale: float = 1.0) -> None:
    """Equal within the promised relative error, or a few spacings of the dtype at ``scale``."""
    floor = 8 * float(np.finfo(dtype).eps) * scale
    np.testing.assert_allclose(actual, expected, rtol=RELATIVE[dtype], atol=floor)
