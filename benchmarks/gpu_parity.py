"""Do the GPU kernels agree with the formulas of the core in float64? Prints a table; fails if not.

    python benchmarks/gpu_parity.py --jobs 16 --seeds 3
    python benchmarks/gpu_parity.py --omega head
    compute-sanitizer --error-exitcode 9 python benchmarks/gpu_parity.py --small

Every mode of every kernel is checked, at the tightness 0, 1/2, 1 and 2 (0.3 in float64, which
float32 would round). Inputs are drawn afresh in each run (the seeds are printed, ``--seed`` repeats
one): plain, peaked, flat, masked, tied and distant scores, class indices with an ignored row, and
proportions. An error
of a loss counts against its value plus a tenth of its gradient's 1-norm: at a tolerance of 1e-5
that is what a change of all scores by 1e-6 does to it; and plus 1e-3, for what rounding makes of a
loss of 0. An error of a gradient counts against its norm plus a twentieth of its scale, and beyond
what subnormal entries lose. Most of the time goes into compiling kernels, which ``--jobs`` spreads
over processes.
"""

import argparse
import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

import torch

from fitzpatrick import FitzpatrickLoss, get_loss, loss_names
from fitzpatrick.engines import find_kernel
from fitzpatrick.engines.triton import entry_launch, link_launch
from fitzpatrick.engines.triton import launch as engine
from fitzpatrick.engines.triton.specs import parse_kernel
from fitzpatrick.losses import ends, regularizers_by_name
from fitzpatrick.regularizers import Tsallis
from fitzpatrick.sets.isotonic import block_means, decreasing_blocks
from fitzpatrick.torch import functional

OMEGAS = {name: regularizers_by_name()[name] for name in ("logistic", "sparsemax", "entmax15")}
OMEGAS |= {f"entmax {alpha}": Tsallis(alpha) for alpha in (1.1, 1.3, 1.8)}
ENTRIES = ["squared", "sparse_sigmoid", "sigmoid", "poisson"]
LINK_SIZES = [3, 1000, 1024, 50257]
ALPHAS = [2.0, 1.5, 1.3, 1.05, 1.0]
HEAD_ROWS = 37
HEAD_SIZES = [64, 101, 1001, 5003, 8192, 50257]  # even and odd, narrow and wide
HEAD_PARTS = ["loss", "input", "weight", "bias"]
TIGHTNESSES = [0.0, 0.5, 1.0, 2.0]
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


class Worst:
    """The largest errors of some kinds, and where they were; NaN is larger than any number."""

    def __init__(self, kinds: int = 1) -> None:
        self.errors, self.where = [0.0] * kinds, [""] * kinds

    def see(self, where: str, *errors: float) -> None:
        """Remember errors that are larger than those before."""
        for i, error in enumerate(errors):
            if not error <= self.errors[i]:
                self.errors[i], self.where[i] = error, where

    def judge(self, title: str, *bounds: float) -> tuple[bool, str]:
        """Whether all are within their bounds, and a line that says so."""
        good = all(e <= bound for e, bound in zip(self.errors, bounds, strict=True))
        numbers = " ".join(f"{error:8.1e}" for error in self.errors)
        return good, f"{title} {numbers}  {'; '.join(self.where)}{'' if good else '  MISS'}"


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
        if kind == "tied":  # below a peak, just within reach of a sparse loss: power + tightness
            for row, reach in enumerate((1, 1.5, 2, 2.5, 3, 4)):
                x[row, 0] = reach - 2 ** (-10 if row % 2 else -8)
        if kind == "distant":
            x += 1000.0 if dtype.itemsize > 2 else 100.0
        labels[3] = -100
        scale = torch.rand(ROWS, dtype=torch.float64, **options)
        yield kind, x.to(dtype), labels, y.to(dtype), scale


def where_exact(x: Any) -> Any:
    """Small references come from the CPU, which compute-sanitizer does not slow down."""
    return "cpu" if x.numel() <= ROWS * SMALL_SIZES[-1] else x.device


def exact_scores(x: Any) -> Any:
    """Scores in float64, where the reference is computed."""
    return x.to(where_exact(x), torch.float64)


