"""Entmax attention against PyTorch's softmax attention and AdaSplash, in one run.

Forward and backward of attention, causal but for the shortest. ``live`` is the share of blocks of
64 × 64 scores with a weight that is not zero; ``ratio`` is the time over that of PyTorch's own
attention. On a GPU times are medians behind other work, in bfloat16; memory is the peak beyond
inputs, outputs and gradients. Without one, small sizes are timed on one thread of the CPU, against
entmax weights times values, all held at once.

    python benchmarks/gpu_attention.py --csv benchmarks/results/gpu_attention.csv
    python benchmarks/gpu_attention.py --check 40    # kernels of a width against float64, on a GPU
    python benchmarks/gpu_attention.py --limits      # memory, a new length, decoding, on a GPU

AdaSplash (``adasplash``), which tunes itself for half a minute at each length, is left out by name
if it is not installed.
"""

import argparse
import functools
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from _gpu import machine, measure, peer, print_table, write_rows
from torch.nn.attention import SDPBackend, sdpa_kernel

from fitzpatrick.torch import KeyPages
from fitzpatrick.torch import functional as F  # noqa: N812

Attention = Callable[[Any, Any, Any], Any]
Step = Callable[[], Any]

# heads, length, width, and what multiplies the queries: the larger, the sparser
GPU_SIZES = [(32, 1100, 64, 1), (32, 4096, 64, 1), (32, 4096, 64, 30), (16, 16384, 64, 1)]
GPU_SIZES += [(16, 16384, 64, 8), (16, 16384, 64, 30), (8, 32768, 64, 8), (8, 65536, 64, 30)]
GPU_SIZES += [(32, 4096, 128, 4)]
FULL_LENGTH = 1100  # without causality
ADASPLASH_LENGTHS = (4096, 16384)
HALF_AND_SINGLE = (torch.float32, torch.bfloat16, torch.float16)
CPU_SIZES = [(4, 256, 64, 1), (4, 1024, 64, 1), (4, 4096, 64, 1)]


def softmax_attention(backend: SDPBackend, is_causal: bool, q: Any, k: Any, v: Any) -> Any:
    """PyTorch's own, by one of its kernels."""
    with sdpa_kernel(backend):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)


def contenders(length: int) -> Iterator[tuple[str, Attention]]:
    """What is compared; the first is what the others are multiples of."""
    is_causal = length != FULL_LENGTH
    softmax = functools.partial(functools.partial, softmax_attention)
    yield "PyTorch flash", softmax(SDPBackend.FLASH_ATTENTION, is_causal)
    ours = functools.partial(F.entmax_attention, is_causal=is_causal)
    yield "fitzpatrick entmax-1.5", ours
    yield "fitzpatrick sparsemax", functools.partial(ours, alpha=2.0)
    if not torch.cuda.is_available():
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        dense = lambda q, k, v: F.entmax15(q @ k.mT / q.shape[-1] ** 0.5, mask=mask) @ v  # noqa: E731
        yield "entmax-1.5, all scores", dense
        return
    yield "cuDNN flash", softmax(SDPBackend.CUDNN_ATTENTION, is_causal)
    if (adasplash := peer("adasplash")) is None:
        return
    if length in ADASPLASH_LENGTHS:
        yield "AdaSplash-2", adasplash.adasplash_v2  # causal, α = 1.5
    elif not is_causal:
        # other lengths than powers of two have to be told
        lengths = torch.tensor([length], dtype=torch.int32, device="cuda")
        yield "AdaSplash", functools.partial(adasplash.adasplash_v1, varlen=lengths)


def live_share(q: Any, k: Any) -> float:
    """The share of blocks of the kernels that have a weight at α = 1.5, among those seen."""
    from fitzpatrick.engines.triton.attention_launch import fused_forward, plan_for
    from fitzpatrick.torch._attention_call import prepare
    from fitzpatrick.torch._entmax_attention import as_fused

    n = q.shape[-2]
    t, numbers = as_fused(*prepare(q, k, k, is_causal=n != FULL_LENGTH))
    words, plan = fused_forward(t, numbers)[-1], plan_for(t)
    bits = (words[..., None] >> torch.arange(32, device=q.device)) & 1
    last = torch.arange(plan.queries, n + plan.queries, plan.queries).clamp(max=n) - 1
    ends: Any = t.ends
    seen = (ends.cpu()[last] + plan.keys - 1) // plan.keys
    return float(bits.sum() / (seen.sum() * q.shape[1]))


