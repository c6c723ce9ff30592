"""Fuzz every reader with damaged files: it must return a correct result or one error, in time.

``make fuzz SECONDS=60`` runs all targets in turn with a new seed, which is printed; ``python
tools/fuzz.py --seed N`` repeats a run. A case is a valid file with a few mutations. A reader must
return one of the following: a :class:`DataError` of one line; a table of finite numbers, whose
recipe survives JSON and makes the same features from the same file; a model with finite
coefficients that can be saved again; or exactly the record that was written. Any other result, and
any case that takes longer than ``MAX_SECONDS``, ends the run and stores the file in
``fuzz-case.*``.
"""

import argparse
import contextlib
import gzip
import itertools
import json
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fitzpatrick import datasets
from fitzpatrick.datasets import DataError, ReadOptions
from fitzpatrick.datasets._text import read_checksums
from fitzpatrick.experiments import model_files, models
from fitzpatrick.experiments.protocol import Experiment, FitPath, LossChoice, Protocol
from fitzpatrick.experiments.records import Record, Store, to_json

MAX_SECONDS, MAX_MEMORY = 10.0, 4 << 30


class ReaderFailureError(AssertionError):
    """A result that no reader may return."""


@dataclass(frozen=True)
class Target:
    """A reader: valid files, words with a meaning in them, and how to call it."""

    suffix: str
    examples: tuple[bytes, ...]
    words: tuple[bytes, ...]
    read: Callable[[Path, random.Random], None]


