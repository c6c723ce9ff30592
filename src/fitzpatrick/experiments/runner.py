"""Run the paths of an experiment, several at a time; those on record are not fitted again."""

import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from joblib.externals.loky.backend import resource_tracker as loky_tracker
from scipy import sparse
from tqdm import tqdm  # type: ignore[import-untyped]

from ..datasets._table import Matrix
from ..metrics import log_loss, sparsity, squared_error, squared_errors
from .learners import has_converged, learner, search
from .protocol import Experiment, FitPath, LossChoice, Protocol, paths, split
from .records import Grids, Record, Store, choose
from .summary import accuracy

_LINE_SECONDS = 15.0
_WATCH_SECONDS = 0.5


@dataclass(frozen=True)
class RunOptions:
    """What ``reproduce`` and ``compare`` run, and where the results go."""

    losses: tuple[LossChoice, ...]
    protocol: Protocol = field(default_factory=Protocol)
    seeds: int = 5  # number of dev splits
    n_jobs: int = 1  # paths that are fitted at a time
    output: Path = Path("out")
    command: str = ""  # the line that was typed, for the report


def run_experiment(experiment: Experiment, options: RunOptions) -> Grids:
    """The records of every path of an experiment, from the simplest model to the most complex."""
    protocol = options.protocol
    refits_chosen = protocol.refit and not protocol.refits_grid

    def fit(wanted: list[FitPath], stage: str) -> Grids:
        return run(experiment, protocol, options.output, wanted, options.n_jobs, stage)

    wanted = paths(options.losses, options.seeds, refit=protocol.refits_grid)
    records = fit(wanted, ": choosing settings" if refits_chosen else "")
    if refits_chosen:
        chosen: dict[LossChoice, set[float]] = {}
        for path, grid in records.items():
            chosen.setdefault(path.loss, set()).add(choose(grid).setting)
        wanted = [FitPath(loss, None, loss.in_order(found)) for loss, found in chosen.items()]
        records |= fit(wanted, ": fitting train and dev as chosen")
    return records


def run(
    experiment: Experiment,
    protocol: Protocol,
    folder: Path,
    wanted: list[FitPath],
    n_jobs: int = 1,
    stage: str = "",
) -> Grids:
    """The records of some paths, each fitted in a process on one thread and stored in the folder.

    Raises:
        BrokenExecutor: if a worker process was killed.
    """
    store = Store.of(folder, experiment, protocol)
    stored = store.read()
    records = {path: stored[path.name] for path in wanted if path.name in stored}
    missing = [path for path in wanted if path not in records]
    size = {path: len(path.settings or path.loss.grid(protocol)) for path in wanted}
    with progress(experiment.name + stage, sum(size.values())) as bar:
        bar.update(sum(size[path] for path in records))
        pool = Parallel(
            min(n_jobs, len(missing) or 1),
            backend="loky",
            return_as="generator_unordered",
            initializer=_end_with,
            initargs=(os.getpid(),),
        )
        work = (delayed(fit_and_score)(experiment, protocol, path) for path in missing)
        with _without_interrupts():
            results = pool(work)
        with _ended(results):
            for path, found in results:
                store.add(path, found)
                records[path] = found
                bar.update(size[path])
    return {path: records[path] for path in wanted}


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start workers that Ctrl-C does not reach: the run ends them, and none prints a traceback.

    Processes inherit which signals are blocked, and a signal that comes meanwhile is not lost.
    """
    if os.name != "posix":
        yield
        return
    for tracker in (resource_tracker, loky_tracker):
        tracker.ensure_running()  # the start of a tracker unblocks signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _ended(results: Any) -> Iterator[None]:
    """End what is still computed when the block does, without joblib's warning that it was."""
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            results.close()


def _end_with(parent: int) -> None:
    """End this worker, idle or busy, once the process that started it is gone."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    if os.name == "posix":  # elsewhere joblib ends idle workers after some minutes
        threading.Thread(target=watch, daemon=True).start()


class _Lines:
    """Standard error for a bar that is not on a terminal: each state a line of its own."""

    def write(self, text: str) -> None:
        if text.strip():
            sys.stderr.write(f"{text.strip()}\n")

    def flush(self) -> None:
        sys.stderr.flush()


def progress(title: str, total: int | None, unit: str = "fits") -> "tqdm[Any]":
    """A bar on a terminal, and elsewhere a line every quarter of a minute.

    Where the total is known there is a line at the start and at the end, too.
    """
    if sys.stderr.isatty():
        return tqdm(desc=title, total=total, unit=f" {unit}", unit_scale=unit == "B", leave=False)
    return tqdm(
        desc=title,
        total=total,
        file=_Lines(),
        mininterval=_LINE_SECONDS,
        delay=0 if total else _LINE_SECONDS,
        bar_format=f"{{desc}}: {{n_fmt}} of {{total_fmt}} {unit}, {{remaining}} left"
        if total
        else f"{{desc}}: {{n_fmt}} {unit}, {{elapsed}} so far",
    )


def find_device(name: str) -> Any:
    """The ``torch.device`` of that name; an error if PyTorch cannot compute on it here."""
    import torch

    try:
        device = torch.device(name)
        torch.zeros(1, dtype=torch.float64, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(f"PyTorch cannot use the device {name!r} here: {reason}") from None
    return device


def on_device(X: Matrix, name: str | None) -> tuple[Any, str]:
    """Features where they are computed with, dense on a device, and what computes, in words."""
    if name is None:
        return X, "NumPy"
    import torch

    torch.set_num_threads(1)  # as NumPy's
    device = find_device(name)
    dense = X.toarray() if sparse.issparse(X) else np.array(X)  # which PyTorch may write to
    is_cuda = device.type == "cuda"
    words = torch.cuda.get_device_name(device) if is_cuda else f"PyTorch {device}"
    return torch.as_tensor(dense, device=device), words


def fit_and_score(
    experiment: Experiment, protocol: Protocol, path: FitPath
) -> tuple[FitPath, list[Record]]:
    """Fit one path; its records come from the simplest model to the most complex one."""
    loss = path.loss
    train, dev, test = split(experiment, protocol, path.seed)
    X, device = on_device(train.X, protocol.device)
    # of class labels, and only of these, the log loss is of probabilities
    has_labels = bool((test.Y.max(axis=1, initial=0) == 1).all())
    records: dict[float, Record] = {}
    errors: dict[float, float] = {}
    begin = time.perf_counter()
    Y, tol = loss.targets(train.Y), protocol.tol_of(path)
    fit = learner(loss, X, Y, protocol, tol=tol, n_threads=1)
    for setting in path.settings or search(loss, protocol, errors):
        model = fit(setting)
        seconds = time.perf_counter() - begin
        errors[setting] = math.nan
        if dev.Y.size:
            dev_scores = model.predict_scores(dev.X)
            errors[setting] = squared_error(dev.Y, loss.proportions(dev_scores))
        test_scores = model.predict_scores(test.X)
        prediction = loss.proportions(test_scores)
        judged = loss.probabilities(test_scores) if has_labels else prediction
        records[setting] = Record(
            setting=setting,
            dev_error=errors[setting],
            test_errors=squared_errors(test.Y, prediction).astype(np.float32),
            accuracy=accuracy(test.Y, prediction),
            log_loss=log_loss(test.Y, judged),
            zeros=sparsity(prediction),
            n_iter=int(model.n_iter_),
            converged=has_converged(model),
            seconds=seconds,
            device="LightGBM" if loss.model == "boosted" else device,
        )
        begin = time.perf_counter()
    return path, [records[setting] for setting in loss.in_order(records)]
