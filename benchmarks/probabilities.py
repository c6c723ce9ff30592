"""Log loss and calibration error of links and probabilities, at several tightnesses.

    python benchmarks/probabilities.py
    python benchmarks/probabilities.py --images FOLDER  # a network on Fashion-MNIST, too
    python benchmarks/probabilities.py --speed cpu  # what they cost; needs PyTorch
    python benchmarks/probabilities.py --speed gpu [--compile]

The models are linear (with the penalty chosen by cross-validation with the log loss of the
probabilities) on scikit-learn's wine and digits and on noisy synthetic classes, and with
``--images`` a small network on the four idx files of Fashion-MNIST. Five seeds determine splits,
draws and initial weights; the script prints means and standard errors. The calibration error has 15
bins of the highest probability.

``--speed`` times the probabilities of the logistic family, for a million rows of 10 classes and
4096 rows of 32768 classes. On one thread of a CPU, the units are PyTorch's softmax and our own. On
a GPU, the unit is PyTorch's softmax, ``--compile`` adds ``torch.compile``, and the largest relative
error of float32 is printed, compared with the core in float64.
"""

import argparse
import gzip
import itertools
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split

import fitzpatrick as fp
from fitzpatrick import metrics
from fitzpatrick.linear_model import FitzpatrickClassifierCV

SEEDS = 5
TIGHTNESSES = (0.0, 1.0, 2.0, 4.0)
SHAPES = ((1_000_000, 10), (4096, 32768))  # of --speed


