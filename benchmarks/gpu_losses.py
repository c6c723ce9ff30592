"""Losses on a GPU, forward and backward, compared with other libraries and the memory floor.

The floor is one read of the scores and one write of their gradient (two reads and one write with
proportions), at the copy rate that is measured in the same run. Times are medians of many runs
between CUDA events, with a cold cache. They are measured in two ways:

- ``median_ms``: behind other work of the GPU, here copies, as a loss is behind its network in
  training, so that Python is ahead of the GPU. ``times_floor`` is of this one.
- ``idle_ms``: with nothing queued, so that the GPU waits for Python; where kernels are short, this
  is the host's time.

    python benchmarks/gpu_losses.py --csv benchmarks/results/gpu_losses.csv --seeds 3
    python benchmarks/gpu_losses.py --plot benchmarks/results/gpu_losses.csv
    python benchmarks/gpu_losses.py --table benchmarks/results/gpu_losses.csv

Besides the named losses, each regularizer is measured at tightness 1/2 and 2, and on rows of ties
below a peak. The ties are just within reach of the sparse losses, which is their slowest case.

Contenders that are not installed are left out by name: Liger (``liger_kernel``) and entmax. Liger
overwrites the scores with their gradient, so it has its own copy.
"""

import argparse
import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from _gpu import copy_rate, machine, measure, peer, require_gpu, version, write_rows

SHAPES = [
    (16384, 32768, "bfloat16"),
    (8192, 131072, "bfloat16"),
    (65536, 1024, "float32"),
    (16384, 32768, "float32"),
]
SWEEP = [64, 256, 1000, 4096, 16384, 50257, 200003]
SWEEP_ENTRIES = 2**28
# images: classes in the second axis, one label a pixel
IMAGES = (16, 32, 512, 512)
TIGHTNESSES = [0.5, 2.0]
OURS = [
    "logistic",
    "fitzpatrick_logistic",
    "sparsemax",
    "fitzpatrick_sparsemax",
    "entmax15",
    "fitzpatrick_entmax15",
]


def ours() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """(loss, library, function of scores and targets) of this package."""
    from fitzpatrick.torch import functional

    for name in OURS:
        yield name, "fitzpatrick", getattr(functional, f"{name}_loss")


def ours_at_other_tightness() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Our losses at tightnesses other than 0 and 1."""
    from fitzpatrick.losses import get_loss
    from fitzpatrick.torch import functional

    for name in OURS:
        for c in TIGHTNESSES if get_loss(name).tightness == 1 else ():
            function = functools.partial(getattr(functional, f"{name}_loss"), tightness=c)
            yield name, f"fitzpatrick, tightness {c}", function


def others(suite: str) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Losses of other libraries, and other ways to call ours."""
    import torch

    from fitzpatrick.torch import functional

    cross_entropy = torch.nn.functional.cross_entropy
    yield "cross_entropy", "torch", cross_entropy
    if suite != "shapes":
        return
    loss = functional.fitzpatrick_logistic_loss
    yield "fitzpatrick_logistic", "fitzpatrick, torch.compile", torch.compile(loss)
    yield "fitzpatrick_logistic", "fitzpatrick, reduction none", _without_reduction(loss)
    yield "fitzpatrick_logistic", "fitzpatrick, smoothing 0.1", _smoothed(loss)
    yield "cross_entropy", "torch, smoothing 0.1", _smoothed(cross_entropy)
    yield "cross_entropy", "torch.compile", torch.compile(cross_entropy)
    if (liger := peer("liger_kernel.transformers")) is not None:
        yield "cross_entropy", "Liger", liger.LigerCrossEntropyLoss()
    if (entmax := peer("entmax")) is not None:
        yield "sparsemax", "entmax", lambda x, y: entmax.sparsemax_loss(x, y).mean()
        yield "entmax15", "entmax", lambda x, y: entmax.entmax15_loss(x, y).mean()