def solve(omega: str, tightness: float, x: Any, target: Any, scale: Any) -> tuple[Any, Any]:
    """Losses and gradients of the core in float64; ignored rows are zero."""
    loss = FitzpatrickLoss(OMEGAS[omega], tightness)
    scores, target, scale = exact_scores(x), target.to(where_exact(x)), scale.to(where_exact(x))
    if target.is_floating_point():
        solution = loss.solve(target.double(), scores)
    else:
        scale = scale * (target != -100)
        solution = loss.solve_labels(target.clamp(min=0), scores)
    value, gradient = solution.value() * scale, solution.gradient() * scale[:, None]
    return value.to(x.device), gradient.to(x.device)


def kernel_of(omega: str) -> str:
    """The name that the engine knows a regularizer by."""
    kernel = find_kernel("triton", OMEGAS[omega])
    assert kernel is not None
    return kernel


def errors(omega: str, tightness: float, x: Any, target: Any, scale: Any) -> tuple[float, float]:
    """Largest errors of losses and gradients over the rows; of the fused and the single kernels."""
    working = torch.float64 if x.dtype == torch.float64 else torch.float32
    given = x, target, scale.to(working), kernel_of(omega), tightness, -100
    value, gradient = engine.launch_loss(*given)
    pairs = [(value, gradient)]
    if x.shape[1] in (3, 1000, 50257):  # each way is a kernel to compile
        alone = engine.launch_loss(*given, True, False)[0], engine.launch_loss(*given, False)[1]
        pairs.append(alone)
    expected, rows = solve(omega, tightness, x, target, scale)
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
        difference = ((gradient.double() - rows).norm(dim=-1) - smallest) / norm
        of_gradient = max(of_gradient, difference.max().item())
    return of_value, of_gradient


def check_kernels(
    omega: str, tightness: float, dtype: torch.dtype, small: bool, seeds: tuple[int, ...]
) -> tuple[bool, str]:
    """Whether the errors of a loss in a dtype are within bounds, and a line for each target."""
    if dtype == torch.float64 and tightness == 0.5:
        tightness = 0.3  # which float32 would round
    fine, lines = True, []
    takes_rows = parse_kernel(kernel_of(omega))[0].takes_rows
    for target_name in ("labels", "proportions") if takes_rows else ("labels",):
        worst = Worst(2)
        for seed, k in itertools.product(seeds, SMALL_SIZES if small else SIZES[dtype]):
            generator = torch.Generator("cuda").manual_seed(seed)
            for kind, x, labels, y, scale in draws(k, dtype, generator):
                if dtype == torch.float16 and kind == "peaked":
                    continue  # losses in the hundreds, times 1e3 scores, overflow
                target = labels if target_name == "labels" else y
                worst.see(f"{kind} {k}", *errors(omega, tightness, x, target, scale))
        title = f"{omega:10s} {tightness:4.2f} {target_name:12s} {str(dtype)[6:]:9s}"
        good, line = worst.judge(title, *TOLERANCES[dtype])
        fine = fine and good
        lines.append(line)
    return fine, "\n".join(lines)


def check_training(omega: str, compiled: bool, seed: int) -> tuple[bool, str]:
    """Backward passes against the reference engine, torch.compile, and gradcheck in float64."""
    generator = torch.Generator("cuda").manual_seed(seed)
    x = torch.randn(300, 1000, device="cuda", generator=generator).requires_grad_()
    labels = torch.randint(0, 1000, (300,), device="cuda", generator=generator)
    labels[::7] = -100
    few = torch.randn(3, 4, device="cuda", dtype=torch.float64, generator=generator)
    y = torch.softmax(few.flip(0), -1)
    few.requires_grad_()
    for name in ends(omega):
        loss = getattr(functional, f"{name}_loss")
        (expected,) = torch.autograd.grad(7 * loss(x, labels, engine="reference"), x)
        ways = [loss, torch.compile(loss, fullgraph=True)] if compiled else [loss]
        for way in ways:
            (gradient,) = torch.autograd.grad(7 * way(x, labels), x)
            torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-8)
        for target in (labels[1:4] % 4, y):
            forced = functools.partial(loss, target=target, engine="triton")
            torch.autograd.gradcheck(forced, few)
    return True, f"{omega:10s} training, {'torch.compile, ' if compiled else ''}gradcheck: fine"


