"""Two processes that train a layer together, without triton, which nothing requires."""

import sys
from datetime import timedelta

if __name__ == "__main__":
    sys.modules["triton"] = None  # as if it were not installed

import torch
import torch.distributed as distributed
from forks import fork
from torch.nn.parallel import DistributedDataParallel

import fitzpatrick.torch as ft

LABELS = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3])
HALF_IGNORED = torch.tensor([0, 1, 2, 3, -100, -100, -100, -100])  # one of two processes has none


def losses(model, inputs, rows, share):
    """Means, and a sum whose gradients DDP divides by the number of processes."""
    yield ft.FitzpatrickLogisticLoss()(model(inputs[rows]), LABELS[rows])
    yield ft.SparsemaxLoss()(model(inputs[rows]), LABELS[rows])
    total = ft.FitzpatrickEntmax15Loss(reduction="sum", tightness=0.5)
    yield total(model(inputs[rows]), HALF_IGNORED[rows]) * share


def layer_and_inputs():
    torch.manual_seed(0)
    return torch.nn.Linear(3, 4).double(), torch.randn(8, 3, dtype=torch.float64)


def train_alone():
    """The gradient of all rows in one process."""
    model, inputs = layer_and_inputs()
    for loss in losses(model, inputs, slice(8), 1.0):
        loss.backward()
    return model.weight.grad


def train_together(rank, folder):
    """The gradient of half of the rows in each of two processes, into a file."""
    address = f"file://{folder}/rendezvous"
    options = {"rank": rank, "world_size": 2, "timeout": timedelta(seconds=100)}
    distributed.init_process_group("gloo", init_method=address, **options)
    layer, inputs = layer_and_inputs()
    model = DistributedDataParallel(layer)
    for loss in losses(model, inputs, slice(4 * rank, 4 * rank + 4), 2.0):
        loss.backward()
    torch.save(layer.weight.grad, f"{folder}/{rank}.pt")
    assert "fitzpatrick.engines.triton.launch" not in sys.modules
    distributed.barrier()


if __name__ == "__main__":
    sys.exit(max(map(abs, fork(2, train_together, sys.argv[1]))))
