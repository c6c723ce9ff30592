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
from multiprocessing import resource_tracker

import numpy as np

from ..datasets._table import Matrix
from ..linear_model._base import Data
from ..linear_model._fitting import Fitted, Settings
from ..losses import get_loss
from .protocol import Experiment, FitPath, Protocol, Rows, split, squared_errors
from .records import Record, Store

_POLL_SECONDS = 0.5

Report = Callable[[int], None]
AfterFit = Callable[[], None]
State = tuple[np.ndarray, np.ndarray]  # coefficients and intercepts


def run(
    experiment: Experiment, store: Store, paths: list[FitPath], n_jobs: int, report: Report
) -> None:
    """Finish every path; what is on record is not fitted again.

    Args:
        experiment: the data.
        store: where the records are and go.
        paths: what to fit.
        n_jobs: how many paths to fit at a time, each in a process and on one thread.
        report: called with the number of finished fits, now and then.
    """
    open_paths = [path for path in paths if not store.is_complete(path)]
    report(store.count(paths))
    if not open_paths:
        return
    if n_jobs == 1:
        for path in open_paths:
            run_path(experiment, store, path, after_fit=lambda: report(store.count(paths)))
        return
    # spawned workers carry over no threads or locks, and know when their parent is gone
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(
        min(n_jobs, len(open_paths)), context, _initialize, (experiment, store)
    ) as pool:
        try:
            with _no_interrupt():  # until every worker can end without a traceback
                pending: set[Future[None]] = {pool.submit(_work, path) for path in open_paths}
            while pending:
                done, pending = wait(pending, _POLL_SECONDS, FIRST_COMPLETED)
                for future in done:
                    future.result()
                report(store.count(paths))
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


class WorkerError(RuntimeError):
    """A worker process that ended before its work."""


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
        raise RuntimeError("the worker was not initialised")
    run_path(*_job, path, after_fit=lambda: None)


def run_path(experiment: Experiment, store: Store, path: FitPath, after_fit: AfterFit) -> None:
    """Fit one loss on one seed's rows over the grid, from the strongest penalty not on record."""
    protocol = store.protocol
    finished = len(store.finished(path))
    if finished == len(protocol.alphas):
        return
    state = store.state(path, finished - 1) if finished else None
    if finished and state is None:
        finished = 0  # without the state the path is walked again; it gives the same records
    store.discard_states(path, finished - 1)
    model = _Model(split(experiment, protocol, path.seed), path.loss, protocol)
    start = None if state is None else (state["coef"], state["intercept"])
    for index in range(finished, len(protocol.alphas)):
        record, start = model.fit(protocol.alphas[index], start)
        store.add(path, index, record, {"coef": start[0], "intercept": start[1]})
        after_fit()


class _Model:
    """The estimator's problem on some rows, prepared once for every α."""

    def __init__(self, rows: Rows, loss: str, protocol: Protocol) -> None:
        self.rows = rows
        self.settings = Settings(
            loss=get_loss(loss),
            fit_intercept=protocol.intercept,
            standardize=protocol.scaling == "standardize",
            solver="auto",
            tol=protocol.tol,
            max_iter=protocol.max_iter,
            verbose=0,
            n_threads=1,
        )
        if protocol.device is None:
            self.device = "NumPy"
            data = Data(rows.X, rows.Y, rows.Y.shape[1], None, binary=False)
            self.problem = data.problem(self.settings)
        else:
            from ..linear_model._device import device_name, device_problem, find_device

            device = find_device(protocol.device)
            self.device = device_name(device)
            self.problem = device_problem(rows.X, rows.Y, self.settings, device)

    def predict(self, X: Matrix, fitted: Fitted) -> np.ndarray:
        scores = np.asarray(X @ fitted.coef.T) + fitted.intercept
        design = self.problem.design
        return np.asarray(design.fetch(self.settings.loss.link(design.place(scores))))

    def fit(self, alpha: float, start: State | None) -> tuple[Record, State]:
        """The record of one α, and the coefficients to start the next one from."""
        rows = self.rows
        begin = time.perf_counter()
        fitted = self.problem.fit(alpha, start)
        seconds = time.perf_counter() - begin
        prediction = self.predict(rows.X_test, fitted)
        dev_error = (
            float(squared_errors(rows.Y_dev, self.predict(rows.X_dev, fitted)).mean())
            if rows.Y_dev.size
            else math.nan
        )
        record = Record(
            alpha=alpha,
            dev_error=dev_error,
            test_errors=squared_errors(rows.Y_test, prediction).astype(np.float32),
            zeros=float((prediction == 0).mean()),
            objective=float(fitted.result.objective),
            gradient_norm=float(fitted.result.gradient_norm),
            n_iter=int(fitted.result.n_iter),
            status=fitted.result.status.value,
            converged=bool(fitted.result.status.converged),
            seconds=seconds,
            device=self.device,
        )
        return record, (fitted.coef, fitted.intercept)