def check(width: int, dtypes: Sequence[Any] = HALF_AND_SINGLE) -> None:
    """Kernels against all scores in float64: errors over the largest number of each result."""
    options: list[dict[str, Any]] = [{"is_causal": True}, {}, {"window": (70, 9)}]
    options += [{"is_causal": True, "query_offset": 44, "scale": -0.4}]
    options += [{"attn_mask": kind} for kind in (torch.bool, torch.float32)]
    options += [{"is_causal": True, "alibi_slopes": 0.25, "scale": 0.1}]
    for dtype, alpha in itertools.product(dtypes, (1.5, 2)):
        if dtype == torch.float32 and width > 128:
            continue
        worst = [0.0] * 4
        for (n, n_keys, groups), size, more in itertools.product(
            ((257, 301, 1), (130, 64, 3), (1, 1100, 2)), (1, 30), options
        ):
            torch.manual_seed(n)
            q = torch.randn(1, 2 * groups, n, width, device="cuda").mul_(size).to(dtype)
            k, v = torch.randn(2, 1, 2, n_keys, width, device="cuda").to(dtype)
            found: list[list[Any]] = []
            more = dict(more)
            if "attn_mask" in more:
                hidden = torch.rand(n, n_keys, device="cuda") < 0.3
                number = torch.randn(n, n_keys, device="cuda").masked_fill(hidden, -torch.inf)
                more["attn_mask"] = ~hidden if more["attn_mask"] == torch.bool else number
            for name in more.keys() & {"alibi_slopes"}:  # then the scale is a tensor as well
                more[name] = torch.full((2 * groups,), more[name], device="cuda")
                more["scale"] = torch.full((2 * groups,), more["scale"], device="cuda")
            for leaves in (q, k, v), (q.double(), k.double(), v.double()):
                q0, k0, v0 = given = [x.detach().requires_grad_() for x in leaves]
                out = F.entmax_attention(q0, k0, v0, enable_gqa=True, alpha=alpha, **more)
                upstream = torch.ones_like(out).cumsum(-1) / width
                found.append([out, *torch.autograd.grad(out, given, upstream)])
            for i, (one, other) in enumerate(zip(*found, strict=True)):
                error = (one.double() - other).abs().max() / other.abs().max().clamp(min=1)
                worst[i] = max(worst[i], float(error.nan_to_num(torch.inf)))
        print(width, str(dtype)[6:], alpha, "out, gradients:", *(f"{x:.1e}" for x in worst))


def timed_on_cpu(step: Callable[[], Any]) -> dict[str, float]:
    """The median of five times of the processor, which other processes do not change much."""
    times = []
    for _ in range(6):
        began = time.process_time()
        step()
        times += [time.process_time() - began]
    return {"median_ms": round(1e3 * sorted(times[1:])[2], 3)}


def run() -> Iterator[dict[str, Any]]:
    """Time everything."""
    on_gpu = torch.cuda.is_available()
    device, dtype = ("cuda", torch.bfloat16) if on_gpu else ("cpu", torch.float32)
    if not on_gpu:
        torch.set_num_threads(1)
    fixed = machine() if on_gpu else {"torch": torch.__version__}
    for heads, n, width, factor in GPU_SIZES if on_gpu else CPU_SIZES:
        generator = torch.Generator(device).manual_seed(0)
        draws = torch.randn(3, 1, heads, n, width, device=device, generator=generator)
        q, k, v = (x.to(dtype).requires_grad_() for x in (factor * draws[0], draws[1], draws[2]))
        upstream = torch.ones_like(v)
        with torch.no_grad():
            live = round(live_share(q, k), 3) if on_gpu else 1.0
        base: dict[str, float] = {}
        for name, attend in contenders(n):

            def both(attend: Attention = attend, qkv: Any = (q, k, v), up: Any = upstream) -> None:
                torch.autograd.grad(attend(*qkv), qkv, up)

            forward = functools.partial(attend, q, k, v)
            for what, step in (("forward", forward), ("both", both)):
                try:
                    result = measure(step) if on_gpu else timed_on_cpu(step)
                except Exception as failure:  # of a peer: said, and left out
                    if name.startswith(("fitzpatrick", "PyTorch")):
                        raise
                    print(f"{name} {heads} × {n} × {width} fails: {str(failure)[:80]!r}")
                    continue
                ratio = result["median_ms"] / base.setdefault(what, result["median_ms"])
                size = f"{heads} × {n} × {width}, queries × {factor}"
                size += ", not causal" * (n == FULL_LENGTH)
                row = {**fixed, "size": size, "live": live, "contender": f"{name}, {what}"}
                row["extra_memory"] = ""
                if on_gpu and name.startswith("fitzpatrick"):
                    # the forward pass returns an output; both of them, gradients like the inputs
                    made = v.nbytes * (1 if what == "forward" else 4)
                    inputs = 3 * v.nbytes + (0 if what == "forward" else v.nbytes)
                    extra = result["peak_extra_mib"] * 2**20 - made
                    row["extra_memory"] = f"{extra / (inputs + made):.2%}"
                print(row["size"], live, row["contender"], result["median_ms"], flush=True)
                yield {**row, **result, "ratio": round(ratio, 2)}


