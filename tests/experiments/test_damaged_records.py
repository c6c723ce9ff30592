"""Records that something changed: one line that names the file, or the very same table."""

import base64
import functools
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fitzpatrick.datasets import load_dataset
from fitzpatrick.datasets._files import remove_leftovers, write_atomically
from fitzpatrick.experiments import reproduce, runner
from fitzpatrick.experiments.protocol import Experiment
from fitzpatrick.experiments.records import Record

LOSSES = ("--losses", "logistic,fitzpatrick_sparsemax", "--alphas", "1e3,1e2")
ARGUMENTS = ("reproduce", "-j", "1", "--seeds", "1", *LOSSES)

WRONG_VALUES = (None, -1, 0.5, float("nan"), "0.5", [0.5])


class Killed(BaseException):
    """In the middle of a path."""


class Folder:
    """The records of a run, put back after every damage."""

    def __init__(self, run, table):
        [self.root] = Path("out/records/yeast").iterdir()
        self.run, self.table = run, table
        self.kept = {file: file.read_bytes() for file in self.root.rglob("*") if file.is_file()}

    def put_back(self):
        for file in self.root.rglob("*"):
            if file.is_file() and file not in self.kept:
                file.unlink()
        for file, content in self.kept.items():
            if not file.is_file() or file.read_bytes() != content:
                file.parent.mkdir(exist_ok=True)
                file.write_bytes(content)

    def outcome(self, file, damaged, said=""):
        """What a run says to a damaged file."""
        file.write_bytes(damaged)
        code, out, err = self.run(*ARGUMENTS)
        self.put_back()
        if code == 0:
            assert out == self.table, said
            return "the same table"
        assert code == 2, said
        *progress, line = err.splitlines()
        assert all(re.fullmatch(r"yeast: .* fits.*", one) for one in progress), said
        assert re.fullmatch(rf"error: {re.escape(str(file))}: is damaged; delete it, .*", line), (
            said
        )
        return "one line"


