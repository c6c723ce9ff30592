"""The head of a language model: hidden states to a large vocabulary, with padding ignored.

The model memorizes which token follows another. The last layer and the loss are one function, which
never holds the scores of all tokens. With ``--all-scores`` they are two functions, as usual. The
small size takes a few seconds on a CPU. The large size, 8192 tokens and 131072 words in bfloat16,
is for a GPU.

    python examples/torch_lm_head.py
    python examples/torch_lm_head.py --size large --device cuda
    python examples/torch_lm_head.py --loss logistic        # cross-entropy
    python examples/torch_lm_head.py --tightness 0.5        # between logistic and Fitzpatrick
    python examples/torch_lm_head.py --all-scores           # more memory
"""

import argparse
import time
from dataclasses import dataclass

import torch

import fitzpatrick as fp
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

PADDING = -100
LABEL_LOSSES = [name for name in fp.loss_names() if fp.get_loss(name).regularizer.domain.has_labels]


@dataclass(frozen=True)
class Size:
    """Numbers of words and tokens, width of the hidden states, and their dtype."""

    words: int
    tokens: int
    width: int
    dtype: torch.dtype


SIZES = {
    "tiny": Size(words=128, tokens=64, width=32, dtype=torch.float32),
    "small": Size(words=8192, tokens=512, width=128, dtype=torch.float32),
    "large": Size(words=131072, tokens=8192, width=1024, dtype=torch.bfloat16),
}


def main(arguments: list[str] | None = None) -> list[float]:
    """Train, print the results, and return the loss of each step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loss", default="fitzpatrick_logistic", choices=LABEL_LOSSES)
    parser.add_argument("--tightness", type=float, help="for a Fitzpatrick loss, other than 1")
    parser.add_argument("--size", default="small", choices=SIZES)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--all-scores", action="store_true", help="first the layer, then the loss")
    options = parser.parse_args(arguments)
    size, device = SIZES[options.size], torch.device(options.device)
    torch.manual_seed(0)
    body = torch.nn.Embedding(size.words, size.width).to(device, size.dtype)
    layer = torch.nn.Linear(size.width, size.words, bias=False).to(device, size.dtype)
    given = {} if options.tightness is None else {"tightness": options.tightness}
    linear_loss = getattr(F, f"linear_{options.loss}_loss")
    loss_of_scores = getattr(F, f"{options.loss}_loss")
    optimizer = torch.optim.Adam([*body.parameters(), *layer.parameters()], lr=3e-3)
    successor = torch.randperm(size.words, device=device)
    tokens = torch.randint(0, size.words, (size.tokens,), device=device)
    targets = successor[tokens]
    targets[::16] = PADDING
    losses: list[float] = []
    start = time.perf_counter()
    for step in range(options.steps):
        optimizer.zero_grad()
        if options.all_scores:
            mean = loss_of_scores(layer(body(tokens)), targets, ignore_index=PADDING, **given)
        else:
            hidden = body(tokens)
            mean = linear_loss(hidden, layer.weight, targets, ignore_index=PADDING, **given)
        mean.backward()
        optimizer.step()
        losses.append(mean.item())
        if step % 3 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss {losses[-1]:.4f}")
    print(f"{1e3 * (time.perf_counter() - start) / options.steps:.1f} ms per step")
    if device.type == "cuda":
        print(f"{torch.cuda.max_memory_allocated(device) / 2**30:.1f} GiB at most")
    return losses


if __name__ == "__main__":
    main()
