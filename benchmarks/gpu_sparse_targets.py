"""A teacher's top k as the target, on a GPU, forward and backward, compared with labels.

Times are multiples of the same loss, or head, at class indices in the same run. They are medians
behind other work of the GPU. Memory is the peak of a step beyond the gradients. The logistic loss
is also compared with usual PyTorch code, ``kl_div`` of dense proportions and a gather of
``log_softmax``, and with Liger's distillation loss, if ``liger_kernel`` is installed.

    python benchmarks/gpu_sparse_targets.py
    python benchmarks/gpu_sparse_targets.py --quick
    python benchmarks/gpu_sparse_targets.py --check    # every contender once, on a CPU, too
    python benchmarks/gpu_sparse_targets.py --cpu      # losses in float32, one thread of a CPU
"""

import argparse
from collections.abc import Callable
from typing import Any

import torch
from _gpu import machine, peer, require_gpu, timed_behind_work
from _timing import Contender, race
from torch import Tensor

from fitzpatrick.torch import SparseTargets, functional

SHAPES = [(8192, 128256), (16384, 32768)]
HEADS = [(8192, 4096, 128256), (8192, 2048, 32768)]
LISTED = (64, 256)
NAMES = [
    "fitzpatrick_logistic",
    "logistic",
    "fitzpatrick_sparsemax",
    "sparsemax",
    "fitzpatrick_entmax15",
]
Step = Callable[[], Any]


def top_k(teacher: Tensor, m: int, chunk: int = 512) -> SparseTargets:
    """The top m log-probabilities of scores, computed in chunks."""
    starts = range(0, len(teacher), chunk)
    parts = [torch.log_softmax(teacher[i : i + chunk].float(), -1).topk(m) for i in starts]
    indices = torch.cat([part.indices for part in parts])
    values = torch.cat([part.values for part in parts])
    return SparseTargets(indices, values, "renormalize", log_values=True)


def by_gather(scores: Tensor, target: SparseTargets) -> Tensor:
    """KL over the top k, as trainers write it."""
    logs = torch.log_softmax(scores.float(), -1).gather(-1, target.indices)
    y = torch.log_softmax(target.values, -1)
    return (y.exp() * (y - logs)).sum(-1).mean()


def by_dense(scores: Tensor, y: Tensor) -> Tensor:
    """KL over all classes."""
    logs = torch.log_softmax(scores.float(), -1)
    return torch.nn.functional.kl_div(logs, y, reduction="batchmean")


def measure(loss: Callable[..., Tensor], leaves: list[Tensor], runs: int) -> tuple[float, float]:
    """Milliseconds and MiB beyond the gradients of a forward and backward pass."""

    def step() -> None:
        torch.autograd.grad(loss(), leaves)

    step()
    if not leaves[0].is_cuda:
        return 1e3 * race([Contender("step", step)], runs, cpu_time=True)["step"].median, 0.0
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    own = sum(x.numel() * x.element_size() for x in leaves)
    memory = (torch.cuda.max_memory_allocated() - before - own) / 2**20
    return timed_behind_work(step, runs)[0], memory


def value_of(loss: Any) -> Tensor:
    """The value of a loss, with or without statistics of its rows."""
    value: Tensor = loss[0] if isinstance(loss, tuple) else loss
    return value


def report(name: str, result: tuple[float, float], unit: float) -> None:
    milliseconds, memory = result
    print(f"  {name:<44}{milliseconds:9.3f} ms{milliseconds / unit:7.2f} ×{memory:9.0f} MiB")


