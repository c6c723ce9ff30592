"""Damaged and odd files for every reader: the answer is what is right or one sentence, and soon.

``make fuzz SECONDS=60`` runs all targets in turn with a new seed, which is printed; ``python
tools/fuzz.py --seed N`` repeats a run. A case is a valid file with a few mutations. What comes out
of a reader must be

- a :class:`DataError` of one line, or
- a table of finite numbers, whose recipe survives JSON and makes the same features of the same file
  again; ``predict`` would otherwise see other features than ``fit``; or
- a model whose coefficients are finite and that survives being saved again; or
- the very record, or state of a path, that was written.

Anything else, and any case that takes longer than ``MAX_SECONDS``, ends the run with the file's
content in ``fuzz-case.*``. The memory of the process is capped.
"""

import argparse
import gzip
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fitzpatrick.datasets import (
    Columns,
    DataError,
    ReadOptions,
    Table,
    _load,
    read_cells,
    read_inputs,
    read_label_names,
    read_table,
)
from fitzpatrick.experiments import model_files, models
from fitzpatrick.experiments.protocol import Experiment, FitPath, LossChoice, Protocol
from fitzpatrick.experiments.records import Record, Store

MAX_SECONDS = 10.0
MAX_MEMORY = 4 << 30


class ReaderFailureError(AssertionError):
    """An answer that no reader may give."""


@dataclass(frozen=True)
class Target:
    """A reader: valid files, words that matter to it, and how it is called."""

    suffix: str
    examples: tuple[bytes, ...]
    words: tuple[bytes, ...]
    read: Callable[[Path, random.Random], Table | None]


_CSV_WORDS = tuple(
    word.encode()
    for word in (
        ",", ";", "\t", "|", '"', "'", "\n", "\r", "\r\n", "sep=;\n", "#", " ", "\xa0", "NA", "nan",
        "-", "?", "inf", "1e999", "1,234", "1.234", "1.234,5", "12 %", "$5", "€ 7", "007", "yes",
        "no", "TRUE", "2024-01-31", "12:30", "3 kg", "a;b", "a|b", "ä", "_", "1_0", "x" * 2000,
        "id", "-0", "+5", "0x10", "９", "\u2028", "=1+1", "1 234", "5e-324", "\ufeff",
    )
)  # fmt: skip
_CSV_EXAMPLES = (
    b"x,z,y\n1.5,red,u\n2,blue,v\n,red,u\n4.25,NA,v\n",
    b"id;Gr\xf6\xdfe;Anteil;y\r\n1;1,5;12 %;u\r\n2;2,5;50 %;v\r\n3;;0;u\r\n",
    'x,tags,y\n1,"a;b",u\n2,b,v\n3,"a;c",u\n4,c,v\n'.encode("utf-16"),
    b'"","x","a","b"\n"1",1.5,1,0\n"2",2.25,0,1\n"3",-3,1,1\n',
    b"# made by a tool\nx|a|b\n1|0.25|0.75\n2|1|0\n3|0.5|0.5\n",
    b"x a b\n1 2.5 20 80\n2 3.5 50 50\n",
    b'"n\nm",y\n"1\n2",u\n3,v\n',
)
_ARFF_EXAMPLES = (
    b"% c\n@relation 'r: -C 2'\n@attribute a {0,1}\n@attribute b {no,yes}\n@attribute x numeric\n"
    b"@attribute 'it\\'s' {red,'light, blue'}\n@attribute s string\n@data\n"
    b"1,no,2.5,red,'a b'\n0,yes,?,'light, blue',?\n1,yes,-1,red,c\n",
    b"@relation r\n@attribute x numeric\n@attribute c {u,v}\n@attribute a {0,1}\n@attribute b {0,1}"
    b"\n@data\n{0 1.5, 2 1}\n{1 v, 3 1}\n{}\n{0 -2,2 1,3 1}\n",
)
_ARFF_WORDS = tuple(
    word.encode()
    for word in (
        "@data", "@attribute", "@relation", "{", "}", ",", "'", '"', "\\", "\\'", "?", "%", "{0 1}",
        "numeric", "string", "date", "-C 1", "-C -2", "\n", " ", "1e999", "nan", "{0,1}", "\\u0041",
    )
)  # fmt: skip
_LIBSVM_EXAMPLES = (b"0,2 1:1.5 3:2\n 2:1\n1 1:-1e-3 # c\n", b"0 1:1\n1 2:1\n0,1 3:1\n")
_LIBSVM_WORDS = (*b": , 0 -1 1e999 nan # 999999 _ \xc2\xb2".split(), b" ", b"\n")
_XML_EXAMPLES = (
    b'<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">'
    b'<label name="a"></label><label name="b&amp;c"><label name="d"/></label></labels>',
)
_XML_WORDS = (*b'< > & &a; label name= "'.split(), b"<!DOCTYPE x>", b'<!ENTITY a "b">')
_SUMS_EXAMPLES = (b"# sums\n" + b"0" * 64 + b"  a.svm\n" + b"f" * 64 + b" *./b c.svm\n",)
_JSON_WORDS = (
    *b'{ } [ ] , : " \\ null true NaN Infinity -1 1e999 0.5 {} [] "" \xff'.split(),
    b"9" * 5000,
    b"[" * 5000,
    b'"format"',
    b'"version": 2',
    b'"kind": "numbers"',
    b'"values"',
)