@pytest.fixture
def small_yeast(monkeypatch, tmp_path):
    """A part of yeast, read once: fits of some milliseconds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reproduce, "load_dataset", lambda *_, **__: _yeast())
    whole = Experiment.of_dataset(_yeast())
    small = Experiment(
        "yeast", whole.X[:80], whole.Y[:80], whole.X_test[:40], whole.Y_test[:40], {}
    )
    monkeypatch.setattr(Experiment, "of_dataset", lambda _: small)


@functools.cache
def _yeast():
    return load_dataset("yeast")


@pytest.fixture
def folder(small_yeast, run, monkeypatch, capsys):
    """A run of which the first path was interrupted after its first fit."""
    code, table, _ = run(*ARGUMENTS)
    assert code == 0
    for record in Path("out").rglob("logistic-seed0/*.json"):
        record.unlink()
    evaluate, calls = runner._evaluate, []

    def kill_at_the_second(*args):
        calls.append(args)
        if len(calls) > 1:
            raise Killed
        return evaluate(*args)

    monkeypatch.setattr(runner, "_evaluate", kill_at_the_second)
    with pytest.raises(Killed):
        run(*ARGUMENTS)
    capsys.readouterr()
    monkeypatch.setattr(runner, "_evaluate", evaluate)
    return Folder(run, table)


def _field_edits():
    """Each field × each wrong value, and fields that are missing, renamed, added or doubled."""
    fields = [*Record.__dataclass_fields__, "sha256"]
    for name in fields:
        for value in WRONG_VALUES:
            yield f"{name} = {value!r}", lambda content, n=name, v=value: {**content, n: v}
        yield f"no {name}", lambda content, n=name: {k: v for k, v in content.items() if k != n}
        yield (
            f"{name} renamed",
            lambda content, n=name: {(k if k != n else f"{n}_"): v for k, v in content.items()},
        )
    for name in ("alpha", "dev_error", "accuracy", "zeros", "objective", "seconds", "n_iter"):
        yield (
            f"a little more {name}",
            lambda content, n=name: {**content, n: content[n] * 1.0001 + 1},
        )
    yield "a foreign key", lambda content: {**content, "extra": 1}
    yield "a list", lambda content: [content]
    yield "nothing", lambda _: None
    yield "a number", lambda _: 7
    for name, change in {
        "one error less": lambda errors: errors[:-1],
        "one error more": lambda errors: [*errors, 0.0],
        "no errors": lambda _: [],
        "errors of another order": lambda errors: errors[::-1],
        "a NaN among the errors": lambda errors: [np.nan, *errors[1:]],
        "a negative error": lambda errors: [-1.0, *errors[1:]],
        "half of the errors": lambda errors: [error / 2 for error in errors],
    }.items():
        yield name, lambda content, change=change: _with_errors(content, change)


def _with_errors(content, change):
    errors = np.frombuffer(base64.b64decode(content["test_errors"]), "<f4")
    changed = np.asarray(change(errors.tolist()), "<f4")
    return {**content, "test_errors": base64.b64encode(changed.tobytes()).decode()}


def _texts(content):
    """Damage below the level of JSON."""
    yield b""
    yield b"\xff\xfe"
    yield b"[" * 100_000
    yield b'{"a":' * 100_000
    yield b"9" * 10_000
    yield content[:-20]
    yield content + content
    yield content.replace(b'"converged": true', b'"converged": tru')
    yield b"\x00" * len(content)
    yield from _flipped(content, 30)
    draw = random.Random(20)
    for _ in range(10):
        at = draw.randrange(len(content))
        yield content[:at] + content[at + draw.randrange(1, 9) :]


def _flipped(content, count):
    """With one bit of one byte turned."""
    draw = random.Random(21)
    for _ in range(count):
        damaged = bytearray(content)
        damaged[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        yield bytes(damaged)


def test_fields_of_a_record(folder):
    file = folder.root / "fitzpatrick_sparsemax-seed0" / "01.json"
    content = json.loads(file.read_text())
    count = 0
    for said, change in _field_edits():
        changed = change(dict(content))
        outcome = folder.outcome(file, json.dumps(changed).encode(), said)
        assert outcome == "one line" or changed == content, said
        count += 1
    assert count >= 120


@pytest.mark.parametrize("name", ["fitzpatrick_sparsemax-seed0/00.json", "settings.json"])
def test_bytes_of_a_record(folder, name):
    file = folder.root / name
    outcomes = [folder.outcome(file, damaged) for damaged in _texts(file.read_bytes())]
    assert outcomes.count("one line") >= 35


def test_records_in_the_wrong_place(folder):
    file = folder.root / "fitzpatrick_sparsemax-seed0" / "00.json"
    for other in (file.with_name("01.json"), folder.root / "logistic-seed0" / "00.json"):
        assert folder.outcome(file, other.read_bytes()) == "one line"


def test_state_of_an_interrupted_path(folder, tmp_path):
    file = folder.root / "logistic-seed0" / "00.state.npz"
    content = file.read_bytes()
    damaged = [b"", content[:-1], content + b"x", content[:100], b"PK\x03\x04", content[::-1]]
    damaged += _flipped(content, 30)
    for header in (b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"):
        for offset in range(4, 22, 2):  # each field of each header
            at = content.index(header) + offset
            damaged.append(content[:at] + b"\xff\xff" + content[at + 2 :])
    for arrays in (
        {"coef": np.ones((2, 2)), "offset": np.ones(2)},
        {"coef": np.asarray([{}], dtype=object), "intercept": np.ones(2)},
    ):
        np.savez(tmp_path / "other.npz", **arrays)
        damaged.append((tmp_path / "other.npz").read_bytes())
    outcomes = [folder.outcome(file, one, str(i)) for i, one in enumerate(damaged)]
    assert outcomes.count("one line") >= 45  # dates, for example, do not matter


def test_deleting_what_is_damaged_helps(folder):
    for file in folder.kept:
        file.write_bytes(b"?")
        assert folder.run(*ARGUMENTS)[0] == 2
        file.unlink()
        assert folder.run(*ARGUMENTS)[:2] == (0, folder.table)
        folder.put_back()


def test_leftovers_of_killed_runs_are_removed(folder):
    """Those beside records and results, and nothing else."""
    beside = folder.root / "fitzpatrick_sparsemax-seed0"
    leftovers = [beside / ".00.json.abcd_012.part", Path("out/.table.txt.abcdefgh.part")]
    others = [beside / "00.json.part", beside / ".mine.part"]
    for one in (*leftovers, *others):
        one.write_text("half")
    assert folder.run(*ARGUMENTS)[:2] == (0, folder.table)
    assert not any(one.exists() for one in leftovers)
    assert [one.read_text() for one in others] == ["half", "half"]


def test_files_that_are_being_written_are_no_leftovers(tmp_path):
    """While another process has its temporary file open, it stays; when that is killed, it goes."""
    code = (
        "import sys, time; from pathlib import Path\n"
        "from fitzpatrick.datasets._files import atomic_path\n"
        "with atomic_path(Path(sys.argv[1])) as path:\n"
        "    path.write_text('half'); print('begin', flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "a.txt"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begin\n"
    remove_leftovers(tmp_path)
    write_atomically(tmp_path / "a.txt", "whole")
    [temporary] = tmp_path.glob(".*.part")
    assert temporary.read_text() == "half"
    process.kill()
    process.communicate(timeout=60)
    assert temporary.exists()
    write_atomically(tmp_path / "a.txt", "again")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
