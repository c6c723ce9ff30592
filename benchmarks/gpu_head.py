"""A fused linear layer and loss on a GPU, forward and backward, compared with other libraries.

Times are multiples of the three necessary matrix products, X Wᵀ, G W and Gᵀ X, by cuBLAS in the
same run. If the number of classes is odd, the weight is padded to a multiple of 64 classes. Times
are medians behind other work of the GPU. Memory is the peak of a step beyond the gradients of input
and weight.

    python benchmarks/gpu_head.py --csv benchmarks/results/gpu_head.csv
    python benchmarks/gpu_head.py --shapes 0 2 --quick
    python benchmarks/gpu_head.py --check                # every contender once, on a CPU, too
    python benchmarks/gpu_head.py --chunks 512 1024 2048 # times by chunk size

Contenders that are not installed are left out by name: Liger (``liger_kernel``), cut-cross-entropy
(``cut_cross_entropy``), and PyTorch's ``linear_cross_entropy``, which exists since version 2.13.
"""

import argparse
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from _gpu import machine, measure, peer, print_table, require_gpu, version, write_rows
from torch import Tensor

from fitzpatrick.torch import functional

SHAPES = [
    (8192, 4096, 128256),
    (8192, 2048, 32768),
    (16384, 768, 50257),
    (2048, 4096, 128256),
    (16384, 2048, 151936),
]
TINY = (64, 32, 101)
# for the error of the gradient: many rows of few classes, in 8 and in 16 chunks
DIGITS = (4096, 512, 8192)
OURS = [
    "fitzpatrick_logistic",
    "logistic",
    "fitzpatrick_sparsemax",
    "sparsemax",
    "fitzpatrick_entmax15",
    "entmax15",
]
AT_PROPORTIONS = ["fitzpatrick_logistic", "logistic"]
PRODUCTS = "products"

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def unfused(x: Tensor, weight: Tensor, target: Tensor) -> Tensor:
    """The usual code."""
    return torch.nn.functional.cross_entropy(torch.nn.functional.linear(x, weight), target)


def _liger(module: Any, x: Tensor, weight: Tensor, target: Tensor) -> Tensor:
    loss: Tensor = module.LigerFusedLinearCrossEntropyLoss()(weight, x, target)
    return loss


def torch_peers() -> dict[str, Loss]:
    """PyTorch: a layer and a loss, and since version 2.13 a fused function."""
    found: dict[str, Loss] = {"eager": unfused}
    if hasattr(torch.nn, "LinearCrossEntropyOptions"):
        chunked = torch.nn.LinearCrossEntropyOptions()
        fused = torch.nn.functional.linear_cross_entropy
        found["torch"] = functools.partial(fused, options=chunked)
    return found


def peers(with_compile: bool) -> dict[str, Loss]:
    """Other libraries that are installed."""
    found = torch_peers()
    if with_compile:
        found["compiled"] = torch.compile(unfused, dynamic=False)
    liger = peer("liger_kernel.transformers.fused_linear_cross_entropy")
    if liger is not None:
        found["liger"] = functools.partial(_liger, liger)
    cut = peer("cut_cross_entropy")
    if cut is not None:
        found["cut"] = cut.linear_cross_entropy
    return found


def ours(names: list[str], **options: Any) -> dict[str, Loss]:
    """Losses of this package."""
    return {
        name: functools.partial(getattr(functional, f"linear_{name}_loss"), **options)
        for name in names
    }