_CSV_WORDS = (
    *b", ; \" ' | # NA nan - ? inf 1e999 1,234 1.234 1.234,5 $5 007 yes no TRUE id".split(),
    *"2024-01-31 12:30 a;b a|b ä _ 1_0 -0 +5 0x10 ９ =1+1 5e-324 \ufeff \u2028".encode().split(),
    *"\xa0;12 %;€ 7;3 kg;1 234;\t;\n;\r;\r\n; ".encode().split(b";"), b"sep=;\n", b"x" * 2000,
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
_LABELS = (["a", "b"], ["a", "b"], ["a", "b"], None, ["c"])
_ARFF_WORDS = (
    *b"@data @attribute @relation { } , ' \" \\ \\' ? % numeric string date 1e999 nan".split(),
    *b"{0,1};{0 1};-C 1;-C -2;\n; ;\\u0041".split(b";"),
)
_LIBSVM_EXAMPLES = (b"0,2 1:1.5 3:2\n 2:1\n1 1:-1e-3 # c\n", b"0 1:1\n1 2:1\n0,1 3:1\n")
_LIBSVM_WORDS = (*b": , 0 -1 1e999 nan # 999999 _ \xc2\xb2".split(), b" ", b"\n")
_XML_EXAMPLES = (
    b'<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">'
    b'<label name="a"></label><label name="b&amp;c"><label name="d"/></label></labels>',
)
_XML_WORDS = (*b'< > & &a; label name= "'.split(), b"<!DOCTYPE x>", b'<!ENTITY a "b">')
_SUMS_EXAMPLES = (b"# sums\n" + b"0" * 64 + b"  a.svm\n" + b"f" * 64 + b" *./b c.svm\n",)
_JSON_WORDS = (
    *b'{ } [ ] , : " \\ null true NaN Infinity -1 1e999 0.5 {} [] "" "values" \xff'.split(),
    b'"format"', b"9" * 5000, b"[" * 5000, b'"version": 2', b'"kind": "numbers"',
)  # fmt: skip
_JSON_EXAMPLES = (
    b'{"x": 1.5, "c": "red", "y": "u"}\n{"c": null, "x": 2, "y": "v"}\n{"y": "u", "x": -1e3}\n',
)


def _read_csv(path: Path, draw: random.Random) -> None:
    content = path.read_bytes().replace(b"\0", b"")
    targets = ["a", "b"] if b"a" in content[:40] and b"b" in content[:40] else ["y"]
    _check(path, draw, *[targets] * 6, ["tags"], ["x"])


def _read_xml(path: Path, _: random.Random) -> None:
    names = datasets.read_label_names(path)
    _expect(names and all(isinstance(name, str) for name in names), "labels without names")


def _read_sums(path: Path, _: random.Random) -> None:
    for name, digest in read_checksums(path).items():
        _expect(name and re.fullmatch("[0-9a-f]{64}", digest), "not a name and a SHA-256")


def _model(name: str, content: str, targets: list[str] | None) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_text(content)
        table = datasets.read_table(file, targets)
        found = models.fit(table, file, LossChoice("logistic"), Protocol(intercept=True), 1.0)
        model_files.save(found.model, file)
        return file.read_bytes()


_MODELS = (
    _model("a.csv", "x,c,t,y\n1,red,a;b,u\n2,blue,b,v\n,red,a;c,u\n4,,c,v\n5,blue,b;c,u\n", ["y"]),
    _model("a.svm", "0,1 1:1 2:3\n1 2:1\n0 1:2\n", None),
)


def _read_model(path: Path, _: random.Random) -> None:
    model = model_files.load(path)
    _expect(np.isfinite(model.estimator.coef_).all(), "coefficients that are not finite")
    again = path.with_name("again")
    model_files.save(model, again)
    saved = again.read_bytes()
    model_files.save(model_files.load(again), again)
    _expect(again.read_bytes() == saved, "a model that changes when it is saved")


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
    rows = to_json(found.get(_PATH.name, []))
    _expect(not found or rows == to_json(_RECORDS), "other records than written")


def _check(path: Path, draw: random.Random, *choices: list[str] | None) -> None:
    """Read a table, with one of several choices of targets."""
    options = ReadOptions(
        missing=draw.choice(("impute",) * 6 + ("drop", "error")),
        categories=draw.choice(("encode",) * 7 + ("error",)),
        decimal=draw.choice((None,) * 6 + (".", ",")),
        missing_values=draw.choice(((), (), ("k. A.",), ("1",))),
    )
    plain, targets = draw.random() < 0.2, draw.choice(choices)
    table = datasets.read_table(path, targets, plain=plain, options=options)
    n, width = table.X.shape
    values = table.X.data if sparse.issparse(table.X) else table.X
    _expect(np.isfinite(values).all() and np.isfinite(table.Y).all(), "a number is not finite")
    shapes = width == len(table.feature_names) and table.Y.shape == (n, len(table.target_names))
    _expect(shapes, f"{table.X.shape} and {table.Y.shape} are not the shapes of the names")
    rise = table.lines.size == n and (np.diff(table.lines) > 0).all()
    _expect(rise, "lines of the rows that do not rise")
    _expect(all(len(note.splitlines()) == 1 for note in table.notes), "a note of several lines")
    assert table.columns is not None
    stored = datasets.Columns.from_json(json.loads(json.dumps(table.columns.to_json())))
    _expect(stored == table.columns, "a recipe that JSON changes")
    if options.missing == "impute" and options.decimal is None:
        again = datasets.read_inputs(path, stored).X
        both = (x.toarray() if sparse.issparse(x) else x for x in (again, table.X))
        _expect(np.array_equal(*both), "other features of the same file by its own recipe")
        if not stored.n_numbered:
            name = stored.used[0].name
            kept = len(datasets.read_cells(path, [name])[name])
            _expect(kept == n, "other rows of a column that is kept")


def _expect(is_right: Any, problem: str) -> None:
    if not is_right:
        raise ReaderFailureError(problem)


TARGETS: Mapping[str, Target] = {
    "csv": Target(".csv", _CSV_EXAMPLES, _CSV_WORDS, _read_csv),
    "arff": Target(".arff", _ARFF_EXAMPLES, _ARFF_WORDS, lambda *case: _check(*case, *_LABELS)),
    "jsonl": Target(".jsonl", _JSON_EXAMPLES, _JSON_WORDS, lambda *case: _check(*case, ["y"])),
    "libsvm": Target(".svm", _LIBSVM_EXAMPLES, _LIBSVM_WORDS, lambda *case: _check(*case, None)),
    "xml": Target(".xml", _XML_EXAMPLES, _XML_WORDS, _read_xml),
    "sums": Target(".txt", _SUMS_EXAMPLES, (b" ", b"\n", b"*", b"#", b"0" * 64), _read_sums),
    "model": Target(".model", _MODELS, _JSON_WORDS, _read_model),
    "records": Target(".sqlite", _stores(), _JSON_WORDS, _read_records),
}


def mutated(content: bytes, words: tuple[bytes, ...], draw: random.Random) -> bytes:
    """A valid file with a few mutations."""
    result = content
    for _ in range(draw.choice((0, 1, 1, 1, 2, 2, 3, 10))):
        start, word, kind = draw.randrange(len(result) + 1), draw.choice(words), draw.randrange(13)
        end = start + draw.choice((0, 1, 1, 2, 5, 20))
        lines, cells = result.split(b"\n"), re.split(rb"([,;|\n])", result)
        if kind == 0:
            draw.shuffle(lines)
            result = b"\n".join(lines)
        elif kind == 1:
            result = b"\n".join([*lines, *draw.choices(lines, k=draw.choice((1, 30)))])
        elif kind < 5:
            cells[draw.randrange(len(cells))] = word
            result = b"".join(cells)
        else:
            old = result[start:end]
            pieces = (b"", bytes([draw.randrange(256)]), word, word + old, old * 3, old * 50)
            result = result[:start] + draw.choice(pieces) + result[end:]
    if draw.random() < 0.03:
        packed = bytearray(gzip.compress(result))
        if draw.random() < 0.5:
            packed[draw.randrange(len(packed))] ^= 1 << draw.randrange(8)
        result = bytes(packed)
    return result


def run_case(name: str, seed: str, folder: Path) -> str:
    """One case of one target; returns ``"read"`` or ``"refused"``."""
    target, draw, answer = TARGETS[name], random.Random(seed), "read"
    path = folder / f"case{target.suffix}"
    path.write_bytes(mutated(draw.choice(target.examples), target.words, draw))
    start = time.process_time()
    try:
        target.read(path, draw)
    except DataError as error:
        answer, text = "refused", str(error)
        _expect(len(text.splitlines()) == 1, f"a message of several lines: {text!r}")
    _expect(time.process_time() - start <= MAX_SECONDS, f"more than {MAX_SECONDS} seconds")
    return answer


def main() -> None:
    """Run all targets in turn until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="by default a new one")
    parser.add_argument("--targets", default=",".join(TARGETS), help=f"among {', '.join(TARGETS)}")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(2**32)
    names = arguments.targets.split(",")
    print(f"seed {seed}", flush=True)
    with contextlib.suppress(ModuleNotFoundError):  # not on Windows
        resource = import_module("resource")
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    answers: Counter[tuple[str, str]] = Counter()
    end = time.monotonic() + arguments.seconds
    with tempfile.TemporaryDirectory() as folder:
        for case, name in ((case, name) for case in itertools.count() for name in names):
            if time.monotonic() > end:
                break
            try:
                answers[name, run_case(name, f"{seed}/{name}/{case}", Path(folder))] += 1
            except Exception as error:
                kept = Path(f"fuzz-case{TARGETS[name].suffix}")
                kept.write_bytes((Path(folder) / f"case{TARGETS[name].suffix}").read_bytes())
                print(f"seed {seed}, target {name}, case {case}: {error!r}; kept as {kept}")
                raise
    for name in names:
        print(f"{name}: {answers[name, 'read']} read, {answers[name, 'refused']} refused")


if __name__ == "__main__":
    main()
