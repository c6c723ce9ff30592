"""The head of a language model: hidden states to a large vocabulary, with padding ignored.

On a GPU the default is 8192 tokens and 131072 words in bfloat16, where the loss and its gradient
come from one kernel; on the CPU it is small. The model learns to repeat the token it has read.

    python examples/torch_lm_head.py --loss fitzpatrick_logistic
"""

import argparse

import torch

from fitzpatrick.torch import modules

PADDING = -100


def main() -> None:
    """Train, and print what comes out."""
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loss", default="fitzpatrick_logistic")
    parser.add_argument("--words", type=int, default=131072 if cuda else 2048)
    parser.add_argument("--tokens", type=int, default=8192 if cuda else 256)
    parser.add_argument("--width", type=int, default=1024 if cuda else 64)
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    device = "cuda" if cuda else "cpu"
    dtype = torch.bfloat16 if cuda else torch.float32
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Embedding(arguments.words, arguments.width),
        torch.nn.Linear(arguments.width, arguments.words, bias=False),
    ).to(device, dtype)
    criterion = getattr(modules, modules.module_name(arguments.loss))(ignore_index=PADDING)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    tokens = torch.randint(0, arguments.words, (arguments.tokens,), device=device)
    targets = tokens.clone()
    targets[::16] = PADDING
    for step in range(arguments.steps):
        optimizer.zero_grad()
        loss = criterion(model(tokens), targets)
        loss.backward()
        optimizer.step()
        if step % 5 == 0 or step == arguments.steps - 1:
            print(f"step {step:3d}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
