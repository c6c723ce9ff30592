"""Links on a GPU, forward and backward, compared with other libraries and the memory floor.

The floor is one read and one write of the scores forward, and two reads and one write backward, at
the copy rate of the same run. Where predictions are zero, the backward pass need not read the
upstream gradient, so it can be faster than its floor. Times are medians behind other work of the
GPU, with a cold cache. ``error`` is the largest difference from the float64 core in 64 rows.

    python benchmarks/gpu_links.py --csv benchmarks/results/gpu_links.csv

Contenders that are not installed are left out by name: entmax, Liger (``liger_kernel``) and
AdaSplash (``adasplash``).
"""

from collections.abc import Callable, Iterator
from typing import Any

from _gpu import copy_rate, machine, measure, peer, run_and_print, version

SHAPES = [
    (524288, 1024, "bfloat16"),
    (65536, 1024, "float32"),
    (16384, 32768, "bfloat16"),
    (1048576, 64, "float32"),
]
ALPHA = 1.3

Link = Callable[[Any], Any]


def contenders() -> Iterator[tuple[str, str, float, Link]]:
    """(link, library, α, function)."""
    import torch

    from fitzpatrick.torch import functional

    yield "softmax", "torch", 1.0, lambda x: torch.softmax(x, -1)
    yield "sparsemax", "fitzpatrick", 2.0, functional.sparsemax
    yield "entmax15", "fitzpatrick", 1.5, functional.entmax15
    yield "entmax", "fitzpatrick", ALPHA, lambda x: functional.entmax(x, ALPHA)
    if (entmax := peer("entmax")) is not None:
        yield "sparsemax", "entmax", 2.0, entmax.sparsemax
        yield "entmax15", "entmax", 1.5, entmax.entmax15
        yield "entmax", "entmax", ALPHA, lambda x: entmax.entmax_bisect(x, alpha=ALPHA)
    if (adasplash := peer("adasplash")) is not None:
        yield "sparsemax", "AdaSplash-2", 2.0, adasplash.triton_sparsemax
        yield "entmax15", "AdaSplash-2", 1.5, adasplash.triton_entmax15
        yield "entmax", "AdaSplash-2", ALPHA, lambda x: adasplash.triton_entmax_v2(x, alpha=ALPHA)
    if (liger := peer("liger_kernel.transformers.functional")) is not None:
        yield "sparsemax", "Liger", 2.0, lambda x: liger.liger_sparsemax(x, dim=-1)


def _error(function: Link, alpha: float, scores: Any) -> float:
    """The largest difference from the core, in some rows."""
    from fitzpatrick.regularizers import Tsallis

    few = scores.detach()[:64].clone()
    exact = Tsallis(alpha).link(few.double().cpu())
    return float((function(few).double().cpu() - exact).abs().max())


def run() -> Iterator[dict[str, Any]]:
    """Time everything."""
    import torch

    rate = copy_rate()
    fixed = {**machine(), **{p: version(p) for p in ("entmax", "adasplash", "liger-kernel")}}
    print(fixed, f"copy {rate / 1e9:.3f} TB/s")
    for n, k, dtype in SHAPES:
        generator = torch.Generator("cuda").manual_seed(0)
        kind = getattr(torch, dtype)
        scores = torch.randn(n, k, device="cuda", generator=generator).to(kind).requires_grad_()
        upstream = torch.randn(n, k, device="cuda", generator=generator).to(kind)
        size = scores.numel() * scores.element_size()
        for link, library, alpha, function in contenders():

            def step(function: Link = function, scores: Any = scores, up: Any = upstream) -> None:
                scores.grad = None
                function(scores).backward(up)

            try:
                error = _error(function, alpha, scores)
                result = measure(step)
            except Exception as failure:  # of a peer: said, and left out
                if library == "fitzpatrick":
                    raise
                print(f"{library} {link} {n} × {k} {dtype} fails: {str(failure)[:80]!r}")
                continue
            finally:
                scores.grad = None
                torch.cuda.empty_cache()
            times = result["median_ms"] / (5 * size / rate)
            row = {
                **fixed,
                "copy_tb_s": round(rate / 1e9, 3),
                "link": link,
                "library": library,
                "rows": n,
                "classes": k,
                "dtype": dtype,
                **result,
                "times_floor": round(times, 2),
                "scores_mib": round(size / 2**20, 1),
                "error": error,
            }
            print(
                f"{n:7d} × {k:5d} {dtype:8s} {library:12s} {link:10s} {row['median_ms']:9.3f} ms"
                f"{times:8.2f} × floor {row['peak_extra_mib']:8.0f} MiB, error {error:.1e}",
                flush=True,
            )
            yield row


if __name__ == "__main__":
    run_and_print(run, __doc__, ["scores"], "{library} {link}")
