"""A problem on a PyTorch device: features, scores and parameters are there from start to end.

The solvers and the losses take PyTorch arrays as they are; what comes back while a fit runs is
numbers, and in the end the coefficients.
"""

import functools
import math
from typing import Any

import numpy as np
import torch
from scipy import sparse

from .._array import Array
from ._design import Design
from ._device_rows import bind_rows
from ._fitting import Problem, Settings
from ._preconditioner import Map

# What the blocks of a preconditioner cost in Hessian products, from times on an H200: their
# operations are done twice as fast, a product also waits as long as these operations take, and
# even the smallest blocks cost some products.
_WAIT = 1.6e10
_FEWEST = 10
_BLOCK_BYTES = 1 << 30  # of the largest array while blocks are made
_MOST_BYTES = 4 << 30  # of the blocks themselves; where they need more there are none


def find_device(name: str) -> torch.device:
    """The device of that name; an error if PyTorch cannot compute on it here."""
    try:
        device = torch.device(name)
        torch.zeros(1, dtype=torch.float64, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(f"PyTorch cannot use the device {name!r} here: {reason}") from None
    return device


def device_name(device: torch.device) -> str:
    """What a record says of it."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return f"PyTorch {device}"


class DeviceDesign(Design):
    """A dense design with its matrix on a device."""

    def __init__(self, design: Design, n_scores: int, device: torch.device) -> None:
        super().__init__(design.scaling, design.fit_intercept)
        self.n_penalized = design.n_penalized
        self._design = design
        self._n_scores = n_scores
        self._device = device
        self._matrix = self.place(design.matrix)

    @property
    def matrix(self) -> Array:
        return self._matrix

    @property
    def dtype(self) -> Any:
        return self._design.dtype

    @property
    def spectrum(self) -> Array:
        return self._design.spectrum

    def scores(self, parameters: Array, out: Array) -> Array:
        return torch.matmul(self._matrix, parameters.to(self._matrix.dtype), out=out)

    def adjoint(self, gradient: Array) -> Array:
        return (self._matrix.T @ gradient).to(torch.float64)

    @property
    def block_cost(self) -> float:
        n, p, k = self.n_samples, self.n_parameters, self._n_scores
        if 8 * (k * p * p + n * p) > _MOST_BYTES:
            return math.inf
        return _FEWEST + 2 * n * p * p * k / (8 * n * p * k + _WAIT)

    def block_inverse(self, curvature: Array, ridge: Array) -> Map | None:
        inverses = torch.empty(
            (curvature.shape[1], *ridge.shape, *ridge.shape),
            dtype=torch.float64,
            device=self._device,
        )
        matrix = self._matrix.to(torch.float64)
        identity = torch.eye(ridge.shape[0], dtype=torch.float64, device=self._device)
        step = max(1, _BLOCK_BYTES // (8 * matrix.numel()))
        for start in range(0, curvature.shape[1], step):
            weights = curvature[:, start : start + step].T.to(torch.float64)
            weighted = weights.unsqueeze(1) * matrix.T
            blocks = (weighted.flatten(0, 1) @ matrix).unflatten(0, (-1, ridge.shape[0]))
            blocks.diagonal(dim1=1, dim2=2).add_(ridge)
            factors, failed = torch.linalg.cholesky_ex(blocks)
            if bool(failed.any()):
                return None
            half = torch.linalg.solve_triangular(factors, identity.expand_as(blocks), upper=False)
            torch.bmm(half.mT, half, out=inverses[start : start + step])
        return lambda residual: torch.bmm(inverses, residual.T.unsqueeze(2)).squeeze(2).T

    def place(self, array: Array) -> Array:
        return torch.as_tensor(np.ascontiguousarray(array), device=self._device)

    def fetch(self, array: Array) -> Array:
        return array.numpy(force=True)

    def _to_features(self, parameters: Array) -> Array:
        return self._design._to_features(parameters)

    def _from_features(self, parameters: Array) -> Array:
        return self._design._from_features(parameters)


def device_problem(X: Array, targets: Array, settings: Settings, device: torch.device) -> Problem:
    """Features, which become dense, and targets (n, k) on a device."""
    features = X.toarray() if sparse.issparse(X) else np.ascontiguousarray(X)
    rows = bind_rows(settings.loss, targets, features.dtype, device)
    place = functools.partial(DeviceDesign, n_scores=targets.shape[1], device=device)
    return Problem(features, rows, targets.shape[1], None, settings, place)
