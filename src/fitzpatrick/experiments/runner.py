"""Run the paths of an experiment, several at a time, and take up those that were interrupted."""

import math
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..linear_model import ProportionRegressor
from .protocol import Experiment, FitPath, Protocol, Rows, split, squared_errors, whole
from .records import Record, Store, choose

_POLL_SECONDS = 0.5

Report = Callable[[int], None]
AfterFit = Callable[[], None]


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
    with ProcessPoolExecutor(
        min(n_jobs, len(open_paths)), context, _initialize, (experiment, store)
    ) as pool:
        pending: set[Future[None]] = {pool.submit(_work, path) for path in open_paths}
        try:
            while pending:
                done, pending = wait(pending, _POLL_SECONDS, FIRST_COMPLETED)
                for future in done:
                    future.result()
                report(store.count(paths))
        except BaseException:
            for future in pending:
                future.cancel()
            raise


_job: tuple[Experiment, Store] | None = None


def _initialize(experiment: Experiment, store: Store) -> None:
    """Hand the data to a worker once, not with every path."""
    global _job
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _job = experiment, store


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
    """Fit one loss on one seed's rows over the grid, from where the records end; then refit."""
    protocol = store.protocol
    if len(store.finished(path)) < len(protocol.alphas):
        _walk(experiment, store, path, after_fit)
    if protocol.refit and store.refit(path) is None:
        chosen = choose(store.finished(path))
        record = _fit(_model(path, protocol), whole(experiment, protocol), chosen.alpha)
        store.add_refit(path, replace(record, dev_error=chosen.dev_error))
        after_fit()


def _walk(experiment: Experiment, store: Store, path: FitPath, after_fit: AfterFit) -> None:
    """The grid, from the strongest penalty that is not on record."""
    protocol = store.protocol
    finished = len(store.finished(path))
    state = store.state(path, finished - 1) if finished else None
    if finished and state is None:
        finished = 0  # without the state the path is walked again; it gives the same records
    store.discard_states(path, finished - 1)
    rows = split(experiment, protocol, path.seed)
    model = _model(path, protocol)
    if state is not None:
        model.coef_, model.intercept_ = state["coef"], state["intercept"]
    for index in range(finished, len(protocol.alphas)):
        record = _fit(model, rows, protocol.alphas[index])
        store.add(path, index, record, {"coef": model.coef_, "intercept": model.intercept_})
        after_fit()


def _model(path: FitPath, protocol: Protocol) -> ProportionRegressor:
    return ProportionRegressor(
        path.loss,
        fit_intercept=protocol.intercept,
        standardize=protocol.scaling == "standardize",
        tol=protocol.tol,
        max_iter=protocol.max_iter,
        warm_start=True,
        n_threads=1,
    )


def _fit(model: ProportionRegressor, rows: Rows, alpha: float) -> Record:
    start = time.perf_counter()
    with warnings.catch_warnings():
        # the record says whether the fit converged
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(alpha=alpha).fit(rows.X, rows.Y)
    seconds = time.perf_counter() - start
    prediction = model.predict(rows.X_test)
    dev_error = (
        float(squared_errors(rows.Y_dev, model.predict(rows.X_dev)).mean())
        if rows.Y_dev.size
        else math.nan
    )
    return Record(
        alpha=alpha,
        dev_error=dev_error,
        test_errors=squared_errors(rows.Y_test, prediction).astype(np.float32),
        zeros=float((prediction == 0).mean()),
        objective=float(model.objective_),
        gradient_norm=float(model.gradient_norm_),
        n_iter=int(model.n_iter_),
        status=model.status_.value,
        converged=bool(model.status_.converged),
        seconds=seconds,
    )
