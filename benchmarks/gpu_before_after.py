"""Is this tree as fast on a GPU as another checkout of it? Prints ratios of times, after / before.

    git worktree add base SOME_COMMIT
    python benchmarks/gpu_before_after.py --base base --seeds 3

Each checkout runs in a process of its own, under its own package path, and the two take turns:
a few runs of one case here, then there, and again, so that noise hits both alike. The cases are
those of docs/performance.md: the named losses on labels and proportions, forward and backward, on
the four shapes of :mod:`gpu_losses`. Times are between CUDA events, behind other work of the GPU. A
ratio is the median over the turns of the ratio of their medians, with its quartiles.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import _gpu
import gpu_losses

HERE = Path(__file__).resolve()


def serve() -> None:
    """Time what the lines of the input ask for: a case and a number of runs."""
    import torch

    from fitzpatrick.torch import functional

    given: tuple[Any, ...] | None = None
    tensors: tuple[Any, ...] = ()
    for line in sys.stdin:
        loss, target, n, k, dtype, seed, runs = json.loads(line)
        if given != (target, n, k, dtype, seed):
            tensors = ()
            torch.cuda.empty_cache()
            generator = torch.Generator("cuda").manual_seed(seed)
            kind = getattr(torch, dtype)
            scores = torch.randn(n, k, device="cuda", generator=generator).to(kind)
            if target == "labels":
                y = torch.randint(0, k, (n,), device="cuda", generator=generator)
            else:
                y = torch.randn(n, k, device="cuda", generator=generator).softmax(-1).to(kind)
            given, tensors = (target, n, k, dtype, seed), (scores.requires_grad_(), y)
        x, y = tensors
        function = getattr(functional, f"{loss}_loss")

        def step(x: Any = x, y: Any = y, function: Any = function) -> None:
            x.grad = None
            function(x, y).backward()

        step()
        median, _, _ = _gpu.timed_behind_work(step, runs)
        x.grad = None
        print(json.dumps(median), flush=True)


class Checkout:
    """A process that times the losses of one checkout."""

    def __init__(self, root: Path) -> None:
        package = str(root / "src")
        environment = {**os.environ, "PYTHONPATH": package}
        self._process = subprocess.Popen(
            [sys.executable, str(HERE), "--serve"],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def time(self, *case: Any) -> float:
        """Milliseconds of one forward and backward pass."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(case) + "\n")
        stdin.flush()
        return float(json.loads(stdout.readline()))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", type=Path, help="the other checkout")
    parser.add_argument("--turns", type=int, default=5, help="turns of the two for a case")
    parser.add_argument("--runs", type=int, default=15, help="runs in a turn")
    parser.add_argument("--seeds", type=int, default=1, help="draws of scores")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
        return
    if arguments.base is None:
        parser.error("--base PATH is the checkout to compare with")
    before, after = Checkout(arguments.base.resolve()), Checkout(HERE.parents[1])
    print("scores, target, loss: before and after in ms, after / before (quartiles)")
    for n, k, dtype in gpu_losses.SHAPES:
        for target in ("labels", "proportions"):
            for loss in gpu_losses.OURS:
                times = []
                for turn in range(arguments.turns):
                    for seed in range(arguments.seeds):
                        case = loss, target, n, k, dtype, seed, arguments.runs
                        # neither is always the first
                        order = (before, after) if turn % 2 == 0 else (after, before)
                        found = {checkout: checkout.time(*case) for checkout in order}
                        times.append((found[before], found[after]))
                ratios = [new / old for old, new in times]
                low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
                old, new = (statistics.median(column) for column in zip(*times, strict=True))
                print(
                    f"{n:6d} × {k:6d} {dtype:8s} {target:11s} {loss:21s} {old:7.3f} {new:7.3f}   "
                    f"{middle:5.3f} ({low:.3f} to {high:.3f})",
                    flush=True,
                )
    before.close()
    after.close()


if __name__ == "__main__":
    main()