def check_offsets(omega: str, seed: int) -> tuple[bool, str]:
    """More entries than 32 bits can count."""
    generator = torch.Generator("cuda").manual_seed(seed)
    n, k = 70_000, 32_768
    x = torch.zeros(n, k, device="cuda", dtype=torch.bfloat16)
    x[-1] = torch.randn(k, device="cuda", generator=generator)
    labels = torch.full((n,), k - 1, device="cuda")
    kernel = kernel_of(omega)
    value, gradient = engine.launch_loss(x, labels, 1, kernel, 0.5, -100)
    alone = engine.launch_loss(x[-1:], labels[-1:], 1, kernel, 0.5, -100)
    torch.testing.assert_close(value[-1:], alone[0])
    torch.testing.assert_close(gradient[-1:], alone[1])
    return True, f"{omega:10s} offsets beyond 2^31 ({n} × {k}): fine"


def check_isotonic(
    name: str, dtype: torch.dtype, small: bool, seeds: tuple[int, ...]
) -> tuple[bool, str]:
    """Isotonic regression of rows, and the blocks of the entropy, next to NumPy's."""
    worst = Worst()
    sizes = (2, 33) if small else (2, 100, 3001)
    for seed, k, scale in itertools.product(seeds, sizes, (1.0, 1e4)):
        generator = torch.Generator("cuda").manual_seed(seed)
        x, w = scale * torch.randn(2, 99, k, device="cuda", dtype=dtype, generator=generator)
        ordered, w = (part.sort(-1, descending=True).values for part in (x, w))
        for rows, weights in ((x, None), (x.round(), None), (ordered, w)):
            given = [
                None if part is None else part.double().cpu().numpy() for part in (rows, weights)
            ]
            means = block_means(rows, decreasing_blocks(rows, weights))
            expected = block_means(given[0], decreasing_blocks(*given))
            error = (means.double().cpu() - torch.from_numpy(expected)).abs().max() / scale
            worst.see(f"{k} entries of scale {scale:g}, seed {seed}", float(error))
    return worst.judge(f"{name} {dtype}", 64 * torch.finfo(dtype).eps)


def check_links(
    name: str, dtype: torch.dtype, alpha: float, small: bool, seeds: tuple[int, ...]
) -> Any:
    """Links, masked or not, in rows or in columns, and their derivatives in scores and in α."""
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5}.get(dtype, 8e-3)
    worst = Worst()
    for seed, k in itertools.product(seeds, SMALL_SIZES if small else LINK_SIZES):
        generator = torch.Generator("cuda").manual_seed(seed)
        omega = Tsallis(alpha)
        alphas = torch.full((ROWS,), alpha, device="cuda", dtype=torch.float64)
        for kind, x, labels, _, _ in draws(k, dtype, generator):
            keep = torch.rand(ROWS, k, device="cuda", generator=generator) < 0.7
            keep[torch.arange(ROWS), labels.clamp(min=0)] = True
            keep[2] = False
            mask = link_launch.RowMask(keep.view(torch.uint8), ROWS, 1, 0, 0, k, 1)
            for way, p in {
                "rows": link_launch.link(x, alpha),
                "masked": link_launch.link(x, alpha, mask),
                "columns": link_launch.link(x.T[None], alpha)[0].T,
                "α by rows": link_launch.link(x, alphas),
            }.items():
                scores = exact_scores(x)
                if way == "masked":
                    scores = scores.masked_fill(~keep.to(scores.device), -torch.inf)
                exact = omega.solve_link(scores).to("cuda")
                if way == "masked":
                    exact[2] = 0
                worst.see(f"{way}, {kind} {k}", float((p.double() - exact).abs().max()))
            v = torch.randn(x.shape, device="cuda", generator=generator).to(dtype)
            p = link_launch.link(x, alpha)
            slopes = torch.where(p > 0, p.double() ** (2 - alpha), 0.0)
            mean = (slopes * v).sum(-1, keepdim=True) / slopes.sum(-1, keepdim=True)
            rows, _ = link_launch.link_gradient(p, v, alpha)
            error = float((rows.double() - slopes * (v - mean)).abs().max()) / 4
            worst.see(f"gradient, {kind} {k}", error)
    return worst.judge(f"{name:6s} α = {alpha:4.2f} {str(dtype)[6:]:9s}", tolerance)


