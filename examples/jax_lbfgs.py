"""Fit the paper's linear model of label proportions with a jitted L-BFGS.

The model has scores X W, and the objective is

    sum over the rows of L(y_i, W x_i) + (λ/2) ‖W‖²,

which is convex in W. Targets are proportions, drawn around the link of a true model. For every
loss, ``optax.lbfgs`` minimizes the objective from W = 0 in one compiled loop. The script compares
the fits by their final gradient, their objective, and the squared error of the predicted
proportions on new data.

Run: pip install optax; python examples/jax_lbfgs.py [--fast]
"""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import fitzpatrick.jax as fj

# loss → its link; a Fenchel-Young loss and its Fitzpatrick loss have the same link
LINKS = {
    "logistic": fj.softmax,
    "fitzpatrick_logistic": fj.softmax,
    "sparsemax": fj.sparsemax,
    "fitzpatrick_sparsemax": fj.sparsemax,
}
PENALTY = 1.0


class Fit(NamedTuple):
    """Final weights, the objective, the largest entry of its gradient, and the number of steps."""

    weights: jax.Array
    value: jax.Array
    gradient: jax.Array
    steps: jax.Array


def minimize(
    objective: Callable[[jax.Array], jax.Array], start: jax.Array, max_steps: int, tolerance: float
) -> Fit:
    """L-BFGS with optax's line search, in one loop on the device."""
    solver = optax.lbfgs()
    value_and_gradient = optax.value_and_grad_from_state(objective)

    def step(carry: Any) -> Any:
        weights, state = carry
        value, gradient = value_and_gradient(weights, state=state)
        updates, state = solver.update(
            gradient, state, weights, value=value, grad=gradient, value_fn=objective
        )
        return optax.apply_updates(weights, updates), state

    def goes_on(carry: Any) -> Any:
        _, state = carry
        count = optax.tree.get(state, "count")
        left = jnp.max(jnp.abs(optax.tree.get(state, "grad")))
        return (count == 0) | ((count < max_steps) & (left > tolerance))

    weights, state = jax.lax.while_loop(goes_on, step, (start, solver.init(start)))
    value, gradient = jax.value_and_grad(objective)(weights)
    return Fit(weights, value, jnp.max(jnp.abs(gradient)), optax.tree.get(state, "count"))


def make_data(seed: int, rows: int, weights: np.ndarray) -> tuple[jax.Array, jax.Array]:
    """Standard normal features, and sparse proportions around a true linear model."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, weights.shape[0]))
    noise = 0.3 * rng.normal(size=(rows, weights.shape[1]))
    return jnp.asarray(x), fj.sparsemax(jnp.asarray(x @ weights + noise))


def main(arguments: list[str] | None = None) -> dict[str, Fit]:
    """Fit every loss and print the comparison; returns the fits."""
    parser = argparse.ArgumentParser(description="Label proportions with a jitted L-BFGS.")
    parser.add_argument("--fast", action="store_true", help="one loss, a small problem")
    fast = parser.parse_args(arguments).fast
    rows, features, classes = (60, 5, 4) if fast else (2000, 50, 20)
    names = ["fitzpatrick_sparsemax"] if fast else list(LINKS)

    with jax.enable_x64(True):
        truth = np.random.default_rng(0).normal(size=(features, classes)) / np.sqrt(features)
        x, y = make_data(1, rows, truth)
        x_test, y_test = make_data(2, rows, truth)
        fits = {}
        print(f"{'loss':24} {'steps':>5} {'objective':>12} {'gradient':>9} {'squared error':>13}")
        for name in names:
            loss, link = getattr(fj, f"{name}_loss"), LINKS[name]

            def objective(w: jax.Array, loss: Callable[..., jax.Array] = loss) -> jax.Array:
                return jnp.sum(loss(x @ w, y)) + PENALTY / 2 * jnp.sum(w * w)

            fit = jax.jit(lambda w, f=objective: minimize(f, w, 500, 1e-7))(jnp.zeros(truth.shape))
            error = jnp.mean(jnp.sum((link(x_test @ fit.weights) - y_test) ** 2, axis=-1))
            print(
                f"{name:24} {int(fit.steps):5} {float(fit.value):12.6f} "
                f"{float(fit.gradient):9.1e} {float(error):13.5f}"
            )
            fits[name] = fit
    return fits


if __name__ == "__main__":
    main()
