"""Distill a small transformer into a smaller one, from its top k log-probabilities.

The teacher learns the text of ``torch_text.py`` letter by letter. Only its top k letters at each
position are kept, as in a file from a large teacher. A student with a quarter of the width learns
from these lists, with a head that never holds all scores. The script takes a few seconds on a CPU.

    python examples/torch_distil.py
    python examples/torch_distil.py --top 2 --rest renormalize
    python examples/torch_distil.py --loss logistic --temperature 2
"""

import argparse
import runpy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import fitzpatrick.torch as ft

TEXTS: dict[str, Any] = runpy.run_path(str(Path(__file__).with_name("torch_text.py")))
CONTEXT, WIDTH, SMALL = TEXTS["CONTEXT"], TEXTS["WIDTH"], TEXTS["WIDTH"] // 4
LETTERS = len(TEXTS["ALPHABET"])


def train(model: nn.Module, head: nn.Module, steps: int, batches: Any) -> list[float]:
    """Fit a model and its head to targets, and return the losses."""
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=3e-3)
    losses = []
    for _ in range(steps):
        letters, target = batches()
        optimizer.zero_grad()
        loss = head(model(letters), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main(arguments: list[str] | None = None) -> tuple[list[float], float, float]:
    """Train both, and return the student's losses and its divergence from the teacher.

    The divergence is the KL divergence over all letters, before and after.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loss", default="fitzpatrick_logistic", choices=TEXTS["LOSSES"])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--top", type=int, default=4, help="number of letters that are kept")
    parser.add_argument("--rest", default="bucket", choices=["bucket", "renormalize"])
    parser.add_argument("--temperature", type=float, default=1.0)
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    windows = TEXTS["encode"](TEXTS["TEXT"]).unfold(0, CONTEXT + 1, 1)
    teacher, teacher_head = TEXTS["Transformer"](), ft.LinearLogisticLoss(WIDTH, LETTERS)

    def text() -> tuple[Tensor, Tensor]:
        batch = windows[torch.randint(0, len(windows), (16,))]
        return batch[:, :-1], batch[:, 1:]

    print(f"teacher: loss {train(teacher, teacher_head, options.steps, text)[-1]:.3f}")
    with torch.no_grad():
        scores = teacher_head.linear(teacher.eval()(windows[:, :-1])) / options.temperature
        known = torch.log_softmax(scores, -1)
    top = known.topk(options.top)
    print(f"the lists leave out {1 - top.values.exp().sum(-1).mean():.3f}")

    def lists() -> tuple[Tensor, ft.SparseTargets]:
        rows = torch.randint(0, len(windows), (16,))
        indices, values = top.indices[rows], top.values[rows]
        target = ft.SparseTargets(indices, values, options.rest, log_values=True)
        return windows[rows, :-1], target

    student = TEXTS["Transformer"](SMALL, 1)
    head = TEXTS["LOSSES"][options.loss](SMALL, LETTERS, temperature=options.temperature)

    def divergence() -> float:
        with torch.no_grad():
            scores = head.linear(student(windows[:, :-1])) / options.temperature
        return float((known.exp() * (known - torch.log_softmax(scores, -1))).sum(-1).mean())

    before = divergence()
    losses = train(student, head, options.steps, lists)
    print(f"student: loss {losses[-1]:.3f}, KL {before:.3f} before and {divergence():.3f} after")
    return losses, before, divergence()


if __name__ == "__main__":
    main()