def check_entries(omega: str, dtype: torch.dtype, seeds: tuple[int, ...]) -> Any:
    """Entry-wise losses at soft, hard and mixed targets, weighted or not."""
    worst = Worst(2)
    for seed, tightness in itertools.product(seeds, [*TIGHTNESSES, 10.0]):
        generator = torch.Generator("cuda").manual_seed(seed)
        loss = FitzpatrickLoss(regularizers_by_name()[omega], tightness)
        # exponentials of more would overflow in half precision: e^11 does, five deviations of 2
        largest = 2.0 if dtype == torch.float16 else 10.0
        for size, kind in itertools.product((0.01, 1.0, largest), ("soft", "hard", "mixed")):
            options: dict[str, Any] = {"device": "cuda", "generator": generator}
            x = (size * torch.randn(300, 37, dtype=torch.float64, **options)).to(dtype)
            y = torch.rand(300, 37, dtype=torch.float64, **options)
            hard = (y > 0.5).double()
            y = {"soft": y, "hard": hard, "mixed": torch.where(y < 0.3, hard, y**9)}[kind].to(dtype)
            weight = torch.rand(37, **options).to(dtype).expand(300, 37)
            kernel = find_kernel("triton", loss.regularizer) or ""
            call = entry_launch.EntryCall(kernel, tightness, is_summed=False)
            value, gradient = entry_launch.entry_loss(x, y, weight, None, 3, call)
            solution = loss.solve(y.double()[..., None], x.double()[..., None])
            scale = weight.double() / 3
            expected, rows = solution.value() * scale, solution.gradient()[..., 0] * scale
            size_of = expected.abs() + 0.1 * rows.abs() + 1e-3
            found = float(((value.double() - expected).abs() / size_of).max())
            off = float(((gradient.double() - rows).abs() / (rows.abs() + 0.05)).max())
            worst.see(f"{kind} {size}, c = {tightness}", found, off)
    return worst.judge(f"{omega:14s} {str(dtype)[6:]:9s}", *TOLERANCES[dtype])


def head_options(k: int, dtype: torch.dtype, generator: torch.Generator) -> Iterator[Any]:
    """(target, options) of a linear loss."""
    options: dict[str, Any] = {"device": "cuda", "generator": generator}
    labels = torch.randint(0, k, (HEAD_ROWS,), **options)
    some = labels.masked_fill(torch.rand(HEAD_ROWS, **options) < 0.3, -100)
    y = torch.softmax(2 * torch.randn(HEAD_ROWS, k, dtype=torch.float64, **options), -1).to(dtype)
    bias, weight = torch.randn(k, **options).to(dtype), torch.rand(k, **options) + 0.1
    yield labels, {}
    yield some, {"linear_bias": bias, "chunk_size": 5}
    yield some, {"reduction": "none", "chunk_size": 7}
    yield some, {"weight": weight, "label_smoothing": 0.1, "chunk_size": 16}
    yield labels, {"label_smoothing": 0.1, "reduction": "sum", "accumulate_dtype": torch.float32}
    yield y, {"linear_bias": bias}
    yield y, {"weight": weight, "reduction": "none", "chunk_size": 5}


def check_head(name: str, dtype: torch.dtype, small: bool, seed: int) -> tuple[bool, str]:
    """A linear loss against that of all scores: its errors are at most twice as large."""
    worst = Worst()
    eps = torch.finfo(dtype).eps
    for k in HEAD_SIZES[:2] if small else HEAD_SIZES:
        generator = torch.Generator("cuda").manual_seed(seed)
        x = torch.randn(HEAD_ROWS, 64, device="cuda", generator=generator)
        w = torch.randn(k, 64, device="cuda", generator=generator) / 8
        for target, options in head_options(k, dtype, generator):
            if dtype == torch.float64:
                options.pop("accumulate_dtype", None)
            found = head_gradients(name, x.to(dtype), w.to(dtype), target, options, True)
            plain = head_gradients(name, x.to(dtype), w.to(dtype), target, options, False)
            options = {key: _double(value) for key, value in options.items()}
            wide = x.to(dtype).double(), w.to(dtype).double(), _double(target)
            exact = head_gradients(name, *wide, options, False)
            for part, (ours, theirs, value) in enumerate(zip(found, plain, exact, strict=True)):
                # units of rounding, where the other one happens to be exact; in float64 it always
                # is, and sums over k classes in another order are off by some
                units = 4 + k**0.5 if dtype == torch.float64 else 4
                scale = value.norm() + 1e-6
                bound = 2 * (theirs.double() - value).norm() / scale + units * eps
                ratio = float((ours.double() - value).norm() / scale / bound)
                worst.see(f"{k}, {sorted(options)}, {HEAD_PARTS[part]}", ratio)
    return worst.judge(f"head {name:22s} {str(dtype)[6:]:9s} of its bound", 1.0)


