"""JAX losses and links, jitted, against the memory's limit and JAX's own cross-entropy.

The floor is one read of the scores and one write of the gradient at the rate of a jitted copy. What
is timed is the value and the gradient of a mean loss (for a link, the pullback of a direction),
with the scores, the targets and the direction as arguments, on JAX's default device. Contenders
take turns, and figures are medians. The time to compile stands beside them.
Run: python benchmarks/gpu_jax.py [--rows 65536] [--classes 1024] [--dtype float32]
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

import fitzpatrick.jax as fj

NAMES = ("logistic", "sparsemax", "entmax15")


def cross_entropy(scores: jax.Array, labels: jax.Array) -> jax.Array:
    label_scores = jnp.take_along_axis(scores, labels[:, None], axis=-1)[:, 0]
    return jax.nn.logsumexp(scores, axis=-1) - label_scores


@dataclass(frozen=True)
class Compiled:
    """A compiled function with its arguments."""

    run: Callable[..., Any]
    arguments: tuple[jax.Array, ...]
    compile_seconds: float

    def time(self, calls: int) -> float:
        """Seconds a call."""
        start = time.perf_counter()
        for _ in range(calls):
            out = self.run(*self.arguments)
        jax.block_until_ready(out)  # type: ignore[no-untyped-call]  # JAX's own
        return (time.perf_counter() - start) / calls


def compile_once(function: Callable[..., Any], *arguments: jax.Array) -> Compiled:
    start = time.perf_counter()
    run = jax.jit(function).lower(*arguments).compile()
    seconds = time.perf_counter() - start
    jax.block_until_ready(run(*arguments))  # type: ignore[no-untyped-call]
    return Compiled(run, arguments, seconds)


def loss_step(loss: Callable[..., jax.Array]) -> Callable[..., Any]:
    def mean(scores: jax.Array, target: jax.Array) -> jax.Array:
        return jnp.mean(loss(scores, target).astype(jnp.float32))

    return jax.value_and_grad(mean)


def link_step(link: Callable[..., jax.Array]) -> Callable[..., Any]:
    def both(scores: jax.Array, upstream: jax.Array) -> Any:
        predictions, pull = jax.vjp(link, scores)
        return predictions, pull(upstream)[0]

    return both


def contenders(scores: jax.Array, labels: jax.Array, proportions: jax.Array) -> dict[str, Compiled]:
    """The copy first."""
    found = {
        "copy": compile_once(lambda x: x + 1, scores),
        "cross-entropy": compile_once(loss_step(cross_entropy), scores, labels),
        "softmax link": compile_once(link_step(jax.nn.softmax), scores, proportions),
    }
    for pair in NAMES:
        for name in (pair, f"fitzpatrick_{pair}"):
            on_labels = getattr(fj, f"{name}_loss_with_integer_labels")
            on_targets = getattr(fj, f"{name}_loss")
            found[f"{name}, labels"] = compile_once(loss_step(on_labels), scores, labels)
            found[f"{name}, proportions"] = compile_once(loss_step(on_targets), scores, proportions)
        found[f"{pair} link"] = compile_once(link_step(getattr(fj, pair)), scores, proportions)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=65536)
    parser.add_argument("--classes", type=int, default=1024)
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32")
    parser.add_argument("--scale", type=float, default=2.0, help="of the normal scores")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=5, help="calls per round")
    options = parser.parse_args()

    keys = jax.random.split(jax.random.key(0), 3)
    shape = options.rows, options.classes
    scores = (options.scale * jax.random.normal(keys[0], shape)).astype(options.dtype)
    labels = jax.random.randint(keys[1], shape[:1], 0, options.classes)
    proportions = jax.nn.softmax(2 * jax.random.normal(keys[2], shape)).astype(options.dtype)
    device = jax.devices()[0]
    print(f"{shape[0]} x {shape[1]} {options.dtype}, {device.device_kind}, jax {jax.__version__}")

    compiled = contenders(scores, labels, proportions)
    seconds: dict[str, list[float]] = {name: [] for name in compiled}
    for _ in range(options.rounds):
        for name, contender in compiled.items():
            seconds[name].append(contender.time(options.calls))
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    floor, peer = medians["copy"], medians["cross-entropy"]
    print(f"{'':36} {'ms':>9} {'x floor':>8} {'x cross-entropy':>16} {'compile s':>10}")
    for name, median in medians.items():
        print(
            f"{name:36} {1e3 * median:9.3f} {median / floor:8.2f} {median / peer:16.2f} "
            f"{compiled[name].compile_seconds:10.2f}"
        )


if __name__ == "__main__":
    main()
