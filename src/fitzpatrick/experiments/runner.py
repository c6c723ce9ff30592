"""Run the paths of an experiment, several at a time, and take up those that were interrupted."""

import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from pathlib import Path

import numpy as np

from ..datasets._table import Matrix
from ..linear_model import FittedModel, fit_path
from ..metrics import squared_error, squared_errors
from .devices import describe_device, on_device
from .errors import WorkerError
from .progress import progress
from .protocol import Experiment, FitPath, LossChoice, Protocol, Rows, paths, split
from .records import Record, Store, all_records, choose
from .scores import accuracy, log_loss

_POLL_SECONDS = 0.5

Report = Callable[[int], None]
AfterFit = Callable[[], None]


@dataclass(frozen=True)
class RunOptions:
    """What ``reproduce`` and ``compare`` run, and where the results go.

    Attributes:
        losses: which.
        protocol: how each is fitted.
        seeds: number of dev splits.
        n_jobs: paths that are fitted at a time.
        output: folder of the records and results.
        command: the line that was typed, for the report.
    """

    losses: tuple[LossChoice, ...]
    protocol: Protocol = field(default_factory=Protocol)
    seeds: int = 5
    n_jobs: int = 1
    output: Path = Path("out")
    command: str = ""


def run_experiment(experiment: Experiment, options: RunOptions) -> dict[FitPath, list[Record]]:
    """The records of every path of an experiment; those that are there are not fitted again."""
    protocol = options.protocol
    store = Store.of(options.output / "records", experiment, protocol)

    def finish(wanted: list[FitPath], what: str) -> dict[FitPath, list[Record]]:
        total = sum(len(store.grid(path)) for path in wanted)
        with progress(f"{experiment.name}{what}", total) as report:
            run(experiment, store, wanted, options.n_jobs, report)
        return all_records(store, wanted)

    if protocol.whole_grid:
        return finish(paths(options.losses, options.seeds, refit=protocol.refit), "")
    records = finish(paths(options.losses, options.seeds, refit=False), ": choosing α")
    if protocol.refit:
        chosen = {path.loss: set[float]() for path in records}
        for path, grid in records.items():
            chosen[path.loss].add(choose(grid).alpha)
        final = [FitPath(loss, None, alpha) for loss in chosen for alpha in sorted(chosen[loss])]
        records |= finish(final, ": fitting train and dev with the α chosen")
    return records


def run(
    experiment: Experiment, store: Store, wanted: list[FitPath], n_jobs: int, report: Report
) -> None:
    """Finish every path; what is on record is not fitted again.

    Args:
        experiment: the data.
        store: where the records are and go.
        wanted: what to fit.
        n_jobs: how many paths to fit at a time, each in a process and on one thread.
        report: called with the number of fits that are finished or not needed, now and then.
    """
    # reading them all now, a damaged record is found before hours of fits
    finished = {path: store.finished(path) for path in wanted}
    open_paths = [path for path in wanted if not store.has_ended(path, finished[path])]
    ended = [path for path in wanted if path not in open_paths]
    not_needed = sum(len(store.grid(path)) - len(finished[path]) for path in ended)

    def report_now(path: FitPath | None = None) -> None:
        nonlocal not_needed
        if path is not None:
            not_needed += len(store.grid(path)) - store.count([path])
        report(store.count(wanted) + not_needed)

    report_now()
    if not open_paths:
        return
    if n_jobs == 1:
        for path in open_paths:
            run_path(experiment, store, path, after_fit=report_now)
            report_now(path)
        return
    # spawned workers carry over no threads or locks, and know when their parent is gone
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(
        min(n_jobs, len(open_paths)), context, _initialize, (experiment, store)
    ) as pool:
        try:
            with _no_interrupt():  # until every worker can end without a traceback
                path_of = {pool.submit(_work, path): path for path in open_paths}
            pending: set[Future[None]] = set(path_of)
            while pending:
                done, pending = wait(pending, _POLL_SECONDS, FIRST_COMPLETED)
                for future in done:
                    future.result()
                    report_now(path_of[future])
                report_now()
        except BrokenProcessPool:
            raise WorkerError(
                "a worker process was killed, perhaps for lack of memory; the same command goes on "
                "from the finished fits, with -j 1 in a single process"
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()  # a later run takes up from the records
            raise


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Hold Ctrl-C back, here and in processes that are started meanwhile."""
    if os.name != "posix":
        yield
        return
    resource_tracker.ensure_running()  # which lets signals through when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_job: tuple[Experiment, Store] | None = None


def _initialize(experiment: Experiment, store: Store) -> None:
    """Hand the data to a worker once, not with every path."""
    global _job
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback
    if os.name == "posix":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _job = experiment, store
    if store.protocol.device is not None:
        import torch

        torch.set_num_threads(1)  # as NumPy's


def _exit_with_parent() -> None:
    """End a worker, idle or busy, whose run was killed; a later run takes up from the records."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(path: FitPath) -> None:
    if _job is None:
        raise RuntimeError("the worker was not initialized")
    run_path(*_job, path, after_fit=lambda: None)


def run_path(experiment: Experiment, store: Store, path: FitPath, after_fit: AfterFit) -> None:
    """Fit one loss on one seed's rows over the grid, from the strongest penalty not on record."""
    protocol, alphas = store.protocol, store.grid(path)
    records = store.finished(path)
    if store.has_ended(path, records):
        return
    state = store.state(path, len(records) - 1) if records else None
    if state is None:
        records = []  # without the state the path is fitted again; it gives the same records
    store.discard_states(path, len(records) - 1)
    rows = split(experiment, protocol, path.seed)
    device = describe_device(protocol.device)
    begin = time.perf_counter()

    def keep(model: FittedModel) -> None:
        nonlocal begin
        seconds = time.perf_counter() - begin
        record = _evaluate(model, rows, path.loss, seconds, device)
        store.add(path, len(records), record, (model.coef, model.intercept))
        records.append(record)
        after_fit()
        begin = time.perf_counter()

    fit_path(
        on_device(rows.X, protocol.device),
        path.loss.targets(rows.Y),
        path.loss.loss,
        alphas[len(records) :],
        fit_intercept=protocol.intercept,
        standardize=protocol.scaling == "standardize",
        tol=protocol.tol_of(path),
        max_iter=protocol.max_iter,
        n_threads=1,
        start=state,
        resumable=protocol.is_resumable,
        callback=keep,
        stop=lambda _: store.has_ended(path, records),
    )


def _evaluate(
    model: FittedModel, rows: Rows, loss: LossChoice, seconds: float, device: str
) -> Record:
    """The record of a fit: its errors on dev and test."""

    def predict(X: Matrix) -> np.ndarray:
        return loss.proportions(np.asarray(X @ model.coef.T) + model.intercept)

    prediction = predict(rows.X_test)
    dev_error = math.nan
    if rows.Y_dev.size:
        dev_error = squared_error(rows.Y_dev, predict(rows.X_dev))
    return Record(
        alpha=model.alpha,
        dev_error=dev_error,
        test_errors=squared_errors(rows.Y_test, prediction).astype(np.float32),
        accuracy=accuracy(rows.Y_test, prediction),
        log_loss=log_loss(rows.Y_test, prediction),
        zeros=float((prediction == 0).mean()),
        objective=model.objective,
        gradient_norm=model.gradient_norm,
        n_iter=model.n_iter,
        status=model.status.value,
        converged=model.status.converged,
        seconds=seconds,
        device=device,
    )
