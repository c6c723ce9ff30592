"""Seed bugs, one at a time, and list those that the tests do not detect.

Each mutant of ``mutants.toml`` replaces one piece of text in one file, in a copy of the tree, and
names the fastest tests that should fail. If they fail, the mutant is killed. The text must occur
exactly once in the file; otherwise the mutant is stale, which is an error like a survivor. A mutant
without an observable effect has a ``reason``, and may survive.

    python tools/mutants.py                  # all mutants, which takes about half an hour
    python tools/mutants.py --only tsallis   # mutants whose name or file contains this word
    python tools/mutants.py --check          # only check for stale mutants
"""

import argparse
import concurrent.futures
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("src", "tests", "docs", "examples", "tools", "benchmarks")
MAX_SECONDS = 900
# signals of crashes in compiled code; other signals come from outside
CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)


class Result(Enum):
    """The result of a mutant."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    EXCUSED = "survived, with a reason"
    STALE = "STALE: its text is not once in the file"
    UNTESTED = "UNTESTED: its tests fail without it, or it selects none"

    @property
    def is_fine(self) -> bool:
        """True if the result needs no action."""
        return self in (Result.KILLED, Result.EXCUSED)


@dataclass(frozen=True)
class Mutant:
    """One seeded bug.

    Attributes:
        name: a description of the bug.
        file: the file with the bug.
        find: the text to replace, which occurs once in the file.
        replace: the new text.
        tests: files, folders or tests that should fail.
        select: an expression for ``pytest -k``, which selects among them.
        reason: why the bug has no observable effect, if it has none.
    """

    name: str
    file: str
    find: str
    replace: str
    tests: tuple[str, ...]
    select: str = ""
    reason: str = ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of pytest."""
        return (*self.tests, "-k", self.select) if self.select else self.tests

    @property
    def is_stale(self) -> bool:
        """True if the text does not occur exactly once in the file."""
        file = ROOT / self.file
        return not file.is_file() or file.read_text().count(self.find) != 1

    @contextmanager
    def seeded(self, root: Path) -> Iterator[None]:
        """Apply the bug to the copy in ``root``, and revert it afterwards."""
        path = root / self.file
        before = path.read_text()
        path.write_text(before.replace(self.find, self.replace))
        try:
            yield
        finally:
            path.write_text(before)


def read_mutants(path: Path) -> list[Mutant]:
    """The mutants of ``mutants.toml``."""
    rows = tomllib.loads(path.read_text())["mutant"]
    mutants = [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows]
    names = [mutant.name for mutant in mutants]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two mutants have the name {twice!r}")
    return mutants


def copy_tree(target: Path) -> None:
    """Copy the files that the tests need, without compiled files."""
    ignore = shutil.ignore_patterns("__pycache__", "*.nbc", "*.nbi", "_build")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target / part, ignore=ignore)
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy(file, target / file.name)


def run_tests(root: Path, arguments: tuple[str, ...], numba_cache: Path) -> bool:
    """True if the tests pass in a copy of the tree."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(root / "src"),
        "JAX_PLATFORMS": "cpu",
        # a file that changes twice in a second must not be mistaken for its old version
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(numba_cache),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=root,
            env=environment,
            timeout=MAX_SECONDS,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False  # an endless loop counts as a failure
    if -done.returncode in CRASHES:
        return False
    if done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
        return False  # with and without the bug: untested
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return done.returncode == 0


def try_mutant(mutant: Mutant, root: Path, known: dict[tuple[str, ...], bool]) -> Result:
    """Run the tests of a mutant with it and, unless that is ``known``, without it."""
    if mutant.is_stale:
        return Result.STALE
    shared = root / "numba"
    with mutant.seeded(root), tempfile.TemporaryDirectory() as own:
        # Numba does not notice changes in the callees of a cached function
        cache = Path(own) if "engines/compiled" in mutant.file else shared
        survived = run_tests(root, mutant.arguments, cache)
    if survived:
        return Result.EXCUSED if mutant.reason else Result.SURVIVED
    if mutant.arguments not in known:
        known[mutant.arguments] = run_tests(root, mutant.arguments, shared)
    return Result.KILLED if known[mutant.arguments] else Result.UNTESTED


def main() -> int:
    """Try all mutants, and print their results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a word in the name or the file")
    parser.add_argument("--part", default="1/1", help="such as 2/4, the second quarter of the list")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    parser.add_argument("--check", action="store_true", help="only report stale mutants")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    mutants = [
        mutant
        for mutant in read_mutants(Path(__file__).with_suffix(".toml"))
        if arguments.only in mutant.name or arguments.only in mutant.file
    ][part - 1 :: parts]
    if arguments.check:
        mutants = [mutant for mutant in mutants if mutant.is_stale]
    results = list(_try_all(mutants, arguments.jobs))
    for result in Result:
        if result in results:
            print(f"{results.count(result)} {result.value}")
    return 0 if all(result.is_fine for result in results) else 1


def _try_all(mutants: list[Mutant], jobs: int) -> Iterator[Result]:
    """The results in order, each printed as soon as it is available."""
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ThreadPoolExecutor(jobs) as pool,
    ):
        copies: queue.Queue[Path] = queue.Queue()
        known: dict[tuple[str, ...], bool] = {}
        for i in range(jobs):
            copies.put(Path(folder) / str(i))
            copy_tree(Path(folder) / str(i))

        def run(mutant: Mutant) -> Result:
            root = copies.get()
            try:
                return try_mutant(mutant, root, known)
            finally:
                copies.put(root)

        for mutant, result in zip(mutants, pool.map(run, mutants), strict=True):
            print(f"{result.value:8}  {mutant.name}  ({mutant.file})", flush=True)
            yield result


if __name__ == "__main__":
    raise SystemExit(main())