_JSON_EXAMPLES = (
    b'{"x": 1.5, "c": "red", "y": "u"}\n{"c": null, "x": 2, "y": "v"}\n{"y": "u", "x": -1e3}\n',
)


def _options(draw: random.Random) -> ReadOptions:
    return ReadOptions(
        missing=draw.choice(("impute",) * 6 + ("drop", "error")),
        categories=draw.choice(("encode",) * 7 + ("error",)),
        decimal=draw.choice((None,) * 6 + (".", ",")),
        missing_values=draw.choice(((), (), ("k. A.",), ("1",))),
    )


def _read_csv(path: Path, draw: random.Random) -> Table:
    content = path.read_bytes().replace(b"\0", b"")
    targets = ["a", "b"] if b"a" in content[:40] and b"b" in content[:40] else ["y"]
    targets = draw.choice((*[targets] * 6, ["tags"], ["x"]))
    return _checked(path, targets, _options(draw), plain=draw.random() < 0.2)


def _read_arff(path: Path, draw: random.Random) -> Table:
    targets = draw.choice((["a", "b"], ["a", "b"], ["a", "b"], None, ["c"]))
    return _checked(path, targets, _options(draw), plain=draw.random() < 0.2)


def _read_json_lines(path: Path, draw: random.Random) -> Table:
    return _checked(path, ["y"], _options(draw))


def _read_libsvm(path: Path, _: random.Random) -> Table:
    return _checked(path, None, ReadOptions())


def _read_xml(path: Path, _: random.Random) -> None:
    names = read_label_names(path)
    if not names or not all(isinstance(name, str) for name in names):
        raise ReaderFailureError("labels without names")


def _read_sums(path: Path, _: random.Random) -> None:
    for name, digest in _load._read_sums(path).items():
        if not name or not re.fullmatch("[0-9a-f]{64}", digest):
            raise ReaderFailureError("a checksum that is none")


def _models() -> tuple[bytes, ...]:
    """Models of words, gaps and tags, and of a LIBSVM file."""
    contents = []
    with tempfile.TemporaryDirectory() as folder:
        text = "x,c,t,y\n1,red,a;b,u\n2,blue,b,v\n,red,a;c,u\n4,,c,v\n5,blue,b;c,u\n"
        files = {"a.csv": (text, ["y"]), "a.svm": ("0,1 1:1 2:3\n1 2:1\n0 1:2\n", None)}
        for name, (content, targets) in files.items():
            file = Path(folder) / name
            file.write_text(content)
            table = read_table(file, targets)
            found = models.fit(table, file, "logistic", 1.0, intercept=True, standardize=True)
            model_files.save(found.model, file.with_suffix(".model"))
            contents.append(file.with_suffix(".model").read_bytes())
    return tuple(contents)


