"""One of several processes that share the classes of a loss; each writes what went wrong.

All cases of a world size run in one group of processes, since starting them takes seconds.
"""

import itertools
import json
import os
import sys
import traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as distributed

from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

TEST_ALL = os.environ.get("FITZPATRICK_TEST_ALL") == "1"
# What the package promises: sharded losses and gradients are those of one process.
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-6}
N_CLASSES = 11  # no multiple of a number of processes
LABELS = torch.tensor([0, 10, 5, 3, 7, 2, 9, 4, 1, 6])
TIGHTNESSES = (0.0, 0.5, 1.0, 2.0)
FAMILIES = {
    "logistic": F.fitzpatrick_logistic_loss,
    "sparsemax": F.fitzpatrick_sparsemax_loss,
    "entmax15": F.fitzpatrick_entmax15_loss,
    "tsallis13": lambda x, y, **options: F.fitzpatrick_entmax_loss(x, y, 1.3, **options),
    "tsallis1": lambda x, y, **options: F.fitzpatrick_entmax_loss(x, y, 1.0, **options),
    "perceptron": F.perceptron_loss,
}


EVERY_LOSS = [
    *itertools.product(["logistic", "sparsemax", "entmax15", "tsallis13"], TIGHTNESSES),
    ("tsallis1", 0.5),
    ("perceptron", 0.0),
]
# targets and weights are made ready before a loss looks at them
SOME_LOSSES = EVERY_LOSS if TEST_ALL else [("logistic", 0.5), ("entmax15", 1.0), ("perceptron", 0.0)]


def loss_of(family, tightness):
    function = FAMILIES[family]
    if family == "perceptron":
        return function
    return lambda *arguments, **options: function(*arguments, tightness=tightness, **options)


def scores_in(dtype):
    """Rows of every kind: small, large, ties, masked classes, a class far ahead."""
    generator = torch.Generator().manual_seed(7)
    scores = torch.randn(len(LABELS), N_CLASSES, generator=generator, dtype=torch.float64)
    scores[1] *= 1e-3
    scores[2] *= 10
    scores[3] = 0.25  # all tied
    scores[4, :6] = scores[4].max() + 1  # some tied at the top
    scores[5] *= 1e4
    scores[6, [0, 4, 8]] = -torch.inf
    scores[7] = -1e4
    scores[7, 4] = 1e4  # the label's
    scores[8] = scores[8] * 0.1 + 1e4
    scores[9, :6] = -torch.inf  # all that the first process has
    return scores.to(dtype)


def proportions_in(dtype):
    """Targets of full and of small support, none where a class is masked."""
    generator = torch.Generator().manual_seed(8)
    y = torch.rand(len(LABELS), N_CLASSES, generator=generator, dtype=torch.float64) ** 3
    y[::2, 1::3] = 0
    y[scores_in(dtype) == -torch.inf] = 0
    y[0] = torch.nn.functional.one_hot(LABELS[0], N_CLASSES)
    y = y / y.sum(-1, keepdim=True)
    return y.to(dtype)


def weights_in(dtype):
    return torch.linspace(0.5, 2.0, N_CLASSES, dtype=dtype)


def bounds(world_size):
    """Where the parts begin and end: uneven ones, and an empty one among four."""
    sizes = {2: [6, 5], 4: [3, 6, 0, 2]}[world_size]
    ends = list(itertools.accumulate(sizes))
    return list(zip([0, *ends[:-1]], ends, strict=True))


class Cases:
    """What a process of a group tries, one method a case."""

    def __init__(self, rank, world_size):
        self.rank, self.world_size = rank, world_size
        self.group = distributed.group.WORLD
        self.own = slice(*bounds(world_size)[rank])

    def compare(self, function, scores, target, **options):
        """The sharded loss and its gradient are those of one process."""
        dtype = scores.dtype
        whole = scores.clone().requires_grad_()
        expected = function(whole, target, **options)
        part = scores[:, self.own].clone().requires_grad_()
        own_target = target[:, self.own] if target.is_floating_point() else target
        found = function(part, own_target, process_group=self.group, **options)
        assert found.dtype == expected.dtype and found.shape == expected.shape
        tolerance = {"rtol": TOLERANCES[dtype], "atol": TOLERANCES[dtype], "equal_nan": True}
        torch.testing.assert_close(found, expected, **tolerance)
        upstream = torch.linspace(1, 2, expected.numel(), dtype=dtype).reshape(expected.shape)
        expected.backward(upstream)
        found.backward(upstream)
        torch.testing.assert_close(part.grad, whole.grad[:, self.own], **tolerance)
        return found

    def compare_all(self, target_of, losses=EVERY_LOSS, **options):
        problems = []
        for family, tightness in losses:
            for dtype in TOLERANCES:
                try:
                    given = {k: v(dtype) if callable(v) else v for k, v in options.items()}
                    loss = loss_of(family, tightness)
                    self.compare(loss, scores_in(dtype), target_of(dtype), **given)
                except AssertionError as error:
                    problems.append(f"{family} {tightness} {dtype}: {error}")
        assert not problems, "\n".join(problems)

    def labels(self):
        self.compare_all(lambda _: LABELS, reduction="none")

    def weighted_labels(self):
        labels = LABELS.clone()
        labels[[0, 6]] = -100
        self.compare_all(lambda _: labels, SOME_LOSSES, weight=weights_in)

    def ignored_class(self):
        self.compare_all(lambda _: LABELS, SOME_LOSSES, ignore_index=5, reduction="sum")

    def smoothed_labels(self):
        self.compare_all(lambda _: LABELS, SOME_LOSSES, reduction="none", label_smoothing=0.1)

    def smoothed_weighted_labels(self):
        self.compare_all(lambda _: LABELS, SOME_LOSSES, weight=weights_in, label_smoothing=0.2, ignore_index=7)

    def proportions(self):
        self.compare_all(proportions_in, reduction="none")

    def weighted_proportions(self):
        self.compare_all(proportions_in, weight=weights_in)

    def smoothed_proportions(self):
        self.compare_all(proportions_in, SOME_LOSSES, reduction="none", label_smoothing=0.3)


def run(rank, world_size, folder, chosen):
    address = f"file://{folder}/rendezvous"
    distributed.init_process_group(
        "gloo",
        init_method=address,
        rank=rank,
        world_size=world_size,
        timeout=timedelta(seconds=60),
    )
    torch.set_num_threads(1)
    cases = Cases(rank, world_size)
    results = {}
    for name in chosen:
        try:
            getattr(cases, name)()
            results[name] = ""
        except Exception:
            results[name] = traceback.format_exc()
        distributed.barrier()
    Path(folder, f"{rank}.json").write_text(json.dumps(results))
    distributed.barrier()


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
    os._exit(0)  # gloo's threads may wait for the GIL for ever
