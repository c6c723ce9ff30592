"""The systematic study: which loss, which tightness, for whom.

    FITZPATRICK_DATA=DIR python benchmarks/study.py run [--part linear …] [--sets …] [--jobs N]
    python benchmarks/study.py page
    FITZPATRICK_DATA=DIR python benchmarks/study.py check --share 0.1

``run`` measures the cells that are not on record and stores each cell at once. ``page`` writes the
tables and figures of docs/study.md from the records. ``check`` measures some cells again.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from _gpu import machine
from _machine import describe
from joblib import Parallel, delayed
from study_parts import page, records
from study_parts.data import LOSSES, ONCE, SETS, YEAST, MissingDataError, load
from study_parts.fits import COPIES, ENTROPY, FINER, GPU, SIMULATIONS, Cell, measure_at_once
from tqdm import tqdm  # type: ignore[import-untyped]

TIGHTNESSES = (0.0, 0.5, 1.0, 2.0, 4.0)
BOOSTED = (
    "iris", "flags", "wine", "painting", "music", "emotions", "budget_uk", "yeast_spo5",
    "us_counties", "yeast_spoem", "breast_cancer", "yeast_alpha", "cifar10h", "yeast", "emotion6",
    "digits_counts",
)  # fmt: skip
NETWORK = ("digits", "emotions", "fashion_mnist", "yeast_spo5", "cifar10h")
PAPER_SETS = ("flags", "emotions", "yeast", "scene", "delicious")
FOLDS = tuple(f"yeast_{name}" for name in YEAST)
PARTS = ("linear", *FINER, "boosted", "network", GPU, "simulation", "paper", "folds")
SPLITS, REPETITIONS = 10, 20
Job = tuple[str, tuple[Cell, ...]]  # cells that are measured together


def sets_of(part: str) -> tuple[str, ...]:
    linear = tuple(name for name in SETS if name not in ONCE)
    special = {"boosted": BOOSTED, "network": NETWORK, GPU: NETWORK, "paper": PAPER_SETS,
               "folds": FOLDS}  # fmt: skip
    return tuple(SIMULATIONS) if part == "simulation" else special.get(part, linear)


def design(part: str, name: str) -> Iterator[Cell]:
    """The cells of a set, split by split."""
    splits = REPETITIONS if part == "simulation" else 1 if name in ONCE else SPLITS
    for split in range(splits):
        if part == "simulation":
            configurations = [(loss, c) for loss in LOSSES[:2] for c in TIGHTNESSES]
        elif part == "paper":
            configurations = [(loss, c) for loss in page.PAPER_LOSSES for c in (0.0, 1.0)]
        elif part == "folds":
            configurations = [(loss, c) for loss in LOSSES[:3] for c in (0.0, 1.0)]
            configurations.append((ENTROPY, 0.0))
        else:
            losses = ("poisson",) if name == "digits_counts" else LOSSES
            configurations = [(loss, c) for loss in losses for c in TIGHTNESSES]
            if part not in ("network", GPU) and name != "digits_counts":
                configurations.append((COPIES, 0.0))
        yield from (Cell(name, split, loss, c) for loss, c in configurations)


def available(names: Iterable[str], *, said: set[str]) -> Iterator[str]:
    """Data sets whose files are available; prints the others once."""
    for name in names:
        try:
            if name in SETS:
                load(name)
            yield name
        except MissingDataError as error:
            if name not in said:
                print(f"left out: {name} ({error})", file=sys.stderr)
            said.add(name)


def together(part: str, cells: Iterable[Cell]) -> list[Job]:
    """Each cell by itself; on a GPU all splits of a candidate at once."""
    groups: dict[object, tuple[Cell, ...]] = {}
    for cell in cells:
        key = (cell.data, cell.loss, cell.tightness) if part == GPU else cell
        groups[key] = (*groups.get(key, ()), cell)
    return [(part, group) for group in groups.values()]


def parts_here(parts: Iterable[str]) -> Iterator[str]:
    for part in parts:
        if part == GPU and not has_gpu():
            print("left out: networks on a GPU (PyTorch finds no CUDA device)", file=sys.stderr)
        else:
            yield part


def has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def missing(folder: Path, parts: list[str], sets: list[str], losses: list[str]) -> list[Job]:
    said: set[str] = set()
    jobs = []
    for part in parts:
        done = records.read(folder, part)
        wanted = page.clear_cells(folder, part) if part in FINER else None
        names = [name for name in sets_of(part) if not sets or name in sets]
        for name in available(names, said=said):
            cells = [cell for cell in design(part, name) if cell not in done]
            jobs += together(part, [
                cell for cell in cells if (not losses or cell.loss in losses)
                and (wanted is None or (cell.data, cell.loss, f"{cell.tightness:g}") in wanted)
            ])  # fmt: skip
    return jobs


def describe_sets(folder: Path, names: Iterable[str]) -> None:
    """Add a description of these data sets to sets.csv; simulations have none."""
    path = folder / "sets.csv"
    known = pd.read_csv(path, index_col="name") if path.exists() else pd.DataFrame()
    for name in available((name for name in names if name not in known.index), said=set()):
        task = load(name)
        train, test = task.split(0)
        row = {
            "kind": task.kind,
            "rows": task.X.shape[0],
            "features": task.X.shape[1],
            "classes": task.targets.shape[1],
            "zeros": round(float((task.targets == 0).mean()), 4),
            "train": len(train),
            "test": len(test),
        }
        known = pd.concat([known, pd.DataFrame([row], [name])])
    known.rename_axis("name").to_csv(path)


def measured(job: Job) -> tuple[Job, list[records.Values]]:
    return job, measure_at_once(*job)


def results(jobs: list[Job], n_jobs: int, title: str) -> Iterator[tuple[str, Cell, records.Values]]:
    pool = Parallel(n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs", batch_size=1)
    work = pool(delayed(measured)(job) for job in jobs)
    for (part, cells), values in tqdm(work, title, len(jobs), unit="job", mininterval=5):
        yield from ((part, *one) for one in zip(cells, values, strict=True))


def run(folder: Path, arguments: argparse.Namespace) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    parts = list(parts_here(arguments.part or PARTS))
    abouts = {"gpu.json": machine} if GPU in parts else {}
    abouts |= {"machine.json": describe} if set(parts) - {GPU} else {}
    for name, about in abouts.items():
        text = json.dumps(about(), indent=1, default=str)
        (folder / name).write_text(text + "\n", encoding="utf-8")
    describe_sets(folder, [name for name in SETS if not arguments.sets or name in arguments.sets])
    jobs = missing(folder, parts, arguments.sets, arguments.losses)
    for part, cell, values in results(jobs, arguments.jobs, "study"):
        records.add(folder, part, cell, values)


def check(folder: Path, arguments: argparse.Namespace) -> int:
    """Measure a share of the records again; 1 if some differ by more than one in a thousand."""
    jobs: list[Job] = []
    old: dict[tuple[str, Cell], records.Values] = {}
    for part in parts_here(arguments.part or PARTS):
        here = set(available(sets_of(part), said=set()))
        cells = {
            cell: values
            for cell, values in records.read(folder, part).items()
            if cell.data in here and (not arguments.sets or cell.data in arguments.sets)
        }
        jobs += together(part, cells)
        old |= {(part, cell): values for cell, values in cells.items()}
    jobs = random.Random(arguments.seed).sample(sorted(jobs), round(arguments.share * len(jobs)))
    worst = []
    for part, cell, values in results(jobs, arguments.jobs, "check"):
        before, now = old[part, cell]["squared_error"], values["squared_error"]
        worst.append(abs(now / before - 1) if before else abs(now))
        if worst[-1] > 1e-3:
            print(f"{part}, {cell}: {before:.6g} on record, now {now:.6g}", file=sys.stderr)
    apart = int(np.sum(np.asarray(worst) > 1e-3))
    print(f"{len(worst)} cells measured again, {apart} differ by more than one in a thousand")
    print(f"largest relative difference of the squared error: {max(worst, default=0):.2g}")
    return int(apart > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["run", "page", "check"])
    parser.add_argument("--part", action="append", choices=PARTS, help="by default all of them")
    parser.add_argument("--sets", nargs="*", default=[], help="by default all that are available")
    parser.add_argument("--losses", nargs="*", default=[], help="by default all")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=records.RESULTS)
    arguments = parser.parse_args()
    if arguments.what == "page":
        page.write(arguments.results)
        return 0
    if arguments.what == "check":
        return check(arguments.results, arguments)
    run(arguments.results, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