def losses(n: int, k: int, device: str, runs: int) -> None:
    """Losses of scores."""
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    print(f"losses, {n} × {k}, {dtype}")
    generator = torch.Generator(device).manual_seed(0)
    scores = torch.randn(n, k, device=device, dtype=dtype, generator=generator)
    labels = torch.randint(k, (n,), device=device, generator=generator)
    lists = {m: top_k(scores * 2, min(m, k)) for m in LISTED}
    scores.requires_grad_()
    for name in NAMES:
        loss = getattr(functional, f"{name}_loss")
        base = measure(lambda loss=loss: loss(scores, labels), [scores], runs)
        report(f"{name} at labels", base, base[0])
        for m, target in lists.items():
            given = measure(lambda loss=loss, t=target: loss(scores, t), [scores], runs)
            report(f"{name}, m = {m}", given, base[0])
        for options in ({"softcap": 30.0}, {"temperature": 2.0}, {"return_stats": True}):
            more = measure(
                lambda loss=loss, o=options: value_of(loss(scores, labels, **o)), [scores], runs
            )
            report(f"{name} at labels, {next(iter(options))}", more, base[0])
    target = lists[LISTED[0]]
    base = measure(lambda: functional.logistic_loss(scores, labels), [scores], runs)
    bucket = SparseTargets(target.indices, target.values, "bucket", log_values=True)
    bucket_time = measure(lambda: functional.logistic_loss(scores, bucket), [scores], runs)
    report(f"logistic, m = {LISTED[0]}, bucket", bucket_time, base[0])
    gather = measure(lambda: by_gather(scores, target), [scores], runs)
    report("log_softmax and gather", gather, base[0])
    if n * k <= 2**30:
        y = target.to_dense(k)
        report("kl_div, dense", measure(lambda: by_dense(scores, y), [scores], runs), base[0])


def heads(n: int, h: int, k: int, device: str, runs: int) -> None:
    """A linear layer and a loss in one."""
    print(f"heads, {n} × {h} × {k}, bf16")
    generator = torch.Generator(device).manual_seed(0)
    make: Any = torch.randn
    options = {"device": device, "dtype": torch.bfloat16, "generator": generator}
    x, w = make(n, h, **options), make(k, h, **options).mul_(h**-0.5)
    labels = torch.randint(k, (n,), device=device, generator=generator)
    indices = torch.stack([torch.randperm(k, device=device, generator=generator)[: LISTED[0]]])
    shift = torch.arange(n, device=device)[:, None]
    values = torch.randn(n, indices.shape[1], device=device, generator=generator).log_softmax(-1)
    target = SparseTargets((indices + shift) % k, values, "renormalize", log_values=True)
    leaves = [x.requires_grad_(), w.requires_grad_()]
    for name in ("fitzpatrick_logistic", "fitzpatrick_sparsemax"):
        loss = getattr(functional, f"linear_{name}_loss")
        base = measure(lambda loss=loss: loss(x, w, labels), leaves, runs)
        report(f"linear_{name} at labels", base, base[0])
        given = measure(lambda loss=loss: loss(x, w, target), leaves, runs)
        report(f"linear_{name}, m = {LISTED[0]}", given, base[0])
    capped = measure(
        lambda: functional.linear_logistic_loss(x, w, target, softcap=30.0), leaves, runs
    )
    base = measure(lambda: functional.linear_logistic_loss(x, w, labels), leaves, runs)
    report("linear_logistic, softcap", capped, base[0])
    other = x.detach() + 0.1 * make(n, h, **options)
    both = measure(lambda: functional.distillation_loss(x, w, other, w.detach()), leaves, runs)
    report("distillation_loss, two heads", both, base[0])
    liger = peer("liger_kernel.chunked_loss.jsd_loss") if device == "cuda" else None
    if liger is not None:
        fused = liger.LigerFusedLinearJSDLoss(weight_hard_loss=0.0, weight_soft_loss=1.0, beta=0.0)
        step = measure(lambda: fused(x, w, other, w.detach(), labels), leaves, runs)
        report("Liger, two heads", step, base[0])


def check(device: str) -> None:
    """Lists equal dense proportions, in float32."""
    scores = torch.randn(64, 4099, device=device, requires_grad=True)
    target = top_k(scores.detach() * 2, 64)
    y = target.to_dense(4099)
    for name in NAMES:
        loss = getattr(functional, f"{name}_loss")
        pairs = [
            (value := loss(scores, t), *torch.autograd.grad(value, scores)) for t in (target, y)
        ]
        for one, other in zip(*pairs, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    print("lists equal proportions")


def main() -> None:
    """Print ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="few runs of each")
    parser.add_argument("--check", action="store_true", help="small shapes, once")
    parser.add_argument("--cpu", action="store_true", help="losses on a CPU")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    check(device)
    if arguments.check:
        losses(32, 1000, device, 1)
        heads(32, 16, 1000, device, 1)
        return
    if arguments.cpu:
        torch.set_num_threads(1)
        losses(512, 32768, "cpu", 9)
        return
    require_gpu()
    print(machine())
    runs = 7 if arguments.quick else 25
    for n, k in SHAPES:
        losses(n, k, device, runs)
    for shape in HEADS:
        heads(*shape, device, runs)


if __name__ == "__main__":
    main()
