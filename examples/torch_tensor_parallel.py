"""The head of a language model in two processes, each with half of the vocabulary.

The hidden layer is the same in both processes, and the last layer is divided along its classes. The
loss and the gradient of the hidden layer are the same in both processes, without another reduction.
For each row, the processes exchange three numbers for the loss, and the gradient of its features.

    python examples/torch_tensor_parallel.py --processes 2 --loss fitzpatrick_logistic

The script also trains in one process, and compares the results.
"""

import argparse
import tempfile

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing

from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

ROWS, FEATURES, HIDDEN, VOCABULARY = 256, 16, 32, 1001  # not a multiple of the number of processes


def make_problem() -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """Features, labels, and the parameters of two layers, the same in every process."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    features = draw(ROWS, FEATURES)
    labels = (features @ draw(FEATURES, VOCABULARY)).argmax(-1)
    return features, labels, [draw(HIDDEN, FEATURES) / 4, draw(VOCABULARY, HIDDEN) / 6]


def train(
    loss_name: str,
    steps: int,
    classes: slice = slice(None),
    group: distributed.ProcessGroup | None = None,
) -> tuple[list[float], torch.Tensor]:
    """The losses of a few steps, and the weight of the hidden layer after them."""
    features, labels, (hidden_weight, output_weight) = make_problem()
    parameters = [hidden_weight.requires_grad_(), output_weight[classes].clone().requires_grad_()]
    optimizer = torch.optim.SGD(parameters, lr=2.0)
    loss_function = getattr(F, f"linear_{loss_name}_loss")
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        hidden = torch.tanh(features @ parameters[0].T)
        loss = loss_function(hidden, parameters[1], labels, process_group=group)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, parameters[0].detach()


def train_part(rank: int, processes: int, folder: str, loss_name: str, steps: int) -> None:
    """One of the processes; the first compares the result with training in one process."""
    torch.set_num_threads(1)
    address = f"file://{folder}/rendezvous"
    distributed.init_process_group(
        "gloo", init_method=address, rank=rank, world_size=processes
    )  # on GPUs: "nccl", with torch.cuda.set_device(rank)
    size = -(-VOCABULARY // processes)
    classes = slice(rank * size, min((rank + 1) * size, VOCABULARY))
    losses, weight = train(loss_name, steps, classes, distributed.group.WORLD)
    if rank == 0:
        expected_losses, expected_weight = train(loss_name, steps)
        difference = max(abs(a - b) for a, b in zip(losses, expected_losses, strict=True))
        difference = max(difference, (weight - expected_weight).abs().max().item())
        print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f} in {steps} steps, {processes} processes")
        print(f"largest difference to one process: {difference:.1e}")
        # the steps accumulate rounding errors of float64 only
        if difference > 1e-9:
            raise RuntimeError(f"{processes} processes and one differ by {difference:.1e}")
    distributed.barrier()
    distributed.destroy_process_group()


def main(arguments: list[str] | None = None) -> None:
    """Start the processes and wait for them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--loss", default="fitzpatrick_logistic")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        given = options.processes, folder, options.loss, options.steps
        multiprocessing.spawn(train_part, given, nprocs=options.processes)


if __name__ == "__main__":
    main()
