"""Fitzpatrick logistic with integer labels in JAX against optax's cross-entropy.

What is timed: the jitted value and gradient of the mean loss, the same scores and labels for all,
on JAX's default device. The peers take turns within each round, so that a change in the machine's
speed touches all of them; printed are medians over the rounds, and medians of the ratios to
optax's ``softmax_cross_entropy_with_integer_labels`` of the same round. A peer that cannot be
imported is named. Without optax the ratios are to JAX's own ``logsumexp`` minus the label's score,
which is timed in any case.

Run: python benchmarks/jax_losses.py [--rows 8192] [--classes 1024] [--dtype float32]
"""

import argparse
import platform
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import fitzpatrick.jax as fj

LossFunction = Callable[[jax.Array, jax.Array], jax.Array]

# A loss of one row each; the label's score and a log-sum-exp is what cross-entropy has to read.
PLAIN = "jax logsumexp - score"
OPTAX = "optax cross-entropy"


def plain_cross_entropy(scores: jax.Array, labels: jax.Array) -> jax.Array:
    label_scores = jnp.take_along_axis(scores, labels[:, None], axis=-1)[:, 0]
    return jax.nn.logsumexp(scores, axis=-1) - label_scores


def peers() -> tuple[dict[str, LossFunction], list[str]]:
    """The losses by name, and the sentence for each one that is missing."""
    losses: dict[str, LossFunction] = {
        "fitzpatrick_logistic": fj.fitzpatrick_logistic_loss_with_integer_labels,
        "logistic": fj.logistic_loss_with_integer_labels,
        PLAIN: plain_cross_entropy,
    }
    missing = []
    try:
        import optax
    except ImportError as error:
        missing.append(f"{OPTAX}: missing ({error})")
    else:
        losses[OPTAX] = optax.softmax_cross_entropy_with_integer_labels
    return losses, missing


def step(loss: LossFunction) -> Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    """The jitted value and gradient of the mean loss."""
    return jax.jit(jax.value_and_grad(lambda scores, labels: jnp.mean(loss(scores, labels))))


def wait(out: tuple[jax.Array, jax.Array]) -> None:
    for array in out:
        array.block_until_ready()


def measure(
    losses: dict[str, LossFunction], scores: jax.Array, labels: jax.Array, rounds: int, repeat: int
) -> dict[str, np.ndarray]:
    """Seconds per call, by loss, one entry per round."""
    steps = {name: step(loss) for name, loss in losses.items()}
    for function in steps.values():
        wait(function(scores, labels))
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    names = list(steps)
    for i in range(rounds):
        # each round starts with another one
        for name in names[i % len(names) :] + names[: i % len(names)]:
            start = time.perf_counter()
            for _ in range(repeat):
                out = steps[name](scores, labels)
            wait(out)
            seconds[name].append((time.perf_counter() - start) / repeat)
    return {name: np.asarray(times) for name, times in seconds.items()}


def report(seconds: dict[str, np.ndarray], missing: list[str]) -> None:
    reference = OPTAX if OPTAX in seconds else PLAIN
    print(f"{'loss':24} {'median ms':>10} {'ratio to ' + reference:>30}   quartiles of the ratio")
    for name, times in seconds.items():
        ratios = times / seconds[reference]
        low, high = np.quantile(ratios, [0.25, 0.75])
        print(
            f"{name:24} {1e3 * np.median(times):10.3f} {np.median(ratios):30.3f}   "
            f"{low:.3f} to {high:.3f}"
        )
    for line in missing:
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--classes", type=int, default=1024)
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--repeat", type=int, default=3, help="calls per round and loss")
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    scores = jnp.asarray(rng.normal(size=(options.rows, options.classes)), dtype=options.dtype)
    labels = jnp.asarray(rng.integers(options.classes, size=options.rows), dtype=jnp.int32)
    device = jax.devices()[0]
    print(
        f"{options.rows} x {options.classes} {options.dtype}, value and gradient of the mean loss, "
        f"{options.rounds} rounds of {options.repeat} calls"
    )
    print(
        f"device {device.device_kind} ({device.platform}), jax {jax.__version__}, "
        f"Python {platform.python_version()}"
    )
    losses, missing = peers()
    report(measure(losses, scores, labels, options.rounds, options.repeat), missing)


if __name__ == "__main__":
    main()