def print_memory() -> None:
    """What 128k tokens take beyond inputs and outputs, and the time of a length never seen."""
    draws = torch.randn(3, 1, 16, 131072, 64, device="cuda").bfloat16()
    q, k, v = leaves = [x.requires_grad_() for x in draws]
    attend = functools.partial(F.entmax_attention, is_causal=True)

    def both(n: int = 131072) -> None:
        out = attend(q[:, :, :n], k[:, :, :n], v[:, :, :n])
        torch.autograd.grad(out, leaves, torch.ones_like(out))

    # the output; with the backward pass the upstream gradient, too, and three gradients
    forward = functools.partial(attend, q, k, v)
    steps: list[tuple[str, int, Step]] = [("forward", 1, forward), ("both", 5, both)]
    for name, made, step in steps:
        step()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        extra = torch.cuda.max_memory_allocated() - before - made * q.nbytes
        share = extra / ((made + 3) * q.nbytes)
        print(f"16 × 131072 × 64, {name}: {share:.2%} of memory beyond inputs and outputs")
    began = time.perf_counter()
    both(3333)
    torch.cuda.synchronize()
    print(f"first call at a length of 3333: {time.perf_counter() - began:.3f} s")


def print_decoding() -> None:
    """Decoding with a million keys, whose pages resemble each other."""
    topics = torch.randn(2, 16, 2**14, 1, 64, device="cuda")
    noise = 0.2 * torch.randn(2, 16, 2**14, 64, 64, device="cuda")
    keys = (topics + noise).flatten(2, 3).bfloat16()
    values = torch.randn_like(keys)
    pages = KeyPages(keys, values)
    query = (3 * keys[:, :, 123456:123457]).repeat_interleave(4, 1)
    ours = functools.partial(pages.attend, query)
    softmax = functools.partial(
        torch.nn.functional.scaled_dot_product_attention, query, keys, values, enable_gqa=True
    )
    read = lambda: (keys.sum(), values.sum())  # noqa: E731
    found = ours()
    q, k, v = (x[:1, :1].float() for x in (query, keys, values))  # all would not fit
    expected = F.entmax_attention(q, k, v, engine="reference")
    error = float((found.output[:1, :1].float() - expected).abs().max())
    share = float(found.pages_read.double().mean() / pages.n_pages)
    print(f"2 × 64 heads, 16 of keys, 2²⁰ keys: {share:.2%} of pages read, error {error:.1e}")
    steps: list[tuple[str, Step]] = [("KeyPages", ours), ("PyTorch", softmax)]
    for name, step in [*steps, ("sums of keys and values", read)]:
        print(f"  {name}: {measure(step)['median_ms']} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--csv", type=Path, help="where to write all numbers")
    parser.add_argument("--check", type=int, metavar="WIDTH", help="errors of the kernels alone")
    parser.add_argument(
        "--limits", action="store_true", help="memory, a new length, decoding alone"
    )
    arguments = parser.parse_args()
    if arguments.check:
        check(arguments.check)
        raise SystemExit
    if arguments.limits:
        print_memory()
        print_decoding()
        raise SystemExit
    rows = write_rows(arguments.csv, run())
    print_table(rows, ["size", "live"], "contender", "ratio")
