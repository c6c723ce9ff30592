"""Seeds bugs, one at a time, and says which ones the tests do not notice.

Each mutant of ``mutants.toml`` replaces one piece of text of one file, in a copy of the tree, and
names the tests that should fail. A mutant is killed where they do. Its text must occur exactly once
in the file, so that a list that has fallen behind the code is an error, not a survivor.

    python tools/mutants.py                  # all of them, which takes about half an hour
    python tools/mutants.py --only tsallis   # those whose name or file has this word
"""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("src", "tests", "docs", "examples", "tools", "benchmarks")
FILES = ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile")
MAX_SECONDS = 600


@dataclass(frozen=True)
class Mutant:
    """One seeded bug."""

    name: str
    file: str
    find: str
    replace: str
    tests: tuple[str, ...]

    def apply(self, root: Path) -> None:
        """Change the file below ``root``."""
        path = root / self.file
        text = path.read_text()
        count = text.count(self.find)
        if count != 1:
            raise ValueError(f"{self.name}: {self.find!r} occurs {count} times in {self.file}")
        path.write_text(text.replace(self.find, self.replace))


def read_mutants(path: Path) -> list[Mutant]:
    """The list, checked against the tree."""
    rows = tomllib.loads(path.read_text())["mutant"]
    mutants = [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows]
    names = [mutant.name for mutant in mutants]
    if len(set(names)) != len(names):
        raise ValueError("two mutants have the same name")
    for mutant in mutants:
        if (ROOT / mutant.file).read_text().count(mutant.find) != 1:
            raise ValueError(f"{mutant.name}: {mutant.find!r} is not once in {mutant.file}")
    return mutants


def copy_tree(target: Path) -> None:
    """What the tests need, without compiled files."""
    ignore = shutil.ignore_patterns("__pycache__", "*.nbc", "*.nbi", "_build")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target / part, ignore=ignore)
    for name in FILES:
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, target / name)


def run_tests(root: Path, tests: tuple[str, ...]) -> bool:
    """Whether the tests pass."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "JAX_PLATFORMS": "cpu"}
    environment["NUMBA_CACHE_DIR"] = str(root / "numba")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
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
        return False  # an endless loop is noticed, too
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return done.returncode == 0


def survives(mutant: Mutant | None, tests: tuple[str, ...]) -> bool:
    """Whether the tests pass in a copy of the tree, with the mutant in it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy_tree(root)
        if mutant is not None:
            mutant.apply(root)
        return run_tests(root, tests)


def main() -> int:
    """Try all mutants, and print the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a word in the name or the file")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    arguments = parser.parse_args()
    mutants = [
        mutant
        for mutant in read_mutants(Path(__file__).with_suffix(".toml"))
        if arguments.only in mutant.name or arguments.only in mutant.file
    ]
    tests = tuple(sorted({test for mutant in mutants for test in mutant.tests}))
    if not survives(None, tests):
        print("the tests fail without a mutant")
        return 2
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(lambda mutant: survives(mutant, mutant.tests), mutants))
    for mutant, survived in zip(mutants, results, strict=True):
        print(f"{'SURVIVED' if survived else 'killed  '}  {mutant.name}  ({mutant.file})")
    killed = results.count(False)
    print(f"{killed} of {len(mutants)} mutants killed")
    return 0 if killed == len(mutants) else 1


if __name__ == "__main__":
    raise SystemExit(main())