def _read_model(path: Path, _: random.Random) -> None:
    model = model_files.load(path)
    if not np.isfinite(model.estimator.coef_).all():
        raise ReaderFailureError("coefficients that are not finite")
    again = path.with_name("again")
    model_files.save(model, again)
    saved = again.read_bytes()
    model_files.save(model_files.load(again), again)
    if again.read_bytes() != saved:
        raise ReaderFailureError("a model that changes when it is saved")


_RECORDS = [
    Record(a, 0.5, np.arange(5, dtype=np.float32), 0.5, 0.7, 0.0, 4, True, 0.1, "x")
    for a in (10.0, 1.0)
]
_PATH = FitPath(LossChoice("logistic"), 0)


def _stores() -> tuple[bytes, ...]:
    X, Y = np.eye(3), np.eye(3)
    with tempfile.TemporaryDirectory() as folder:
        store = Store.of(Path(folder), Experiment("x", X, Y, X, Y, {}), Protocol())
        replace(store, run="key").add(_PATH, _RECORDS)
        return (store.file.read_bytes(),)


def _read_records(path: Path, _: random.Random) -> None:
    found = Store(path, "key").read()
    if found and [one.to_row() for one in found[_PATH.name]] != [one.to_row() for one in _RECORDS]:
        raise ReaderFailureError("other records than were written")


TARGETS: Mapping[str, Target] = {
    "csv": Target(".csv", _CSV_EXAMPLES, _CSV_WORDS, _read_csv),
    "arff": Target(".arff", _ARFF_EXAMPLES, _ARFF_WORDS, _read_arff),
    "jsonl": Target(".jsonl", _JSON_EXAMPLES, _JSON_WORDS, _read_json_lines),
    "libsvm": Target(".svm", _LIBSVM_EXAMPLES, _LIBSVM_WORDS, _read_libsvm),
    "xml": Target(".xml", _XML_EXAMPLES, _XML_WORDS, _read_xml),
    "sums": Target(".txt", _SUMS_EXAMPLES, (b" ", b"\n", b"*", b"#", b"0" * 64), _read_sums),
    "model": Target(".model", _models(), _JSON_WORDS, _read_model),
    "records": Target(".sqlite", _stores(), _JSON_WORDS, _read_records),
}


def _checked(
    path: Path, targets: list[str] | None, options: ReadOptions, *, plain: bool = False
) -> Table:
    table = read_table(path, targets, plain=plain, options=options)
    n, width = table.X.shape
    values = table.X.data if sparse.issparse(table.X) else table.X
    if not (np.isfinite(values).all() and np.isfinite(table.Y).all()):
        raise ReaderFailureError("a number that is not finite")
    if width != len(table.feature_names) or table.Y.shape != (n, len(table.target_names)):
        raise ReaderFailureError(
            f"{table.X.shape} and {table.Y.shape} are not the shapes of the names"
        )
    if table.lines.size != n or (np.diff(table.lines) <= 0).any():
        raise ReaderFailureError("lines of the rows that do not rise")
    if any(len(note.splitlines()) != 1 for note in table.notes):
        raise ReaderFailureError("a note of several lines")
    assert table.columns is not None
    stored = Columns.from_json(json.loads(json.dumps(table.columns.to_json())))
    if stored != table.columns:
        raise ReaderFailureError("a recipe that JSON changes")
    if options.missing == "impute" and options.decimal is None:
        again = read_inputs(path, stored).X
        if not _equal(again, table.X):
            raise ReaderFailureError("other features of the same file by its own recipe")
        if not stored.n_numbered:
            name = stored.used[0].name
            if len(read_cells(path, [name])[name]) != n:
                raise ReaderFailureError("other rows of a column that is kept")
    return table