def _double(x: Any) -> Any:
    is_float = isinstance(x, torch.Tensor) and x.is_floating_point()
    return x.double() if is_float else x


def head_gradients(name: str, x: Any, w: Any, target: Any, given: Any, is_head: bool) -> list[Any]:
    """The loss and its gradients in input, weight and bias, by a linear loss or by all scores."""
    options = dict(given)
    bias = options.pop("linear_bias", None)
    leaves = [t.detach().requires_grad_() for t in (x, w, bias) if t is not None]
    bias = None if bias is None else leaves[2]
    if is_head:
        loss = getattr(functional, f"linear_{name}_loss")(
            leaves[0], leaves[1], target, linear_bias=bias, **options
        )
    else:
        options = {k: v for k, v in options.items() if k not in ("chunk_size", "accumulate_dtype")}
        scores = torch.nn.functional.linear(leaves[0], leaves[1], bias)
        loss = getattr(functional, f"{name}_loss")(scores, target, **options)
    upstream = torch.linspace(0.5, 2, loss.numel(), device="cuda", dtype=loss.dtype)
    total = (loss * upstream.reshape(loss.shape)).sum()
    return [loss.detach(), *torch.autograd.grad(total, leaves)]


def attempt(check: Callable[..., tuple[bool, str]], omega: str, *rest: Any) -> tuple[bool, str]:
    """The result of a check, or how it failed."""
    torch.set_num_threads(1)  # checks run side by side
    try:
        return check(omega, *rest)
    except (AssertionError, RuntimeError) as error:
        return False, f"{omega:10s} {check.__name__}: {error}  MISS"


def main() -> None:
    """Check, print, and exit with 1 on a miss."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="small sizes, for compute-sanitizer")
    choices = [*OMEGAS, *ENTRIES, "isotonic", "links", "head"]
    parser.add_argument("--omega", choices=choices, help="this one alone")
    parser.add_argument("--seed", type=int, help="first seed of the inputs; drawn if not given")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this check needs a CUDA device")
    seed = torch.seed() % 2**31 if arguments.seed is None else arguments.seed
    seeds = tuple(range(seed, seed + arguments.seeds))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, seeds {seeds}")
    print("omega, tightness, target, dtype, errors of values and gradients, worst at")
    small = arguments.small
    checks: list[tuple[Any, ...]] = []
    if arguments.omega in (None, "isotonic"):
        dtypes = torch.float32, torch.float64
        checks += [(check_isotonic, "isotonic", dtype, small, seeds) for dtype in dtypes]
    if arguments.omega in (None, "links"):
        cases = itertools.product(TOLERANCES, ALPHAS)
        checks += [(check_links, "links", dtype, alpha, small, seeds) for dtype, alpha in cases]
    if arguments.omega in (None, "head"):
        losses = [name for name in loss_names() if get_loss(name).regularizer.domain.has_labels]
        checks += [
            (check_head, name, dtype, small, seed)
            for name, dtype in itertools.product(losses, TOLERANCES)
            # in half precision scores tie, and the perceptron's gradient jumps there
            if name != "perceptron" or dtype.itemsize > 2
        ]
    for name in ENTRIES if arguments.omega is None else [arguments.omega]:
        if name in ENTRIES:
            checks += [(check_entries, name, dtype, seeds) for dtype in TOLERANCES]
    for omega in OMEGAS if arguments.omega is None else [arguments.omega]:
        if omega not in OMEGAS:
            continue
        checks += [
            (check_kernels, omega, tightness, dtype, small, seeds)
            for dtype, tightness in itertools.product(TOLERANCES, TIGHTNESSES)
            # what a kernel reads and writes depends on neither a larger tightness nor this dtype
            if not small or (tightness <= 0.5 and dtype != torch.float16)
        ]
        if omega in regularizers_by_name():
            checks.append((check_training, omega, not small, seed))
        if not small:
            checks.append((check_offsets, omega, seed))
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
