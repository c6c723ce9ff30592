"""Train a linear and a small neural classifier with optax, once per loss.

The data are scikit-learn's digits, 8 x 8 images in ten classes. Model, initial weights and batches
are the same for every loss. Only the loss function and the link, which turns scores into
probabilities, differ.

Run: pip install optax; python examples/jax_train.py [--fast]
"""

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import fitzpatrick.jax as fj

# loss → its link; a Fenchel-Young loss and its Fitzpatrick loss have the same link
LINKS = {
    "logistic": fj.softmax,
    "fitzpatrick_logistic": fj.softmax,
    "sparsemax": fj.sparsemax,
    "fitzpatrick_sparsemax": fj.sparsemax,
}

Params = list[tuple[jax.Array, jax.Array]]


def init(key: jax.Array, sizes: list[int]) -> Params:
    """Weights and biases of a chain of layers; two sizes make a linear model."""
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(k, (m, n)) / np.sqrt(m), jnp.zeros(n))
        for k, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def scores(params: Params, x: jax.Array) -> jax.Array:
    """The outputs of the last layer, one score per class."""
    *hidden, (weights, bias) = params
    for w, b in hidden:
        x = jax.nn.relu(x @ w + b)
    return x @ weights + bias


def train(
    loss: Callable[..., jax.Array], params: Params, x: jax.Array, labels: jax.Array, epochs: int
) -> Params:
    """Adam on batches of 100, one scan over the batches per epoch, compiled once."""
    optimizer = optax.adam(3e-3)

    def step(carry: Any, batch: jax.Array) -> tuple[Any, None]:
        params, state = carry

        def objective(params: Params) -> jax.Array:
            return jnp.mean(loss(scores(params, x[batch]), labels[batch]))

        updates, state = optimizer.update(jax.grad(objective)(params), state)
        return (optax.apply_updates(params, updates), state), None

    @jax.jit
    def epoch(carry: Any, key: jax.Array) -> Any:
        batches = jax.random.permutation(key, len(x))[: len(x) // 100 * 100].reshape(-1, 100)
        return jax.lax.scan(step, carry, batches)[0]

    carry = (params, optimizer.init(params))
    for key in jax.random.split(jax.random.key(1), epochs):
        carry = epoch(carry, key)
    return carry[0]


def main(arguments: list[str] | None = None) -> dict[tuple[str, str], float]:
    """Train every pair of model and loss; returns the test accuracies."""
    parser = argparse.ArgumentParser(description="Train on digits with optax, once per loss.")
    parser.add_argument("--fast", action="store_true", help="one model, one loss, five epochs")
    fast = parser.parse_args(arguments).fast
    epochs, names = (5, ["fitzpatrick_logistic"]) if fast else (40, list(LINKS))

    data = load_digits()
    x, x_test, labels, labels_test = map(
        jnp.asarray,
        train_test_split(
            data.data.astype(np.float32) / 16, data.target, test_size=0.3, random_state=0
        ),
    )
    models = {"linear": [64, 10], "neural": [64, 64, 10]}
    if fast:
        del models["linear"]
    accuracies = {}
    print(f"{'model':8} {'loss':24} {'accuracy':>8}  {'classes with probability > 0':>28}")
    for model, sizes in models.items():
        for name in names:
            loss = getattr(fj, f"{name}_loss_with_integer_labels")
            params = train(loss, init(jax.random.key(0), sizes), x, labels, epochs)
            predicted = LINKS[name](scores(params, x_test))
            accuracy = float(jnp.mean(jnp.argmax(predicted, axis=-1) == labels_test))
            support = float(jnp.mean(jnp.sum(predicted > 0, axis=-1)))
            print(f"{model:8} {name:24} {accuracy:8.3f}  {support:28.2f}")
            accuracies[model, name] = accuracy
    return accuracies


if __name__ == "__main__":
    main()
