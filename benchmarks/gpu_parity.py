"""Do the GPU kernels agree with the formulas of the core in float64? Prints a table; fails if not.

    python benchmarks/gpu_parity.py --jobs 16
    compute-sanitizer --error-exitcode 9 python benchmarks/gpu_parity.py --small

Inputs are drawn afresh in each run (the seed is printed, ``--seed`` repeats one): plain, peaked,
flat, masked, tied and distant scores, class indices with an ignored row, and proportions. An error
of a loss counts against its value plus a tenth of its gradient's 1-norm: at a tolerance of 1e-5
that is what a change of all scores by 1e-6 does to it; and plus 1e-3, for what rounding makes of a
loss of 0. An error of a gradient counts against its norm plus a twentieth of its scale, and beyond
what subnormal entries lose. Most of the time goes into compiling kernels, which ``--jobs`` spreads
over processes.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

import torch

from fitzpatrick.engines import triton as engine
from fitzpatrick.torch import _reference as reference
from fitzpatrick.torch import functional

LOSSES = [
    prefix + name
    for name in ("logistic", "sparsemax", "entmax15")
    for prefix in ("", "fitzpatrick_")
]
SIZES = {
    torch.float64: [3, 1000, 50257],
    torch.float32: [2, 3, 64, 1000, 1024, 50257, 131072, 200003],
    torch.bfloat16: [2, 3, 1000, 1024, 50257, 131072, 200003],
    torch.float16: [3, 50257],
}
SMALL_SIZES = [3, 777, 5001]
# of losses and of gradients; half precision rounds the gradient that it returns
TOLERANCES = {
    torch.float64: (1e-11, 1e-11),
    torch.float32: (1e-5, 1e-5),
    torch.bfloat16: (1e-4, 4e-3),
    torch.float16: (1e-4, 1e-3),
}
ROWS = 7


def draws(k: int, dtype: torch.dtype, generator: torch.Generator) -> Iterator[tuple[Any, ...]]:
    """(kind, scores, labels, proportions, scale)."""
    for kind in ("plain", "peaked", "flat", "masked", "tied", "distant"):
        options: dict[str, Any] = {"device": "cuda", "generator": generator}
        x = torch.randn(ROWS, k, dtype=torch.float64, **options)
        x *= {"peaked": 30.0, "flat": 1e-3, "masked": 2.0, "tied": 0.0}.get(kind, 1.0)
        y = torch.softmax(2 * torch.randn(ROWS, k, dtype=torch.float64, **options), -1)
        labels = torch.randint(0, k, (ROWS,), **options)
        if kind == "masked":
            x[:, 1::2] = -torch.inf
            y[:, 1::2] = 0
            y /= y.sum(-1, keepdim=True)
            labels -= labels % 2
        if kind == "tied":  # below a peak, just within reach of a sparse loss
            for row, reach in enumerate((1, 2, 3)):
                x[2 * row, 0] = reach - 2**-10
                x[2 * row + 1, 0] = reach - 2**-6
        if kind == "distant":
            x += 1000.0 if dtype.itemsize > 2 else 100.0
        labels[3] = -100
        scale = torch.rand(ROWS, dtype=torch.float64, **options)
        yield kind, x.to(dtype), labels, y.to(dtype), scale


def errors(name: str, x: Any, target: Any, scale: Any) -> tuple[float, float]:
    """Largest errors of losses and gradients over the rows; of the fused and the single kernels."""
    working = torch.float64 if x.dtype == torch.float64 else torch.float32
    given = x, target, scale.to(working), name, -100
    value, gradient = engine.value_and_gradient(*given)
    pairs = [(value, gradient)]
    if x.shape[1] in (3, 1000, 50257):  # each way is a kernel to compile
        pairs.append((engine.value(*given), engine.gradient(*given)))
    exact = target.double() if target.is_floating_point() else target
    expected, rows = reference.value_and_gradient(x.double(), exact, scale, name, -100)
    size = expected.abs() + 0.1 * rows.abs().sum(-1) + 1e-3 * scale
    norm = rows.norm(dim=-1) + 0.05 * scale
    # what entries below the normal numbers of a dtype lose
    smallest = torch.finfo(x.dtype).smallest_normal * torch.finfo(x.dtype).eps * x.shape[1] ** 0.5
    of_value = of_gradient = 0.0
    for value, gradient in pairs:
        if not torch.equal(value.isinf(), expected.isinf()) or gradient.isnan().any():
            return torch.inf, torch.inf
        finite = torch.where(expected.isinf(), 0.0, (value.double() - expected).abs() / size)
        of_value = max(of_value, finite.max().item())
        difference = (gradient.double() - rows).norm(dim=-1) - smallest
        difference = difference / norm
        of_gradient = max(of_gradient, difference.max().item())
    return of_value, of_gradient


def check_kernels(name: str, dtype: torch.dtype, small: bool, seed: int) -> tuple[bool, str]:
    """Whether the errors of a loss in a dtype are within bounds, and a line for each target."""
    generator = torch.Generator("cuda").manual_seed(seed)
    of_value, of_gradient = TOLERANCES[dtype]
    fine, lines = True, []
    for target_name in ("labels", "proportions"):
        worst, where = [0.0, 0.0], ["", ""]
        for k in SMALL_SIZES if small else SIZES[dtype]:
            for kind, x, labels, y, scale in draws(k, dtype, generator):
                if dtype == torch.float16 and kind == "peaked":
                    continue  # losses in the hundreds, times 1e3 scores, overflow
                target = labels if target_name == "labels" else y
                for i, found in enumerate(errors(name, x, target, scale)):
                    if found > worst[i]:
                        worst[i], where[i] = found, f"{kind} {k}"
        good = worst[0] <= of_value and worst[1] <= of_gradient
        fine = fine and good
        lines.append(
            f"{name:22s} {target_name:12s} {str(dtype)[6:]:9s} {worst[0]:8.1e} "
            f"{worst[1]:9.1e}  {where[0]}; {where[1]}{'' if good else '  MISS'}"
        )
    return fine, "\n".join(lines)


def check_training(name: str, compiled: bool, seed: int) -> tuple[bool, str]:
    """Backward passes against the reference engine, torch.compile, and gradcheck in float64."""
    generator = torch.Generator("cuda").manual_seed(seed)
    x = torch.randn(300, 1000, device="cuda", generator=generator).requires_grad_()
    labels = torch.randint(0, 1000, (300,), device="cuda", generator=generator)
    labels[::7] = -100
    few = torch.randn(3, 4, device="cuda", dtype=torch.float64, generator=generator)
    y = torch.softmax(few.flip(0), -1)
    few.requires_grad_()
    loss = getattr(functional, f"{name}_loss")
    (expected,) = torch.autograd.grad(7 * loss(x, labels, engine="reference"), x)
    ways = [loss, torch.compile(loss, fullgraph=True)] if compiled else [loss]
    for way in ways:
        (gradient,) = torch.autograd.grad(7 * way(x, labels), x)
        torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-8)
    for target in (labels[1:4] % 4, y):
        torch.autograd.gradcheck(lambda z, y=target: loss(z, y, engine="triton"), few)
    return True, f"{name:22s} training, {'torch.compile, ' if compiled else ''}gradcheck: fine"


def check_offsets(name: str, seed: int) -> tuple[bool, str]:
    """More entries than 32 bits can count."""
    generator = torch.Generator("cuda").manual_seed(seed)
    n, k = 70_000, 32_768
    x = torch.zeros(n, k, device="cuda", dtype=torch.bfloat16)
    x[-1] = torch.randn(k, device="cuda", generator=generator)
    labels = torch.full((n,), k - 1, device="cuda")
    value, gradient = engine.value_and_gradient(x, labels, 1, name, -100)
    alone = engine.value_and_gradient(x[-1:], labels[-1:], 1, name, -100)
    torch.testing.assert_close(value[-1:], alone[0])
    torch.testing.assert_close(gradient[-1:], alone[1])
    return True, f"{name:22s} offsets beyond 2^31 ({n} × {k}): fine"


def attempt(check: Callable[..., tuple[bool, str]], name: str, *rest: Any) -> tuple[bool, str]:
    """The result of a check, or how it failed."""
    try:
        return check(name, *rest)
    except (AssertionError, RuntimeError) as error:
        return False, f"{name:22s} {check.__name__}: {error}  MISS"


def main() -> None:
    """Check, print, and exit with 1 on a miss."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="small sizes, for compute-sanitizer")
    parser.add_argument("--loss", choices=LOSSES, help="this one alone")
    parser.add_argument("--seed", type=int, help="of the inputs; drawn if not given")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this check needs a CUDA device")
    seed = torch.seed() % 2**31 if arguments.seed is None else arguments.seed
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, seed {seed}")
    print(f"{'loss':22s} {'target':12s} {'dtype':9s} {'value':>8s} {'gradient':>9s}  worst at")
    names = LOSSES if arguments.loss is None else [arguments.loss]
    small = arguments.small
    checks: list[tuple[Any, ...]] = []
    for name in sorted(names, key=lambda name: name != "fitzpatrick_logistic"):  # slow to compile
        checks += [(check_kernels, name, dtype, small, seed) for dtype in TOLERANCES]
        checks.append((check_training, name, not small, seed))
        if not small:
            checks.append((check_offsets, name, seed))
    fine = True
    if arguments.jobs == 1:
        results = (attempt(*check) for check in checks)
    else:
        pool = ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn"))
        results = (
            done.result() for done in as_completed(pool.submit(attempt, *check) for check in checks)
        )
    for good, lines in results:
        fine = fine and good
        print(lines, flush=True)
    print("all within bounds" if fine else "there are misses")
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