def _equal(a: Any, b: Any) -> bool:
    first, second = (x.toarray() if sparse.issparse(x) else x for x in (a, b))
    return bool(np.array_equal(first, second))


def mutated(content: bytes, words: tuple[bytes, ...], draw: random.Random) -> bytes:
    """A valid file with some damage."""
    data = bytearray(content)
    for _ in range(draw.choice((0, 1, 1, 1, 2, 2, 3, 10))):
        at = draw.randrange(len(data) + 1)
        end = min(len(data), at + draw.choice((0, 1, 1, 2, 5, 20)))
        match draw.choice((0, 1, 2, 2, 3, 3, 3, 4, 5, 6, 7, 7, 7)):
            case 7:  # a cell
                cells = re.split(rb"([,;|\n])", bytes(data))
                cells[draw.randrange(len(cells))] = draw.choice(words)
                data = bytearray(b"".join(cells))
            case 0:
                data[at:end] = bytes([draw.randrange(256)])
            case 1:
                del data[at:end]
            case 2:
                data[at:at] = draw.choice(words)
            case 3:
                data[at:end] = draw.choice(words)
            case 4:
                data[at:at] = data[at:end] * draw.choice((2, 5, 50))
            case 5:
                lines = data.split(b"\n")
                draw.shuffle(lines)
                data = bytearray(b"\n".join(lines))
            case 6:
                lines = data.split(b"\n")
                lines += [draw.choice(lines) for _ in range(draw.choice((1, 30)))]
                data = bytearray(b"\n".join(lines))
    result = bytes(data)
    if draw.random() < 0.03:
        packed = bytearray(gzip.compress(result))
        if draw.random() < 0.5:
            packed[draw.randrange(len(packed))] ^= 1 << draw.randrange(8)
        result = bytes(packed)
    return result


def run_case(name: str, seed: str, folder: Path) -> str:
    """One case of one target; returns ``"read"`` or ``"refused"``."""
    target = TARGETS[name]
    draw = random.Random(seed)
    content = mutated(draw.choice(target.examples), target.words, draw)
    path = folder / f"case{target.suffix}"
    path.write_bytes(content)
    start = time.process_time()
    answer = "read"
    try:
        target.read(path, draw)
    except DataError as error:
        answer = "refused"
        text = str(error)
        if len(text.splitlines()) != 1:
            raise ReaderFailureError(f"a message of several lines: {text!r}") from None
    seconds = time.process_time() - start
    if seconds > MAX_SECONDS:
        raise ReaderFailureError(f"{seconds:.1f} seconds")
    return answer


def _limit_memory() -> None:
    try:
        import resource
    except ModuleNotFoundError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


def main() -> int:
    """Run all targets in turn until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="of the run; a new one each time")
    parser.add_argument("--targets", default=",".join(TARGETS), help=f"among {', '.join(TARGETS)}")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(2**32)
    names = arguments.targets.split(",")
    print(f"seed {seed}", flush=True)
    _limit_memory()
    counts = {name: {"read": 0, "refused": 0} for name in names}
    end = time.monotonic() + arguments.seconds
    case = 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            for name in names:
                try:
                    counts[name][run_case(name, f"{seed}/{name}/{case}", Path(folder))] += 1
                except Exception as error:
                    kept = Path(f"fuzz-case{TARGETS[name].suffix}")
                    kept.write_bytes((Path(folder) / f"case{TARGETS[name].suffix}").read_bytes())
                    print(
                        f"seed {seed}, target {name}, case {case}: {type(error).__name__}: {error}"
                    )
                    print(f"the file is kept as {kept}")
                    raise
            case += 1
    for name, found in counts.items():
        print(f"{name}: {found['read']} read, {found['refused']} refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
