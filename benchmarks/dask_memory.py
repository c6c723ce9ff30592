"""Fit a data set several times as large as the memory of its worker, with ``persist=False``.

Dask enforces the memory limit of the worker, and kills it at 95 % of the limit. The peak is the
largest resident memory that the kernel has recorded. The results are stored in a JSON file.
Run: python benchmarks/dask_memory.py [--limit-mb 512] [--times 4.5]
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from _cluster import Rows, cluster, load, write_table
from _machine import RESULTS, write_record

from fitzpatrick.dask import FitzpatrickClassifier


def peak_bytes() -> int:
    """The largest resident memory of this process so far.

    This is not ``ru_maxrss``, which a process inherits from its parent, which wrote the data.
    """
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in status if line.startswith("VmHWM:")).split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit-mb", type=int, default=512)
    parser.add_argument("--times", type=float, default=4.5)
    parser.add_argument("--chunk-mb", type=int, default=16)
    parser.add_argument("--tol", type=float, default=1e-3)
    options = parser.parse_args()
    d, k = 128, 4
    chunk = options.chunk_mb * 2**20 // (8 * d)
    n_chunks = int(options.times * options.limit_mb / options.chunk_mb) + 1
    before = load()
    with tempfile.TemporaryDirectory() as folder:
        rows = Rows.write(Path(folder), n_chunks * chunk, d, k)
        size = rows.X.stat().st_size
        iterations: list[Any] = []
        with cluster(1, memory=f"{options.limit_mb}MiB") as client:
            pids = client.run(os.getpid)
            start = time.perf_counter()
            model = FitzpatrickClassifier(
                "logistic", 10.0, tol=options.tol, persist=False, callback=iterations.append
            )
            model.fit(*rows.chunked(chunk))
            seconds = time.perf_counter() - start
            peak = max(client.run(peak_bytes).values())
            survived = client.run(os.getpid) == pids
    limit = options.limit_mb * 2**20
    record = {
        "load": [before, load()],
        "rows": n_chunks * chunk,
        "features": d,
        "classes": k,
        "chunks": n_chunks,
        "data_bytes": size,
        "worker_limit_bytes": limit,
        "data_over_limit": size / limit,
        "peak_bytes": peak,
        "peak_over_limit": peak / limit,
        "worker_survived": survived,
        "seconds": seconds,
        "iterations": model.n_iter_,
        "tol": options.tol,
        "status": model.status_.value,
    }
    write_table(
        "dask_memory",
        {
            "data": f"{size / 2**20:.0f} MiB, {size / limit:.1f} × the limit",
            "limit of the worker": f"{limit / 2**20:.0f} MiB",
            "peak of the worker": f"{peak / 2**20:.0f} MiB, {peak / limit:.2f} × the limit",
            "chunks, iterations, seconds": f"{n_chunks}, {model.n_iter_}, {seconds:.0f}",
            "tol": f"{options.tol:g}",
        },
    )
    write_record(RESULTS / "dask_memory.json", **record)
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