def _smoothed(loss: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: loss(x, y, label_smoothing=0.1)


def _without_reduction(loss: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: loss(x, y, reduction="none").mean()


def _scores(suite: str, shape: tuple[int, ...], generator: Any) -> Any:
    import torch

    if suite != "ties":
        return torch.randn(shape, device="cuda", generator=generator)
    scores = torch.zeros(shape, device="cuda")
    # the peak's distance is 1 for sparsemax to 3 for the Fitzpatrick entmax15 loss
    scores[:, 0] = torch.arange(shape[0], device="cuda") % 3 + 1 - 2**-6
    return scores


def cases() -> Iterator[tuple[str, int, int, str]]:
    """(suite, rows, classes, dtype)."""
    for shape in SHAPES:
        yield "shapes", *shape
    for k in SWEEP:
        yield "sweep", SWEEP_ENTRIES // k, k, "bfloat16"
    yield "images", IMAGES[0] * IMAGES[2] * IMAGES[3], IMAGES[1], "float32"
    for shape in (SHAPES[0], SHAPES[3]):
        yield "ties", *shape


def contenders(suite: str, k: int, scores: Any, generator: Any) -> Iterator[tuple[Any, ...]]:
    """(name of the targets, targets, loss, library, function)."""
    import torch

    shape = scores.shape[:1] + scores.shape[2:]
    labels = torch.randint(0, k, shape, device="cuda", generator=generator)
    functions = [*ours(), *others(suite)] if suite != "ties" else [*ours()]
    if suite in ("shapes", "ties"):
        functions += ours_at_other_tightness()
    for contender in functions:
        yield "labels", labels, *contender
    if suite == "shapes":
        noise = torch.randn(scores.shape, device="cuda", generator=generator)
        proportions = torch.softmax(noise, -1).to(scores.dtype)
        del noise
        for contender in (*ours(), *ours_at_other_tightness()):
            yield "proportions", proportions, *contender


def run(seeds: int) -> Iterator[dict[str, Any]]:
    """Time everything."""
    import torch

    rate = copy_rate()
    fixed = {
        **machine(),
        "liger": version("liger-kernel"),
        "entmax": version("entmax"),
        "copy_tb_s": round(rate / 1e9, 3),
    }
    print(fixed)
    for seed, (suite, n, k, dtype) in itertools.product(range(seeds), cases()):
        generator = torch.Generator("cuda").manual_seed(seed)
        shape: tuple[int, ...] = IMAGES if suite == "images" else (n, k)
        scores = _scores(suite, shape, generator).to(getattr(torch, dtype)).requires_grad_()
        gradient = scores.numel() * scores.element_size()
        for target_name, target, loss, library, function in contenders(suite, k, scores, generator):
            floor = gradient * (2 if target_name == "labels" else 3) / rate
            given = scores.detach().clone().requires_grad_() if library == "Liger" else scores

            def step(function: Any = function, x: Any = given, target: Any = target) -> None:
                function(x, target).backward()
                x.grad = None  # the peak counts the gradient

            try:
                result = measure(step, 60 if suite == "sweep" else 120, with_idle=True)
            except torch.OutOfMemoryError:
                print(f"{library} {loss} {n} × {k} {dtype}: out of memory", file=sys.stderr)
                continue
            finally:
                scores.grad = None
                torch.cuda.empty_cache()
            row = {
                **fixed,
                "seed": seed,
                "suite": suite,
                "loss": loss,
                "library": library,
                "target": target_name,
                "rows": n,
                "classes": k,
                "dtype": dtype,
                **result,
                "floor_ms": round(floor, 4),
                "times_floor": round(result["median_ms"] / floor, 2),
                "gradient_mib": round(gradient / 2**20, 1),
            }
            print(
                f"{n:6d} × {k:6d} {dtype:8s} {target_name:11s} {library:27s} {loss:21s}"
                f"{row['median_ms']:9.3f} ms {row['times_floor']:7.2f} × floor "
                f"{row['idle_ms']:9.3f} ms idle {row['peak_extra_mib']:8.0f} MiB",
                flush=True,
            )
            yield row
        del scores, given, target
        torch.cuda.empty_cache()


BARS = {  # (library, loss): color and hatch; a loss has the same color in both panels
    ("fitzpatrick", "logistic"): ("tab:cyan", ""),
    ("fitzpatrick", "fitzpatrick_logistic"): ("tab:blue", ""),
    ("fitzpatrick", "sparsemax"): ("gold", ""),
    ("fitzpatrick", "fitzpatrick_sparsemax"): ("tab:orange", ""),
    ("fitzpatrick", "entmax15"): ("yellowgreen", ""),
    ("fitzpatrick", "fitzpatrick_entmax15"): ("tab:green", ""),
    ("torch", "cross_entropy"): ("dimgray", ""),
    ("torch.compile", "cross_entropy"): ("dimgray", "///"),
    ("Liger", "cross_entropy"): ("dimgray", "..."),
    ("entmax", "sparsemax"): ("gold", "xxx"),
    ("entmax", "entmax15"): ("yellowgreen", "xxx"),
}


def plot(path: Path) -> None:
    """Bars for the four shapes, and lines over the number of classes, beside the CSV."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    frame = pd.read_csv(path)
    frame = frame[(frame["target"] == "labels") & (frame["seed"] == 0)]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(13, 6.2), width_ratios=[3, 2])
    for i, (contender, (color, hatch)) in enumerate(BARS.items()):
        own = frame[(frame["library"] == contender[0]) & (frame["loss"] == contender[1])]
        shapes = own[own["suite"] == "shapes"].set_index(["rows", "classes", "dtype"])
        heights = shapes["times_floor"].to_dict()
        places = [j + 0.08 * i for j, shape in enumerate(SHAPES) if shape in heights]
        values = [heights[shape] for shape in SHAPES if shape in heights]
        edge = "white" if hatch else color
        style = {"color": color, "hatch": hatch, "edgecolor": edge, "linewidth": 0}
        left.bar(places, values, width=0.075, label=": ".join(contender), **style)
        line = own[own["suite"] == "sweep"]
        if len(line):
            right.plot(line["classes"], line["times_floor"], marker="o", color=color)
    left.set_xticks([j + 0.04 * (len(BARS) - 1) for j in range(len(SHAPES))])
    left.set_xticklabels([f"{n} × {k}\n{dtype}" for n, k, dtype in SHAPES])
    right.set_xscale("log")
    right.set_xlabel(f"classes (bfloat16, {SWEEP_ENTRIES:,} scores)")
    for axes, ticks in ((left, [1, 2, 5, 10, 20, 50, 100]), (right, [1, 2, 5, 10, 20, 40])):
        axes.set_yscale("log")
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_ylabel("time / memory floor")
        axes.set_yticks(ticks, labels=[str(tick) for tick in ticks])
        axes.minorticks_off()
    machine = frame.iloc[0]
    figure.suptitle(
        f"Forward and backward, class indices: {machine['gpu']}, torch {machine['torch']}, "
        f"Triton {machine['triton']}"
    )
    figure.legend(loc="lower center", ncol=4, fontsize=9)
    figure.tight_layout(rect=(0, 0.12, 1, 1))
    figure.savefig(path.with_suffix(".png"), dpi=120)
    print(path.with_suffix(".png"))


TABLES = {
    "labels": {
        "Fitzpatrick logistic": ("fitzpatrick", "fitzpatrick_logistic"),
        "sparsemax": ("fitzpatrick", "sparsemax"),
        "Fitzpatrick sparsemax": ("fitzpatrick", "fitzpatrick_sparsemax"),
        "Fitzpatrick entmax15": ("fitzpatrick", "fitzpatrick_entmax15"),
        "torch CE": ("torch", "cross_entropy"),
        "torch.compile CE": ("torch.compile", "cross_entropy"),
        "Liger CE": ("Liger", "cross_entropy"),
        "entmax sparsemax": ("entmax", "sparsemax"),
    },
    "proportions": {name.replace("_", " ").capitalize(): ("fitzpatrick", name) for name in OURS},
}
TABLES |= {
    f"{target}, tightness": {
        f"{omega}, c = {c}": (f"fitzpatrick, tightness {c}", f"fitzpatrick_{omega}")
        for omega in ("logistic", "sparsemax", "entmax15")
        for c in TIGHTNESSES
    }
    for target in ("labels", "proportions")
}


def table(path: Path) -> None:
    """Print the tables of the performance page, and the same from an idle GPU."""
    frame = pd.read_csv(path)
    keys = ["target", "library", "loss", "rows", "classes", "dtype"]
    found = frame[frame["suite"] == "shapes"].groupby(keys)[["median_ms", "idle_ms", "floor_ms"]]
    medians = found.median()
    for title, columns in TABLES.items():
        for column in ("median_ms", "idle_ms"):
            print(f"\n{title}, {column}\n\n| scores | {' | '.join(columns)} |")
            print("|---" * (len(columns) + 1) + "|")
            for shape in SHAPES:
                rows = [
                    medians.loc[(title.split(",")[0], *key, *shape)] for key in columns.values()
                ]
                cells = [f"{r[column]:.2f} ({r[column] / r['floor_ms']:.2f})" for r in rows]
                print(f"| {shape[0]} × {shape[1]} {shape[2]} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=Path, help="measure, and write this file")
    parser.add_argument("--seeds", type=int, default=1, help="draws of scores; tables show medians")
    parser.add_argument("--plot", type=Path, help="plot a file that --csv has written")
    parser.add_argument("--table", type=Path, help="print tables of a file that --csv has written")
    arguments = parser.parse_args()
    if not any((arguments.csv, arguments.plot, arguments.table)):
        parser.error("give --csv FILE to measure, or --plot FILE or --table FILE to show")
    if arguments.csv is not None:
        require_gpu()
        write_rows(arguments.csv, run(arguments.seeds))
    if arguments.plot is not None:
        plot(arguments.plot)
    if arguments.table is not None:
        table(arguments.table)


if __name__ == "__main__":
    main()
