"""Jitted JAX losses and links, compared with cross-entropy and the memory floor.

The floor is one read of the scores and one write of the gradient at the rate of a jitted copy. The
script times the value and the gradient of a mean loss (for a link, the pullback of a direction),
with scores, targets and direction as arguments, on JAX's default device. Contenders take turns in a
changing order. Figures are medians. Ratios to cross-entropy (optax's if it is installed, otherwise
JAX's own) are medians over the rounds, with their quartiles. The time to compile is also printed.
``--only logistic, labels`` times the logistic losses only.
Run: python benchmarks/jax_losses.py [--rows 65536] [--classes 1024] [--dtype float32]
"""

import argparse
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fitzpatrick.jax as fj

NAMES = ("logistic", "sparsemax", "entmax15")
FLOOR, PLAIN, OPTAX = "copy", "jax cross-entropy", "optax cross-entropy"


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
        """Seconds per call."""
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


def contenders(labels: jax.Array, proportions: jax.Array, only: str) -> dict[str, tuple[Any, ...]]:
    """Functions and their second argument by name; always with the copy and the cross-entropies."""
    found: dict[str, tuple[Any, ...]] = {
        FLOOR: (lambda x: x + 1,),
        PLAIN: (loss_step(cross_entropy), labels),
    }
    try:
        import optax
    except ImportError as error:
        print(f"optax is left out: {error}")
    else:
        found[OPTAX] = loss_step(optax.softmax_cross_entropy_with_integer_labels), labels
    ours: dict[str, tuple[Any, ...]] = {"softmax link": (link_step(jax.nn.softmax), proportions)}
    for pair in NAMES:
        for name in (pair, f"fitzpatrick_{pair}"):
            on_labels = getattr(fj, f"{name}_loss_with_integer_labels")
            ours[f"{name}, labels"] = loss_step(on_labels), labels
            ours[f"{name}, proportions"] = loss_step(getattr(fj, f"{name}_loss")), proportions
        ours[f"{pair} link"] = link_step(getattr(fj, pair)), proportions
    return found | {name: step for name, step in ours.items() if only in name}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=65536)
    parser.add_argument("--classes", type=int, default=1024)
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32")
    parser.add_argument("--scale", type=float, default=2.0, help="standard deviation of the scores")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=5, help="calls per round")
    parser.add_argument("--only", default="", help="only our functions whose names contain this")
    options = parser.parse_args()

    keys = jax.random.split(jax.random.key(0), 3)
    shape = options.rows, options.classes
    scores = (options.scale * jax.random.normal(keys[0], shape)).astype(options.dtype)
    labels = jax.random.randint(keys[1], shape[:1], 0, options.classes)
    proportions = jax.nn.softmax(2 * jax.random.normal(keys[2], shape)).astype(options.dtype)
    device = jax.devices()[0]
    print(
        f"{shape[0]} x {shape[1]} {options.dtype}, {device.device_kind} ({device.platform}), "
        f"jax {jax.__version__}, Python {platform.python_version()}"
    )
    steps = contenders(labels, proportions, options.only)
    compiled = {name: compile_once(run, scores, *y) for name, (run, *y) in steps.items()}
    seconds: dict[str, list[float]] = {name: [] for name in compiled}
    names = list(compiled)
    for i in range(options.rounds):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            seconds[name].append(compiled[name].time(options.calls))
    times = {name: np.asarray(found) for name, found in seconds.items()}
    floor, peer = np.median(times[FLOOR]), OPTAX if OPTAX in times else PLAIN
    print(f"{'':36} {'ms':>9} {'x floor':>8}   x {peer} (quartiles)   compile s")
    for name, found in times.items():
        low, middle, high = np.quantile(found / times[peer], [0.25, 0.5, 0.75])
        print(
            f"{name:36} {1e3 * np.median(found):9.3f} {np.median(found) / floor:8.2f} "
            f"{middle:10.3f} ({low:.3f} to {high:.3f}) {compiled[name].compile_seconds:10.2f}"
        )


if __name__ == "__main__":
    main()