def inputs(
    shape: tuple[int, int, int], device: str, dtype: torch.dtype, *, proportions: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Features, weight and targets; scores are of size one."""
    n, h, k = shape
    generator = torch.Generator(device).manual_seed(0)
    options: dict[str, Any] = {"device": device, "generator": generator}
    x = torch.randn(n, h, **options).to(dtype)
    weight = (torch.randn(k, h, **options) / h**0.5).to(dtype)
    if not proportions:
        return x, weight, torch.randint(0, k, (n,), **options)
    y = torch.empty(n, k, dtype=dtype, device=device)
    for start in range(0, n, 1024):
        part = y[start : start + 1024]
        part.copy_(torch.softmax(2 * torch.randn(part.shape, **options), -1))
    return x, weight, y


def step(loss: Loss, x: Tensor, weight: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """The loss, and the gradients of input and weight."""
    leaves = x.detach().requires_grad_(), weight.detach().requires_grad_()
    value = loss(*leaves, target)
    return value.detach(), *torch.autograd.grad(value, leaves)


def products(x: Tensor, weight: Tensor) -> Callable[[], None]:
    """The three matrix products into buffers."""
    classes = weight.shape[0]
    if classes * weight.element_size() % 16:
        weight = torch.nn.functional.pad(weight, (0, 0, 0, -classes % 64))
    scores = x.new_empty(len(x), len(weight))
    by_x, by_weight = torch.empty_like(x), torch.empty_like(weight)

    def run() -> None:
        torch.mm(x, weight.T, out=scores)
        torch.mm(scores, weight, out=by_x)
        torch.mm(scores.T, x, out=by_weight)

    return run


def measure_shape(
    shape: tuple[int, int, int], contenders: dict[str, Loss], target: str, budget_ms: int
) -> Iterator[dict[str, Any]]:
    """A line for each contender, the products first."""
    n, h, k = shape
    x, weight, y = inputs(shape, "cuda", torch.bfloat16, proportions=target == "proportions")
    gradients = (x.numel() + weight.numel()) * x.element_size() / 2**20
    floor = measure(products(x, weight), budget_ms)
    floor["peak_extra_mib"] = gradients
    results = {PRODUCTS: floor}
    for name, loss in contenders.items():
        try:
            results[name] = measure(functools.partial(step, loss, x, weight, y), budget_ms)
        except (RuntimeError, torch.OutOfMemoryError) as error:
            print(f"{name} failed at {shape}: {str(error).splitlines()[0]}", flush=True)
        torch.cuda.empty_cache()
    for name, found in results.items():
        line = {"rows": n, "features": h, "classes": k, "target": target, "contender": name}
        line |= found
        line["times_products"] = round(found["median_ms"] / floor["median_ms"], 3)
        line["beyond_gradients_mib"] = round(found["peak_extra_mib"] - gradients, 1)
        print(
            f"{shape!s:24s} {target:12s} {name:24s} {found['median_ms']:9.3f} ms "
            f"{line['times_products']:6.2f} x {line['beyond_gradients_mib']:8.1f} MiB",
            flush=True,
        )
        yield line | machine()


def errors_of_weight(device: str, shape: tuple[int, int, int], with_compile: bool) -> None:
    """The error of the weight's gradient against float64, relative, for each contender."""
    n = shape[0]
    x, weight, labels = inputs(shape, device, torch.bfloat16)
    exact = step(unfused, x.double(), weight.double(), labels)[2]
    contenders = peers(with_compile)
    for chunks in (1, 8, 16):
        some = ours(["logistic"], chunk_size=n // chunks)
        contenders |= {f"{name}, {chunks} chunks": loss for name, loss in some.items()}
    in_single = ours(["logistic"], chunk_size=n // 8, accumulate_dtype=torch.float32)
    contenders["logistic, 8 chunks in float32"] = in_single["logistic"]
    print(f"relative error of the gradient of the weight, {shape}")
    for name, loss in contenders.items():
        try:
            found = step(loss, x, weight, labels)[2]
        except (RuntimeError, NotImplementedError) as error:
            print(f"{name} failed: {str(error).splitlines()[0]}")
            continue
        error_of = float((found.double() - exact).norm() / exact.norm())
        print(f"{name:32s} {error_of:.3e}")


def check(device: str) -> None:
    """Run every contender once at a tiny size; raise if a gradient is not finite."""
    contenders = peers(with_compile=False) | ours(OURS)
    for proportions in (False, True):
        given = inputs(TINY, device, torch.bfloat16, proportions=proportions)
        for name, loss in (ours(AT_PROPORTIONS) if proportions else contenders).items():
            if device == "cpu" and name in ("liger", "cut"):
                continue
            for tensor in step(loss, *given):
                if not tensor.isfinite().all():
                    raise RuntimeError(f"{name} is not finite")
            print(f"{name}: fine")
    products(*given[:2])()
    errors_of_weight(device, (64, 16, 40), with_compile=False)


def main() -> None:
    """Measure, and print a table for each kind of target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=Path, help="write the table to this file")
    parser.add_argument("--shapes", type=int, nargs="+", choices=range(len(SHAPES)), default=None)
    parser.add_argument("--quick", action="store_true", help="one loss of ours, no compiled peer")
    parser.add_argument("--only-ours", action="store_true", help="no peers")
    parser.add_argument("--chunks", type=int, nargs="+", help="chunk sizes instead of contenders")
    parser.add_argument("--budget-ms", type=int, default=150, help="GPU time of a measurement")
    parser.add_argument("--check", action="store_true", help="run everything once, at a tiny size")
    arguments = parser.parse_args()
    if arguments.check:
        check("cuda" if torch.cuda.is_available() else "cpu")
        return
    require_gpu()
    shapes = [SHAPES[i] for i in arguments.shapes or range(len(SHAPES))]
    at_labels = {} if arguments.only_ours or arguments.chunks else peers(not arguments.quick)
    at_proportions: dict[str, Loss] = {}
    if arguments.chunks:
        for size in arguments.chunks:
            some = ours(["fitzpatrick_logistic"], chunk_size=size)
            at_labels |= {f"{name}, {size} rows": loss for name, loss in some.items()}
    else:
        at_labels |= ours(OURS[:1] if arguments.quick else OURS)
        in_single = ours(OURS[:1], accumulate_dtype=torch.float32)
        at_labels |= {f"{name}, float32 sums": loss for name, loss in in_single.items()}
        at_proportions = {} if arguments.quick else ours(AT_PROPORTIONS)
    print({**machine(), **{name: version(name) for name in ("liger_kernel", "cut_cross_entropy")}})
    rows: list[dict[str, Any]] = []
    for shape in shapes:
        rows += measure_shape(shape, at_labels, "labels", arguments.budget_ms)
        if at_proportions:
            rows += measure_shape(shape, at_proportions, "proportions", arguments.budget_ms)
    rows = write_rows(arguments.csv, rows)
    for target in dict.fromkeys(row["target"] for row in rows):
        some_rows = [row for row in rows if row["target"] == target]
        print(f"\n{target}: times of the products, and MiB beyond the gradients")
        keys = ["rows", "features", "classes"]
        print_table(some_rows, keys, "contender", "times_products")
        print_table(some_rows, keys, "contender", "beyond_gradients_mib")
    if not arguments.chunks:
        errors_of_weight("cuda", DIGITS, with_compile=not arguments.quick)


if __name__ == "__main__":
    main()
