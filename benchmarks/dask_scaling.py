"""Fits on Dask: one and two workers, the plain estimator, two plain processes, and kills.

The control is the gain of two plain processes over one, on this machine in the same run. Each of
them fits half of the rows with the plain estimator, as two workers would. Contenders take turns.
The results are stored in a JSON file.
Run: python benchmarks/dask_scaling.py [--rounds 3] [--kills 10]
"""

import argparse
import json
import multiprocessing
import os
import random
import signal
import statistics
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import dask.array as da
import numpy as np
from _cluster import Rows, cluster, load, write_table
from _machine import RESULTS, write_record

from fitzpatrick import linear_model
from fitzpatrick.dask import FitzpatrickClassifier
from fitzpatrick.dask._rounds import Rounds

OPTIONS: dict[str, Any] = {"alpha": 10.0, "tol": 1e-4}


def plain_fit(data: tuple[Any, Any]) -> tuple[float, int, Any]:
    """Seconds, iterations and coefficients of the plain estimator on one thread."""
    start = time.perf_counter()
    model = linear_model.FitzpatrickClassifier(n_threads=1, **OPTIONS).fit(*data)
    return time.perf_counter() - start, model.n_iter_, model.coef_


def evaluate_half(paths: Rows, part: int, n_parts: int, passes: int, queue: Any) -> None:
    """Seconds that a process needs for several passes over its part of the rows."""
    X, y = paths.in_memory()
    rows = slice(part * len(X) // n_parts, (part + 1) * len(X) // n_parts)
    X, y = X[rows], y[rows]
    queue.put("ready")
    while not Path(f"{paths.X}.go").exists():
        time.sleep(0.01)
    start = time.perf_counter()
    model = linear_model.FitzpatrickClassifier(n_threads=1, tol=1e-30, max_iter=passes, alpha=10.0)
    warnings.simplefilter("ignore")  # it stops before it converges
    model.fit(X, y)
    queue.put(time.perf_counter() - start)


def process_gain(paths: Rows, passes: int = 3) -> float:
    """Throughput of two plain processes, each on half of the rows, over the throughput of one."""
    seconds: list[float] = []
    for n_parts in (1, 2):
        Path(f"{paths.X}.go").unlink(missing_ok=True)
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        processes = [
            context.Process(target=evaluate_half, args=(paths, part, n_parts, passes, queue))
            for part in range(n_parts)
        ]
        for process in processes:
            process.start()
        for _ in processes:
            queue.get()
        Path(f"{paths.X}.go").touch()
        seconds.append(max(queue.get() for _ in processes))
        for process in processes:
            process.join()
    return seconds[0] / seconds[1]


def dask_fit(data: tuple[Any, Any], **options: Any) -> tuple[float, Any]:
    """Seconds and model of a fit on the current cluster."""
    start = time.perf_counter()
    model = FitzpatrickClassifier(**OPTIONS | options).fit(*data)
    return time.perf_counter() - start, model


def count_rounds(data: tuple[Any, Any]) -> dict[str, int]:
    """Rounds of a fit, and the data that they send."""
    counts = {"rounds": 0}
    run, send = Rounds.run, Rounds.send

    def counted_run(self: Rounds, *args: Any) -> Any:
        counts["rounds"] += 1
        return run(self, *args)

    def counted_send(self: Rounds, name: str, value: Any) -> Any:
        counts[name] = counts.get(name, 0) + 1
        return send(self, name, value)

    with (
        mock.patch.object(Rounds, "run", counted_run),
        mock.patch.object(Rounds, "send", counted_send),
    ):
        dask_fit(data)
    return counts


def nothing(_: Any) -> float:
    return 0.0


def round_seconds(n_chunks: int, repeats: int = 10) -> float:
    """The median time of an empty round."""
    array = da.zeros((n_chunks, 1), chunks=(1, 1))
    rounds = Rounds({"X": list(array.to_delayed().ravel())})
    chunks = rounds.run([rounds.send("nothing", 0.0)], sum, rounds.inputs["X"])[1]
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        rounds.run(rounds.map("nothing", nothing, chunks), sum)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def round_costs() -> dict[str, float]:
    """The cost of an empty round, and of each of its chunks."""
    few, many = round_seconds(8), round_seconds(64)
    chunk = max(0.0, (many - few) / 56)
    return {"seconds_a_round": few - 8 * chunk, "seconds_a_chunk": chunk}


def kills(data: tuple[Any, Any], number: int, seed: int) -> dict[str, Any]:
    """Fits during which a worker is killed at a random moment, against one without.

    Each fit has its own cluster, because a ``LocalCluster`` can continue with fewer workers.
    """
    generator = random.Random(seed)
    with cluster(2):
        dask_fit(data, tol=0.5)  # imports and compiles
        undisturbed, expected = dask_fit(data)
    fits: list[dict[str, float]] = []
    while len(fits) < number:
        with cluster(2) as client:
            dask_fit(data, tol=0.5)
            pid = generator.choice(list(client.run(os.getpid).values()))
            moment = generator.uniform(0, undisturbed)
            timer = threading.Timer(moment, os.kill, (pid, signal.SIGKILL))
            timer.start()
            took, model = dask_fit(data)
            timer.join()
        if took <= moment:
            continue  # the worker was killed after the fit
        difference = float(np.abs(model.coef_ - expected.coef_).max())
        fits.append({"moment": moment, "seconds": took, "difference": difference})
        print(f"kill {len(fits)} at {moment:.1f} of {took:.1f} s: {difference:.1g}", flush=True)
    return {
        "kills": number,
        "largest_difference": max(fit["difference"] for fit in fits),
        "undisturbed_seconds": undisturbed,
        "fits": fits,
    }


def publish(record: dict[str, Any]) -> None:
    """The figures of docs/scaling.md."""
    shape, seconds, costs = (record[name] for name in ("shape", "seconds", "costs"))
    plain, one, two = (statistics.median(times) for times in seconds.values())
    over = record["measured_over_predicted"]
    figures = {
        "problem": "{rows} × {features}, {classes} classes, {chunks} chunks".format(**shape),
        "iterations, rounds": f"{record['iterations']}, {record['counts']['rounds']}",
        "plain estimator, one thread": f"{plain:.1f} s",
        "one worker": f"{one:.1f} s, {one / plain:.2f} × the plain estimator",
        "two workers": f"{two:.1f} s, {one / two:.2f} × as fast as one",
        "two plain processes against one": f"{record['gain_of_two_processes']:.2f} × as fast",
        "efficiency against them": f"{record['efficiency']:.2f}",
        "an empty round, and each chunk": f"{1e3 * costs['seconds_a_round']:.1f} ms, "
        f"{1e3 * costs['seconds_a_chunk']:.2f} ms",
        "measured / predicted, 1 and 2 workers": f"{over['one worker']:.2f}, "
        f"{over['two workers']:.2f}",
        "largest difference of a coefficient": f"{record['largest_difference']:.1g}",
        "load of the machine's two cores before": f"{record['load_before'][0]}",
    }
    if "kills" in record:
        figures[f"the same after each of {record['kills']['kills']} kills"] = (
            f"{record['kills']['largest_difference']:.1g}"
        )
    write_table("dask_scaling", figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--rows", type=int, default=160_000)
    parser.add_argument("--chunks", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    d, k = 512, 128
    before = load()
    with tempfile.TemporaryDirectory() as folder:
        rows = Rows.write(Path(folder), options.rows, d, k)
        data = rows.chunked(options.rows // options.chunks)
        plain, gains, times = [], [], {1: [], 2: []}  # type: ignore[var-annotated]
        for _ in range(options.rounds):
            took, n_iter, coef = plain_fit(rows.in_memory())
            plain.append(took)
            gains.append(process_gain(rows))
            for n_workers, seconds in times.items():
                with cluster(n_workers):
                    dask_fit(data, tol=0.5)  # imports and compiles
                    took, model = dask_fit(data)
                seconds.append(took)
            assert model.n_iter_ == n_iter
        with cluster(1):
            counts = count_rounds(data)
            costs = round_costs()
        one, two = (statistics.median(times[n]) for n in (1, 2))
        gain = statistics.median(gains)
        waiting = counts["rounds"] * (
            costs["seconds_a_round"] + options.chunks * costs["seconds_a_chunk"]
        )
        predicted = [statistics.median(plain) / share + waiting for share in (1, gain)]
        record = {
            "load_before": before,
            "shape": {"rows": options.rows, "features": d, "classes": k, "chunks": options.chunks},
            "iterations": n_iter,
            "counts": counts,
            "largest_difference": float(np.abs(model.coef_ - coef).max()),
            "seconds": {"plain": plain, "one worker": times[1], "two workers": times[2]},
            "seconds_a_chunk_and_round": one / counts["rounds"] / options.chunks,
            "overhead_of_one_worker": one / statistics.median(plain),
            "gain_of_two_processes": gain,
            "gain_of_two_workers": one / two,
            "efficiency": one / two / gain,
            "costs": costs,
            "predicted_seconds": {"one worker": predicted[0], "two workers": predicted[1]},
            "measured_over_predicted": {
                "one worker": one / predicted[0],
                "two workers": two / predicted[1],
            },
        }
        if options.kills:
            record["kills"] = kills(data, options.kills, options.seed)
        record["load_after"] = load()
    publish(record)
    write_record(RESULTS / "dask_scaling.json", **record)
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
