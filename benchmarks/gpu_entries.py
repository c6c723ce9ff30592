"""Entry-wise losses on a GPU, forward and backward, compared with PyTorch and the memory floor.

The floor is two reads, of scores and targets, and one write of the gradient, at the copy rate of
the same run. Targets are strictly between 0 and 1 ("soft") or are 0 and 1 ("hard"). The loss is the
mean over all entries. Times are medians behind other work of the GPU, with a cold cache. ``error``
is the relative error of the mean loss of 64 rows, compared with the float64 core. Tsallis losses
with labels are also measured, against one read and one write.

    python benchmarks/gpu_entries.py --csv benchmarks/results/gpu_entries.csv
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from _gpu import copy_rate, machine, measure, run_and_print

SHAPE = (65536, 1024)
OURS = ["squared", "sparse_sigmoid", "sigmoid", "poisson"]
ALPHA = 1.3

LossFunction = Callable[[Any, Any], Any]


def contenders() -> Iterator[tuple[str, str, str | None, LossFunction]]:
    """(loss, library, target, function); None for both kinds of target."""
    import torch
    from torch.nn import functional as nn

    from fitzpatrick.torch import functional

    for name in OURS:
        for loss in (name, f"fitzpatrick_{name}"):
            function = getattr(functional, f"{loss}_loss")
            yield loss, "fitzpatrick", None, function
            yield loss, "fitzpatrick, torch.compile", None, torch.compile(function)
        half = partial(getattr(functional, f"fitzpatrick_{name}_loss"), tightness=0.5)
        yield f"{name}, c = 0.5", "fitzpatrick", None, half
    yield "sigmoid", "torch", None, nn.binary_cross_entropy_with_logits
    yield "poisson", "torch", None, nn.poisson_nll_loss
    yield "squared", "torch", None, nn.mse_loss
    for tightness in (0.0, 0.5, 1.0):
        at_alpha = partial(functional.fitzpatrick_entmax_loss, alpha=ALPHA, tightness=tightness)
        yield f"entmax {ALPHA}, c = {tightness}", "fitzpatrick", "labels", at_alpha


def run() -> Iterator[dict[str, Any]]:
    """Time everything."""
    import torch

    rate = copy_rate()
    fixed = machine()
    print(fixed, f"copy {rate / 1e9:.3f} TB/s")
    generator = torch.Generator("cuda").manual_seed(0)
    scores = torch.randn(SHAPE, device="cuda", generator=generator).requires_grad_()
    soft = torch.rand(SHAPE, device="cuda", generator=generator)
    labels = torch.randint(0, SHAPE[1], SHAPE[:1], device="cuda", generator=generator)
    targets = {"soft": soft, "hard": (soft > 0.9).float(), "labels": labels}
    size = scores.numel() * scores.element_size()
    for loss, library, kind, function in contenders():
        for name in ("soft", "hard") if kind is None else (kind,):
            target = targets[name]

            def step(function: LossFunction = function, target: Any = target) -> None:
                scores.grad = None
                function(scores, target).backward()

            result = measure(step)
            scores.grad = None
            few = scores.detach()[:64]
            close = float(function(few.double(), _double(target[:64])))
            error = abs(float(function(few, target[:64])) - close) / abs(close)
            floor = (2 if name == "labels" else 3) * size / rate
            row = {
                **fixed,
                "copy_tb_s": round(rate / 1e9, 3),
                "loss": loss,
                "library": library,
                "target": name,
                **result,
                "times_floor": round(result["median_ms"] / floor, 2),
                "error": error,
            }
            print(
                f"{library:27s} {loss:27s} {name:6s} {row['median_ms']:8.3f} ms "
                f"{row['times_floor']:7.2f} × floor {row['peak_extra_mib']:7.0f} MiB, "
                f"error {error:.1e}",
                flush=True,
            )
            yield row


def _double(target: Any) -> Any:
    return target.double() if target.is_floating_point() else target


if __name__ == "__main__":
    run_and_print(run, __doc__, ["loss"], "{library}, {target}")
