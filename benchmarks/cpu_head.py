"""A fused linear layer and loss on a CPU, compared with ``linear`` and ``cross_entropy``.

The script uses one thread and float32, forward and backward. Contenders take turns, and ratios are
ratios of medians. Memory is the peak of a separate process during one step, beyond inputs and
gradients.
Run: python benchmarks/cpu_head.py
"""

import argparse
import functools
import gc
import os
import re
import subprocess
import sys
from pathlib import Path

import gpu_head
import torch
from _machine import write_record
from _timing import Contender, race
from gpu_head import Loss, ours, step, torch_peers
from threadpoolctl import threadpool_limits
from torch import Tensor

PEER = "eager"
OURS = ["fitzpatrick_logistic", "logistic", "fitzpatrick_sparsemax", "fitzpatrick_entmax15"]
SHAPE = (2048, 256, 8192)
REPEATS = 9
# freed memory returns to the system at once, so that the peak belongs to the step
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def contenders() -> dict[str, Loss]:
    """All losses of a layer, by name, PyTorch's first."""
    return torch_peers() | ours(OURS)


def inputs(shape: tuple[int, int, int]) -> tuple[Tensor, Tensor, Tensor]:
    """Features, weight and labels."""
    return gpu_head.inputs(shape, "cpu", torch.float32)


def resident(field: str) -> int:
    """Bytes of this process in memory: ``VmRSS`` now, ``VmHWM`` at the peak."""
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def peak_beyond_gradients(name: str, shape: tuple[int, int, int]) -> int:
    """The peak of one step, after everything was compiled."""
    given = inputs(shape)
    run = functools.partial(step, contenders()[name], *given)
    run()
    gc.collect()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    run()
    gradients = sum(x.numel() * x.element_size() for x in given[:2])
    return resident("VmHWM") - before - gradients


def memory_in_a_process(name: str, shape: tuple[int, int, int]) -> int:
    """The measurement from outside."""
    command = [sys.executable, __file__, "--memory", name, "--shape", *map(str, shape)]
    environment = os.environ | ALLOCATOR
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(run.stdout)


def main() -> None:
    """Print a line for each contender."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", type=int, nargs=3, default=SHAPE, metavar=("N", "H", "K"))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    shape = tuple(arguments.shape)
    with threadpool_limits(1):
        torch.set_num_threads(1)
        if arguments.memory is not None:
            print(peak_beyond_gradients(arguments.memory, shape))
            return
        given = inputs(shape)
        timings = race(
            [Contender(n, functools.partial(step, f, *given)) for n, f in contenders().items()],
            arguments.repeats,
        )
    memory = {name: memory_in_a_process(name, shape) for name in timings}
    lines = []
    for name, timing in timings.items():
        ratio, extra = timing.median / timings[PEER].median, memory[name] / 2**20
        print(f"{name:28s} {1e3 * timing.median:8.1f} ms {ratio:6.3f} x, {extra:7.1f} MiB")
        line = {
            "loss": name,
            "median_ms": round(1e3 * timing.median, 1),
            "ratio": round(ratio, 3),
            "extra_mib": round(extra, 1),
            "extra_ratio": round(memory[name] / memory[PEER], 3),
        }
        lines.append(line)
    if arguments.json is not None:
        write_record(arguments.json, shape=shape, losses=lines)


if __name__ == "__main__":
    main()
