"""A problem whose large arrays live on a PyTorch device: the features, and all of shape (n, k).

The solvers stay where they are. What travels is one array of parameters, (p, k), each way and
product. Losses are the core's, which takes PyTorch arrays as they are.
"""

import functools
from typing import Any

import numpy as np
import torch
from scipy import sparse

from .._array import Array
from ..losses import Loss
from ..regularizers._base import SeparableSolution
from ._design import Design
from ._fitting import Problem, Settings
from ._rows import EntryHessian, Product


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

    def __init__(self, design: Design, device: torch.device) -> None:
        super().__init__(design.scaling, design.fit_intercept)
        self.n_penalized = design.n_penalized
        self._design = design
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
        placed = self.place(parameters.astype(self.dtype, copy=False))
        return torch.matmul(self._matrix, placed, out=out)

    def adjoint(self, gradient: Array) -> Array:
        return self.fetch(self._matrix.T @ gradient).astype(np.float64, copy=False)

    def place(self, array: Array) -> Array:
        return torch.as_tensor(array, device=self._device)

    def fetch(self, array: Array) -> Array:
        return array.numpy(force=True)

    def _to_features(self, parameters: Array) -> Array:
        return self._design._to_features(parameters)

    def _from_features(self, parameters: Array) -> Array:
        return self._design._from_features(parameters)


class DeviceRows:
    """A loss bound to dense targets on a device."""

    def __init__(self, loss: Loss, targets: Array, dtype: Any, device: torch.device) -> None:
        self._loss = loss
        self._y = torch.as_tensor(targets.astype(dtype, copy=False), device=device)

    def value_and_gradient(self, theta: Array, out: tuple[Array, Array]) -> tuple[Array, Array]:
        solution = self._loss.solve(self._y, theta)
        return solution.value(), torch.sub(solution.y_star, self._y, out=out[1])

    def hessian_operator(self, theta: Array) -> Product:
        solution = self._loss.solve(self._y, theta)
        if not isinstance(solution, SeparableSolution):
            return lambda v, out: out.copy_(solution.hessian_product(v))
        return DeviceHessian(solution.kernel.point(solution.s)[1], solution.coupled)


class DeviceHessian(EntryHessian):
    """The solution's own product, with what does not depend on v computed once."""

    def __init__(self, d: Array, coupled: bool) -> None:
        self.d = d
        self.total = d.sum(dim=1) if coupled else None
        self._mean = None if self.total is None else d / self.total.unsqueeze(1)

    def __call__(self, v: Array, out: Array) -> Array:
        if self._mean is None:
            return torch.mul(self.d, v, out=out)
        shift = torch.linalg.vecdot(self._mean, v).unsqueeze(1)
        return torch.sub(v, shift, out=out).mul_(self.d)


def device_problem(X: Array, targets: Array, settings: Settings, device: torch.device) -> Problem:
    """Features, which become dense, and targets (n, k) on a device."""
    features = X.toarray() if sparse.issparse(X) else np.ascontiguousarray(X)
    rows = DeviceRows(settings.loss, targets, features.dtype, device)
    place = functools.partial(DeviceDesign, device=device)
    return Problem(features, rows, targets.shape[1], None, settings, place)
