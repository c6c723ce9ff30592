"""Fits of CUDA tensors against fits of NumPy arrays: objectives, times, and where the time goes.

    FITZPATRICK_DATA=DIR python benchmarks/gpu_fits.py pack fits.npz [name ...]
    python benchmarks/gpu_fits.py run fits.npz [--losses a,b] [--alpha 1] [--profile]

``pack`` writes the training parts of data sets into one file. ``run`` needs only this file, NumPy,
SciPy, scikit-learn and PyTorch. It fits a ``ProportionRegressor`` of standardized features on the
CPU and, with ``array_api_dispatch``, to tensors on the device. The first fit on the device includes
its start and the compilation of kernels; later fits are warm. The script fails if an objective
differs by more than 1e-8.
"""

import argparse
import cProfile
import os
import pstats
import sys
import time
from typing import Any

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # read when SciPy is imported

import numpy as np
import sklearn

from fitzpatrick.linear_model import Iteration, ProportionRegressor

SETS = ("yeast", "scene", "delicious")
LOSSES = ("logistic", "fitzpatrick_logistic", "sparsemax", "fitzpatrick_sparsemax", "sigmoid")
TOLERANCE = 1e-8
REPEATS = 3


def pack(file: str, names: list[str]) -> None:
    """Features and indicators in the smallest dtype that holds them."""
    from scipy import sparse

    from fitzpatrick.datasets import load_dataset

    arrays: dict[str, Any] = {}
    for name in names or SETS:
        train = load_dataset(name).train.labelled()
        X = train.X.toarray() if sparse.issparse(train.X) else np.asarray(train.X)
        is_binary = bool(np.isin(X, (0, 1)).all())
        arrays[f"{name}_X"] = X.astype(np.uint8 if is_binary else np.float64)
        arrays[f"{name}_Y"] = np.asarray(train.Y).astype(np.uint8)
    np.savez_compressed(file, **arrays)


def fit(X: Any, Y: Any, loss: str, alpha: float) -> tuple[ProportionRegressor, float, float]:
    """The model, the seconds of the whole fit, and the seconds of the solver."""
    latest: list[Iteration] = []
    model = ProportionRegressor(loss, alpha, standardize=True, callback=latest.append)
    begin = time.perf_counter()
    model.fit(X, Y)
    return model, time.perf_counter() - begin, latest[-1].seconds


def run(file: str, losses: list[str], alpha: float, device: str, profile: bool) -> bool:
    """Print a table; True if all objectives agree."""
    import torch

    sklearn.set_config(array_api_dispatch=True)
    on_cuda = device.startswith("cuda")
    name = torch.cuda.get_device_name(device) if on_cuda else device
    print(f"{name}, PyTorch {torch.__version__}, {os.cpu_count()} cores")
    print(
        f"{'set':10}{'loss':24}{'samples':>9}{'iter.':>7}{'CPU s':>9}{'first s':>9}{'warm s':>9}"
        f"{'solver s':>9}{'CPU/warm':>9}{'objective':>11}"
    )
    agree = True
    with np.load(file) as data:
        arrays = {key: data[key] for key in data.files}
    for key in [key[:-2] for key in arrays if key.endswith("_X")]:
        X, Y = arrays[f"{key}_X"].astype(np.float64), arrays[f"{key}_Y"].astype(np.float64)
        Y /= Y.sum(axis=1, keepdims=True)
        x, y = (torch.asarray(array, device=device) for array in (X, Y))
        for loss in losses:
            expected, cpu, _ = fit(X, Y, loss, alpha)
            _, first, _ = fit(x, y, loss, alpha)
            runs = [fit(x, y, loss, alpha) for _ in range(REPEATS)]
            model, warm, solver = sorted(runs, key=lambda run: run[1])[REPEATS // 2]
            gap = abs(model.objective_ / expected.objective_ - 1)
            agree &= gap <= TOLERANCE
            print(
                f"{key:10}{loss:24}{len(X):9d}{model.n_iter_:7d}{cpu:9.2f}{first:9.2f}{warm:9.2f}"
                f"{solver:9.2f}{cpu / warm:9.1f}{gap:11.1e}{'' if gap <= TOLERANCE else '  OFF'}",
                flush=True,
            )
        if profile:
            show_profile(x, y, losses[0], alpha, key)
    return agree


def show_profile(x: Any, y: Any, loss: str, alpha: float, key: str) -> None:
    """Where a warm fit spends its time: Python's functions, then PyTorch's operations."""
    import torch

    print(f"\n{key}, {loss}: functions by their own time")
    profiler = cProfile.Profile()
    profiler.runcall(fit, x, y, loss, alpha)
    pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(12)
    activities = [torch.profiler.ProfilerActivity.CPU]
    if x.is_cuda:
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as trace:
        fit(x, y, loss, alpha)
    order = "self_cuda_time_total" if x.is_cuda else "self_cpu_time_total"
    print(trace.key_averages().table(sort_by=order, row_limit=12, max_name_column_width=50))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("file")
    packing.add_argument("names", nargs="*")
    running = commands.add_parser("run")
    running.add_argument("file")
    running.add_argument("--losses", default=",".join(LOSSES))
    running.add_argument("--alpha", type=float, default=1.0)
    running.add_argument("--device", default="cuda")
    running.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if options.command == "pack":
        pack(options.file, options.names)
        return
    losses = options.losses.split(",")
    if not run(options.file, losses, options.alpha, options.device, options.profile):
        sys.exit(f"an objective differs from the CPU's by more than {TOLERANCE:g}")


if __name__ == "__main__":
    main()
