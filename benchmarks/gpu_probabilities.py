"""Class probabilities of the logistic family on a GPU, in units of PyTorch's softmax.

    PYTHONPATH=src python benchmarks/gpu_probabilities.py [--tightness 1.0] [--compile]

Medians of interleaved runs, for a million rows of 10 classes and 4096 rows of 32768, in float32 and
bfloat16: the kernel, and with ``--compile`` the core's formulas through ``torch.compile``. The
largest error is that of float32 against the core in float64, in units of each probability.
"""

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from fitzpatrick.regularizers import Negentropy
from fitzpatrick.torch import functional as F  # noqa: N812

SHAPES = ((1_000_000, 10), (4096, 32768))


def race(contenders: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median milliseconds of each, in turns, with a cold cache in between."""
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(repeats + 3):
        for name, run in contenders.items():
            flush.zero_()
            event: Any = torch.cuda.Event
            begin, end = (event(enable_timing=True) for _ in range(2))
            begin.record()
            run()
            end.record()
            torch.cuda.synchronize()
            if turn >= 3:
                times[name].append(begin.elapsed_time(end))
    return {name: statistics.median(found) for name, found in times.items()}


def largest_error(x: torch.Tensor, tightness: float) -> float:
    rows = x[: max(1, 2**22 // x.shape[1])]
    exact = Negentropy().solve_probabilities(rows.double(), tightness)
    found = F.fitzpatrick_logistic_probabilities(rows, tightness).double()
    return float(((found - exact).abs() / exact).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tightness", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--compile", action="store_true", help="the core's formulas, compiled, too")
    given = parser.parse_args()
    c = given.tightness
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, tightness {c:g}")
    for shape in SHAPES:
        for dtype in (torch.float32, torch.bfloat16):
            torch.manual_seed(0)
            x = (torch.randn(shape, device="cuda") * 3).to(dtype)
            contenders: dict[str, Callable[[], Any]] = {
                "softmax": partial(torch.softmax, x, -1),
                "kernel": partial(F.fitzpatrick_logistic_probabilities, x, c),
            }
            if given.compile:
                compiled: Any = torch.compile(F.fitzpatrick_logistic_probabilities)
                contenders["compiled"] = partial(compiled, x, c)
            times = race(contenders, given.repeats)
            error = f", largest error {largest_error(x, c):.1e}" if dtype == torch.float32 else ""
            text = ", ".join(
                f"{name} {time:.3f} ms = {time / times['softmax']:.2f} ×"
                for name, time in times.items()
            )
            print(f"{shape[0]} × {shape[1]} {str(dtype)[6:]}: {text}{error}", flush=True)


if __name__ == "__main__":
    main()