def synthetic(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """20,000 × 20, five classes, a fifth of the labels replaced."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20_000, 20))
    y = (X @ rng.normal(size=(20, 5)) + rng.gumbel(size=(20_000, 5))).argmax(axis=1)
    flipped = rng.random(len(y)) < 0.2
    return X, np.where(flipped, rng.integers(5, size=len(y)), y)


def judge(y: np.ndarray, scores: Any, tightness: float) -> list[float]:
    """Log loss and calibration error of the link, then of the probabilities."""
    loss = fp.get_loss("fitzpatrick_logistic", tightness=tightness)
    found = []
    for p in (loss.link(scores), loss.probabilities(scores)):
        found += [metrics.log_loss(y, p), metrics.calibration_error(y, p)]
    return found


def linear(data: str, tightness: float, seed: int) -> list[float]:
    loaders: dict[str, Any] = {"wine": load_wine, "digits": load_digits}
    X, y = loaders[data](return_X_y=True) if data in loaders else synthetic(seed)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
    model = FitzpatrickClassifierCV(
        "fitzpatrick_logistic", tightnesses=[tightness], standardize=True, scoring="neg_log_loss",
        cv=3,
    )  # fmt: skip
    return judge(y_test, model.fit(X, y).decision_function(X_test), tightness)


def read_idx(file: Path) -> np.ndarray:
    """An array of bytes in the idx format."""
    data = gzip.decompress(file.read_bytes())
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(data[3])]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def network(folder: Path, tightness: float, seed: int, epochs: int) -> list[float]:
    import torch

    from fitzpatrick.torch import FitzpatrickLogisticLoss

    torch.manual_seed(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tensors: dict[str, Any] = {}
    for part in ("train", "t10k"):
        images = read_idx(folder / f"{part}-images-idx3-ubyte.gz").reshape(-1, 1, 28, 28) / 255.0
        labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz")
        tensors[part] = (
            torch.tensor(images, dtype=torch.float32, device=device),
            torch.tensor(labels, dtype=torch.int64, device=device),
        )
    X, y = tensors["train"]
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Dropout(0.25), torch.nn.Linear(64 * 49, 128), torch.nn.ReLU(),
        torch.nn.Dropout(0.5), torch.nn.Linear(128, 10),
    ).to(device)  # fmt: skip
    criterion = FitzpatrickLogisticLoss(tightness=tightness)
    optimizer = torch.optim.Adam(layers.parameters(), 1e-3)
    for _ in range(epochs):
        layers.train()
        order: Any = torch.randperm(len(X), device=device)
        for rows in order.split(256):
            optimizer.zero_grad()
            criterion(layers(X[rows]), y[rows]).backward()
            optimizer.step()
    layers.eval()
    with torch.no_grad():
        X, y = tensors["t10k"]
        scores = layers(X).double().cpu().numpy()
    return [
        *judge(y.cpu().numpy(), scores, tightness),
        (scores.argmax(1) == y.cpu().numpy()).mean(),
    ]


def gpu_speed(tightness: float, with_compile: bool) -> None:
    """Medians behind other work of the GPU, with a cold cache."""
    import torch
    from _gpu import machine, require_gpu, timed_behind_work

    from fitzpatrick.torch import functional

    require_gpu()
    print(machine(), f"tightness {tightness:g}")
    ours: Any = functional.fitzpatrick_logistic_probabilities
    for shape, dtype in itertools.product(SHAPES, (torch.float32, torch.bfloat16)):
        torch.manual_seed(0)
        x = (torch.randn(shape, device="cuda") * 3).to(dtype)
        steps = {"softmax": partial(torch.softmax, x, -1), "kernel": partial(ours, x, tightness)}
        if with_compile:
            steps["compiled"] = partial(torch.compile(ours), x, tightness)
        times = {}
        for name, step in steps.items():
            step()
            times[name] = timed_behind_work(step, 50)[0]
        text = [f"{name} {t:.3f} ms = {t / times['softmax']:.2f} ×" for name, t in times.items()]
        if dtype == torch.float32:
            rows = x[: max(1, 2**22 // shape[1])]
            exact = fp.regularizers.Negentropy().solve_probabilities(rows.double(), tightness)
            error = (ours(rows, tightness).double() - exact).abs() / exact
            text.append(f"largest error {float(error.max()):.1e}")
        print(f"{shape[0]} × {shape[1]} {str(dtype)[6:]}: {', '.join(text)}", flush=True)


def cpu_speed() -> None:
    """Medians of runs in turns, in CPU time, which other load affects less."""
    import torch
    from _timing import Contender, race

    torch.set_num_threads(1)
    link = fp.get_loss("logistic").link
    loss = fp.get_loss("fitzpatrick_logistic")
    for shape in SHAPES:
        for dtype in (np.float64, np.float32):
            x: Any = (3 * np.random.default_rng(0).normal(size=shape)).astype(dtype)
            tensor = torch.from_numpy(x)
            times = race(
                [
                    Contender("PyTorch's softmax", partial(torch.softmax, tensor, -1)),
                    Contender("our softmax", partial(link, x, n_threads=1)),
                    Contender("probabilities", partial(loss.probabilities, x, n_threads=1)),
                ],
                5,
                cpu_time=True,
            )
            ours = times.pop("probabilities").median
            ratios = [f"{ours / timing.median:.2f} × {name}" for name, timing in times.items()]
            print(f"{shape[0]} × {shape[1]} {dtype.__name__}: {', '.join(ratios)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, help="folder of Fashion-MNIST's idx files")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--speed", choices=["cpu", "gpu"], help="time the probabilities instead")
    parser.add_argument("--compile", action="store_true", help="on a GPU, also with torch.compile")
    parser.add_argument("--tightness", type=float, default=1.0, help="of --speed gpu")
    arguments = parser.parse_args()
    if arguments.speed is not None:
        is_cpu = arguments.speed == "cpu"
        cpu_speed() if is_cpu else gpu_speed(arguments.tightness, arguments.compile)
        return
    print("data, tightness: log loss and calibration error of the link → of the probabilities")
    cases: list[tuple[str, Any]] = [
        (data, lambda c, seed, data=data: linear(data, c, seed))
        for data in ("wine", "digits", "synthetic")
    ]
    if arguments.images is not None:
        cases.append(
            ("network", lambda c, seed: network(arguments.images, c, seed, arguments.epochs))
        )
    for data, run in cases:
        for tightness in TIGHTNESSES:
            found = np.asarray([run(tightness, seed) for seed in range(SEEDS)])
            mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(SEEDS)
            text = [f"{m:.4f}±{e:.4f}" for m, e in zip(mean, error, strict=True)]
            accuracy = f", accuracy {text[4]}" if len(text) > 4 else ""
            print(
                f"{data:10s} c = {tightness:g}: log loss {text[0]} → {text[2]}, "
                f"calibration {text[1]} → {text[3]}{accuracy}",
                flush=True,
            )


if __name__ == "__main__":
    main()
