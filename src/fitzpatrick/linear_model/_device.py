"""A problem on a PyTorch device: features, scores and parameters are there from start to end.

The solvers take PyTorch arrays as they are; what comes back while a fit runs is numbers, and in the
end the coefficients.
"""

import math
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from scipy import sparse

from .. import engines
from .._array import Array
from ..engines import BoundLoss, HessianOperator
from ..engines.table import find_kernel
from ..losses import Loss
from ._base import Data
from ._design import Design
from ._preconditioner import Map
from ._problem import FitSettings, Problem

# What the blocks of a preconditioner cost in Hessian products, from times on an H200: their
# operations are done twice as fast, a product also waits as long as so many operations take, and
# even the smallest blocks cost some products.
PRODUCT_LATENCY = 1.6e10
MIN_BLOCK_COST = 10
MAX_WORK_BYTES = 1 << 30  # of the largest array while blocks are made
MAX_BLOCK_BYTES = 4 << 30  # of the blocks themselves; where they need more there are none


def find_device(name: str) -> torch.device:
    """The device of that name; an error if PyTorch cannot compute on it here."""
    try:
        device = torch.device(name)
        torch.zeros(1, dtype=torch.float64, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(f"PyTorch cannot use the device {name!r} here: {reason}") from None
    return device


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
        if 8 * (k * p * p + n * p) > MAX_BLOCK_BYTES:
            return math.inf
        return MIN_BLOCK_COST + 2 * n * p * p * k / (8 * n * p * k + PRODUCT_LATENCY)

    def block_inverse(self, curvature: Array, ridge: Array) -> Map | None:
        inverses = torch.empty(
            (curvature.shape[1], *ridge.shape, *ridge.shape),
            dtype=torch.float64,
            device=self._device,
        )
        matrix = self._matrix.to(torch.float64)
        identity = torch.eye(ridge.shape[0], dtype=torch.float64, device=self._device)
        step = max(1, MAX_WORK_BYTES // (8 * matrix.numel()))
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


class KernelHessian(HessianOperator):
    """The Hessians of the rows, with what does not depend on v computed once."""

    def __init__(self, d: Array) -> None:
        self.d, self.total = d, d.sum(dim=1)
        self._mean = d / self.total.unsqueeze(1)

    def __call__(self, v: Array, out: Array | None = None) -> Array:
        shift = torch.linalg.vecdot(self._mean, v).unsqueeze(1)
        product: Array = torch.sub(v, shift, out=out)
        return product.mul_(self.d)


class KernelLoss(BoundLoss):
    """A loss bound to targets (n, k), by a kernel of the Triton engine.

    The kernel gives values and gradient y* − y; the Hessian follows from y* and y. Solvers ask for
    both at the same scores, so that the latest answer is remembered.
    """

    def __init__(self, loss: Loss, y: Array, kernel: str) -> None:
        self._omega: Any = loss.regularizer  # separable, as all that have a kernel
        self._tightness = loss.tightness
        self._y, self._kernel = y, kernel
        self._latest: tuple[Array, int, tuple[Array, Array]] | None = None

    def _solve(self, theta: Array) -> tuple[Array, Array]:
        if self._latest is not None:
            scores, version, answer = self._latest
            if scores is theta and version == theta._version:  # nobody has written to it since
                return answer
        from ..engines.triton import launch  # which loads triton

        self._latest = None  # its memory is needed
        answer = launch.value_and_gradient(theta, self._y, 1, self._kernel, self._tightness, -1)
        self._latest = theta, theta._version, answer
        return answer

    def value(self, theta: Array) -> Array:
        return self._solve(theta)[0]

    def value_and_gradient(
        self, theta: Array, out: tuple[Array, Array] | None = None
    ) -> tuple[Array, Array]:
        values, residual = self._solve(theta)
        return values, residual.clone() if out is None else out[1].copy_(residual)

    def y_star(self, theta: Array) -> Array:
        return (self._solve(theta)[1] + self._y).clamp_(min=0)  # below it by rounding errors

    def hessian_operator(self, theta: Array) -> HessianOperator:
        return KernelHessian(self._omega.slope(self.y_star(theta), self._y, self._tightness))


def device_problem(data: Data, settings: FitSettings, name: str) -> Problem:
    """The problem of the data on the device of that name; features and targets become dense."""
    device = find_device(name)
    if sparse.issparse(data.X):
        data = replace(data, X=data.X.toarray())
    design = DeviceDesign(data.design(settings), data.n_scores, device)
    dtype, targets = data.X.dtype, data.targets
    engines.bind(settings.loss, targets, data.n_classes, dtype)  # checks them
    if targets.ndim == 1:
        targets = targets[:, None] == np.arange(data.n_classes)
    y = targets.toarray() if sparse.issparse(targets) else targets
    y = torch.as_tensor(y.astype(dtype), device=device)
    has_triton = device.type == "cuda" and find_spec("triton") is not None
    kernel = find_kernel("triton", settings.loss.regularizer) if has_triton else None
    core = engines.CoreLoss(settings.loss, y)
    bound = core if kernel is None else KernelLoss(settings.loss, y, kernel)
    return Problem(design, bound, data.n_scores, data.weights, settings)
