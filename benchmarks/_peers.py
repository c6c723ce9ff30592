"""Other implementations: libraries, a sort-based projection, and the paper's bisection."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from scipy.special import lambertw
from sklearn._loss import HalfMultinomialLoss

FloatArray = np.ndarray[Any, np.dtype[Any]]
Run = Callable[[], object]


def scikit_learn(theta: FloatArray, labels: FloatArray, n_threads: int) -> Run:
    """HalfMultinomialLoss.loss_gradient into buffers."""
    loss = HalfMultinomialLoss(n_classes=theta.shape[1])
    y = labels.astype(theta.dtype)
    out = {"loss_out": np.empty(len(theta), theta.dtype), "gradient_out": np.empty_like(theta)}
    return lambda: loss.loss_gradient(y_true=y, raw_prediction=theta, n_threads=n_threads, **out)


def of_torch(theta: FloatArray, labels: FloatArray, loss: Callable[..., Any]) -> Run:
    """Forward and backward of a loss of tensors."""
    scores = torch.from_numpy(theta).requires_grad_()
    target = torch.from_numpy(labels)

    def run() -> object:
        scores.grad = None
        loss(scores, target).sum().backward()
        return scores.grad

    return run


def torch_cross_entropy(theta: FloatArray, labels: FloatArray) -> Run:
    """Forward and backward."""
    loss = functools.partial(torch.nn.functional.cross_entropy, reduction="none")
    return of_torch(theta, labels, loss)


def of_optax(theta: FloatArray, labels: FloatArray, loss: Callable[..., Any]) -> Run:
    """Jitted value and gradient of a loss of JAX arrays."""
    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]  # JAX's own
    scores, target = jnp.asarray(theta), jnp.asarray(labels)
    both = jax.jit(jax.value_and_grad(lambda s: loss(s, target).sum()))
    return lambda: jax.tree.map(np.asarray, both(scores))  # waits for the result


def sorted_projection(x: FloatArray) -> FloatArray:
    """Projection onto the simplex by sorting each row."""
    k = x.shape[1]
    descending = np.sort(x, axis=1)[:, ::-1]
    sums = np.cumsum(descending, axis=1) - 1
    support = np.count_nonzero(descending * np.arange(1, k + 1) > sums, axis=1)
    tau = np.take_along_axis(sums, support[:, None] - 1, axis=1) / support[:, None]
    return np.asarray(np.maximum(x - tau, 0))


def sorting_sparsemax(theta: FloatArray, labels: FloatArray) -> Run:
    """Sparsemax value and gradient around a sort-based projection, in blocks of 64 rows."""

    def run() -> object:
        gradient = np.empty_like(theta)
        value = np.empty(len(theta), theta.dtype)
        for start in range(0, len(theta), 64):
            rows = slice(start, start + 64)
            p = sorted_projection(theta[rows])
            at = np.arange(len(p)), labels[rows]
            own = theta[rows][at]
            value[rows] = 0.5 - own + (p * theta[rows]).sum(axis=1) - 0.5 * (p * p).sum(axis=1)
            p[at] -= 1
            gradient[rows] = p
        return value, gradient

    return run


def paper_bisection(theta: FloatArray, y: FloatArray, steps: int = 50) -> Run:
    """The paper's recipe: bisection of its bracket, with Lambert's W of an exponential."""

    def maximizer(lam: FloatArray, positive: FloatArray) -> FloatArray:
        z = np.where(positive, y, 1) * np.exp(lam - theta)
        return np.asarray(np.where(positive, y / lambertw(z).real, np.exp(theta - lam)))

    def run() -> object:
        with np.errstate(all="ignore"):
            positive = y > 0
            support = positive.sum(axis=1, keepdims=True)
            top = theta.max(axis=1, keepdims=True)
            low = top + np.log(np.exp(theta - top).sum(axis=1, keepdims=True))
            zero = np.log(np.where(positive, 0, np.exp(theta - top)).sum(axis=1, keepdims=True))
            there = np.where(positive, np.log(support) + theta + 2 * support * y, -np.inf)
            high = np.log(2) + np.maximum(zero + top, there.max(axis=1, keepdims=True))
            for _ in range(steps):
                middle = (low + high) / 2
                above = maximizer(middle, positive).sum(axis=1, keepdims=True) > 1
                low, high = np.where(above, middle, low), np.where(above, high, middle)
            p = maximizer((low + high) / 2, positive)
            value = ((p - y) * (theta - np.log(p) - 1)).sum(axis=1)
            return value, p - y

    return run
