"""Entmax attention against PyTorch's softmax attention and AdaSplash, in one run.

Forward and backward of causal attention. ``live`` is the share of causal blocks of 64 × 64 scores
with a weight that is not zero; ``ratio`` is the time over that of PyTorch's own attention. On a GPU
times are medians behind other work, in bfloat16. Without one, small sizes are timed on one thread
of the CPU, against entmax weights times values, all held at once.

    python benchmarks/gpu_attention.py --csv benchmarks/results/gpu_attention.csv

AdaSplash (``adasplash``) is left out by name if it is not installed.
"""

import argparse
import functools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from _gpu import machine, measure, peer, print_table, write_rows
from torch.nn.attention import SDPBackend, sdpa_kernel

from fitzpatrick.torch import functional as F  # noqa: N812

Attention = Callable[[Any, Any, Any], Any]

# heads, length, width, and what multiplies the queries: the larger, the sparser
GPU_SIZES = [(32, 4096, 64, 1), (32, 4096, 64, 8), (16, 16384, 64, 1), (16, 16384, 64, 8)]
GPU_SIZES += [(8, 32768, 64, 8), (32, 1100, 64, 1), (32, 4096, 128, 4)]
CPU_SIZES = [(4, 256, 64, 1), (4, 1024, 64, 1), (4, 4096, 64, 1)]


def softmax_attention(backend: SDPBackend, q: Any, k: Any, v: Any) -> Any:
    """PyTorch's own, by one of its kernels."""
    with sdpa_kernel(backend):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def contenders(length: int) -> Iterator[tuple[str, Attention]]:
    """What is compared; the first is what the others are multiples of."""
    yield "PyTorch flash", functools.partial(softmax_attention, SDPBackend.FLASH_ATTENTION)
    ours = functools.partial(F.entmax_attention, is_causal=True)
    yield "fitzpatrick entmax-1.5", ours
    yield "fitzpatrick sparsemax", functools.partial(ours, alpha=2.0)
    if not torch.cuda.is_available():
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        dense = lambda q, k, v: F.entmax15(q @ k.mT / q.shape[-1] ** 0.5, mask=mask) @ v  # noqa: E731
        yield "entmax-1.5, all scores", dense
        return
    yield "cuDNN flash", functools.partial(softmax_attention, SDPBackend.CUDNN_ATTENTION)
    yield "fitzpatrick fused entmax-1.5", functools.partial(ours, engine="triton")
    if (adasplash := peer("adasplash")) is not None:
        yield "AdaSplash-2", adasplash.adasplash_v2  # causal, α = 1.5


def live_share(q: Any, k: Any) -> float:
    """The share of causal 64 × 64 blocks with a weight, of the first head at α = 1.5."""
    n, n_blocks, live = q.shape[-2], -(-q.shape[-2] // 64), 0
    for first in range(0, n, 64):
        last = min(first + 64, n)
        eye = torch.eye(last, device=q.device)[None, None]
        rows = q[:1, :1, first:last].float(), k[:1, :1, :last].float(), eye
        weights = F.entmax_attention(*rows, is_causal=True, query_offset=first)
        live += len({key // 64 for (key,) in weights[0, 0].any(0).nonzero().tolist()})
    return float(live / (n_blocks * (n_blocks + 1) / 2))


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
            live = round(live_share(q, k), 3)
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
                row = {**fixed, "size": size, "live": live, "contender": f"{name}, {what}"}
                print(row["size"], live, row["contender"], result["median_ms"], flush=True)
                yield {**row, **result, "ratio": round(ratio, 2)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--csv", type=Path, help="where to write all numbers")
    rows = write_rows(parser.parse_args().csv, run())
    print_table(rows, ["size", "live"], "contender", "ratio")
