"""The command line as a user meets it: output, exit codes, one-line errors, survival of a kill."""

import gzip
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fitzpatrick import cli

COMMANDS = ("reproduce", "compare", "fit", "predict", "figures", "datasets")


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FITZPATRICK_DATA", raising=False)
    monkeypatch.setenv("FITZPATRICK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def run(monkeypatch, capsys):
    """Call the command line; exit code, standard output and standard error."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["fitzpatrick", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def write_csv(path, n=80, seed=0, kind="indicators"):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 3))
    scores = X @ generator.normal(size=(3, 3)) * 2
    if kind == "labels":
        lines = ["x1,x2,x3,kind"]
        names = np.asarray(["ant", "bee", "cat"])[scores.argmax(axis=1)]
        lines += [
            f"{a:.5f},{b:.5f},{c:.5f},{name}" for (a, b, c), name in zip(X, names, strict=True)
        ]
    else:
        Y = (scores > 0).astype(float)
        Y[Y.sum(axis=1) == 0, 0] = 1
        if kind == "proportions":
            Y /= Y.sum(axis=1, keepdims=True)
        lines = ["x1,x2,x3,a,b,c"]
        lines += [",".join(f"{v:.17g}" for v in row) for row in np.hstack([X, Y])]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_flags(folder):
    """Files of the shape of the flags data, so that the registry takes them for it."""
    folder.mkdir()
    generator = np.random.default_rng(5)
    for part, n in (("train", 129), ("test", 65)):
        lines = []
        for _ in range(n):
            x = generator.normal(size=19)
            labels = np.flatnonzero(x[:7] + generator.normal(size=7) / 2 > 0)
            labels = labels if labels.size else [0]
            features = " ".join(f"{i + 1}:{value:.4f}" for i, value in enumerate(x))
            lines.append(f"{','.join(map(str, labels))} {features}")
        (folder / f"flags_{part}.svm").write_text("\n".join(lines) + "\n")
    return folder


def test_overview_shows_every_loss(run):
    code, out, _ = run()
    assert code == 0
    assert all(name in out for name in cli.loss_names())
    assert max(map(len, out.splitlines())) <= 84


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_fits_80_columns(run, command):
    code, out, _ = run(*command, "--help")
    assert code == 0
    assert "Usage" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    if not command:
        assert all(name in out for name in COMMANDS)


def test_version(run):
    code, out, _ = run("--version")
    assert code == 0
    assert re.fullmatch(r"fitzpatrick \d+\.\d+.*\n", out)


def test_figures(run, tmp_path):
    code, out, _ = run("figures", "-o", tmp_path / "pictures", "-f", "svg")
    assert code == 0
    assert len(list((tmp_path / "pictures").glob("*.svg"))) == out.count("wrote") == 3


def test_datasets(run):
    code, out, _ = run("datasets", "--details")
    assert code == 0
    assert re.search(r"yeast +1125 +375 +917 +103 +14 +embedded", out)
    assert "BSD 3-Clause" in out


def test_reproduce_names_what_it_cannot_run_and_goes_on(run, tmp_path, monkeypatch):
    monkeypatch.setenv("FITZPATRICK_DATA", str(write_flags(tmp_path / "data")))
    code, out, err = run("reproduce", "--datasets", "birds", "flags", "--seeds", 1, "-j", 1)
    assert code == 0
    assert "birds was not run: " in out
    assert re.search(r"sparsemax +\.\d{4}\*? +– +\.186", out)  # the paper's number beside ours
    assert "flags: 36 of 36 fits" in err
    assert "\x1b" not in out + err
    page = (tmp_path / "out" / "report.html").read_text()
    assert "birds" in page
    assert (tmp_path / "out" / "fits.csv").read_text().count("\n") == 37
    assert (tmp_path / "out" / "table.txt").read_text().splitlines()[-4:] == [
        line for line in out.splitlines() if re.match(r" +\w*(sparsemax|logistic) ", line)
    ]


def test_reproduce_with_nothing_to_run(run):
    code, out, _ = run("reproduce", "birds")
    assert code == 2
    assert "birds was not run: " in out
    assert not Path("out").exists()


def test_killed_three_times_the_table_is_the_same(tmp_path):
    """SIGKILL in the middle of the run, then once more to the end."""
    environment = {
        **os.environ,
        "FITZPATRICK_DATA": str(write_flags(tmp_path / "data")),
        "OMP_NUM_THREADS": "1",
    }

    def start(folder, jobs):
        arguments = f"reproduce flags --seeds 1 -j {jobs} -o {folder}"
        return subprocess.Popen(
            [sys.executable, "-m", "fitzpatrick", *arguments.split()],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def records():
        return {p: p.stat().st_mtime_ns for p in (tmp_path / "b").rglob("[0-9][0-9].json")}

    whole = start("a", jobs=1)
    undisturbed, _ = whole.communicate(timeout=120)
    assert whole.returncode == 0
    kept = {}
    for threshold, jobs in ((4, 2), (14, 1), (26, 1)):
        process = start("b", jobs)
        deadline = time.monotonic() + 60
        while len(records()) < threshold and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)  # ends only when no worker is left either
        assert process.returncode == -signal.SIGKILL  # it was in the middle
        assert kept.items() <= records().items()  # finished fits are not touched again
        kept = records()
    assert not (tmp_path / "b" / "table.txt").exists()
    last = start("b", jobs=1)
    output, _ = last.communicate(timeout=120)
    assert last.returncode == 0
    assert kept.items() <= records().items()
    assert (tmp_path / "b" / "table.txt").read_bytes() == (
        tmp_path / "a" / "table.txt"
    ).read_bytes()
    assert output.replace(b"b/", b"a/") == undisturbed


@pytest.mark.parametrize("kind", ["indicators", "proportions", "labels"])
def test_compare_recommends_in_words(run, tmp_path, kind):
    file = write_csv(tmp_path / "mine.csv", kind=kind)
    targets = "kind" if kind == "labels" else "a,b,c"
    losses = "logistic,fitzpatrick_logistic"
    code, out, _ = run("compare", file, "--targets", targets, "--losses", losses, "-j", 1)
    assert code == 0
    answer = " ".join(out.split())
    assert re.search(
        r"Use (fitzpatrick_)?logistic with α = \S+: its test error, \.\d{4}, is", answer
    )
    assert ("clearly better than" in answer) != ("cannot be told apart" in answer)
    page = (tmp_path / "out" / "mine.html").read_text()
    assert kind in page
    assert "60 to learn from, 20 to test" in page


def test_compare_with_a_test_file(run, tmp_path):
    train, test = write_csv(tmp_path / "a.csv"), write_csv(tmp_path / "b.csv", n=30, seed=1)
    options = ("--targets", "a,b,c", "--losses", "sparsemax", "-j", 1, "--seeds", 1)
    code, _, _ = run("compare", train, "--test", test, *options)
    assert code == 0
    assert "80 to learn from, 30 to test" in (tmp_path / "out" / "a.html").read_text()
    (tmp_path / "c.csv").write_text(test.read_text().replace("x1", "z1"))
    code, _, err = run("compare", train, "--test", tmp_path / "c.csv", *options)
    assert code == 2
    assert "its columns are not those of" in err


@pytest.mark.parametrize("alpha", [(), ("--alpha", "0.5")], ids=["cv", "alpha"])
def test_fit_and_predict(run, tmp_path, alpha):
    file = write_csv(tmp_path / "mine.csv")
    code, out, _ = run("fit", file, "--targets", "a,b,c", "-o", tmp_path / "m.skops", *alpha)
    assert code == 0
    assert "80 samples, 3 features, 3 targets (indicators)" in out
    code, out, _ = run("predict", tmp_path / "m.skops", file)
    assert code == 0
    header, *rows = out.splitlines()
    assert header == "a,b,c"
    values = np.asarray([row.split(",") for row in rows], dtype=float)
    assert values.shape == (80, 3)
    np.testing.assert_allclose(values.sum(axis=1), 1.0, atol=1e-6)
    # columns may come in any order, with others between them
    lines = [line.split(",") for line in file.read_text().splitlines()]
    shuffled = tmp_path / "other.csv"
    shuffled.write_text(
        "\n".join(",".join([r[2], "?", r[0], r[1]]) for r in lines).replace("?", "n", 1)
    )
    code, again, _ = run("predict", tmp_path / "m.skops", shuffled)
    assert code == 0
    assert again == out


def test_predict_from_libsvm_to_a_file(run, tmp_path):
    lines = [f"{i % 3} 1:{i % 5} 2:{(i * 7) % 4}" for i in range(40)]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n")
    assert run("fit", "a.svm", "-o", "m.skops", "--alpha", 1)[0] == 0
    (tmp_path / "b.svm").write_text(" 1:3\n 2:1\n")
    assert run("predict", "m.skops", "b.svm", "-o", "p.csv")[0] == 0
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 3


def test_predict_refuses_what_fit_did_not_write(run, tmp_path):
    (tmp_path / "junk.skops").write_bytes(b"junk")
    with zipfile.ZipFile(tmp_path / "zip.skops", "w") as archive:
        archive.writestr("schema.json", "{}")
    for name in ("junk.skops", "zip.skops"):
        code, _, err = run("predict", name, "x.csv")
        assert code == 2
        assert re.fullmatch(rf"error: {name}: not a model that fitzpatrick saved .*\n", err)
    assert run("predict", "none.skops", "x.csv")[2] == "error: none.skops: no such file\n"


def test_predict_refuses_foreign_types(run):
    import skops.io

    skops.io.dump({"estimator": Path, "feature_names": [], "target_names": []}, "evil.skops")
    code, _, err = run("predict", "evil.skops", "x.csv")
    assert code == 2
    assert "evil.skops: " in err


BAD = {
    "junk.csv": (np.random.default_rng(0).bytes(4000), r"junk\.csv, line 1: "),
    "ragged.csv": (b"x,a,b\n1,1,0\n1,1\n", r"ragged\.csv, line 3: 2 fields, expected 3"),
    "empty.csv": (b"", r"empty\.csv: the file is empty"),
    "latin.csv": ("x,a,b\n1,1,0\n\xe4,1,0\n".encode("latin-1"), r"latin\.csv, line 3: byte 0xe4"),
    "utf16.csv": ("x,a,b\n1,1,0\n".encode("utf-16"), r"utf16\.csv, line 1: the text is in UTF-16"),
    "range.svm": (b"0 1:1\n7777777 1:1\n", r"range\.svm, line 2: label '7777777' is out of range"),
    "huge.svm": (b"0 1:1\n1 99999999999:1\n", r"huge\.svm, line 2: feature index 99999999999 is"),
    "short.csv": (b"x,a,b\n1,1,0\n2,0,1\n", r"short\.csv: 1 samples to learn from, expected 16"),
    "bomb.svm.gz": (
        gzip.compress(b"0 1:1\n" * 200_000),
        r"bomb\.svm\.gz, line \d+: .* not read",
    ),
    "odd.xyz": (b"1", r"odd\.xyz: the format of a \.xyz file is not known"),
    "none.csv": (None, r"none\.csv: no such file"),
}


@pytest.mark.parametrize(
    ("command", "name"),
    # two samples are few, but enough for a fit
    [(c, n) for c in ("compare", "fit") for n in BAD if (c, n) != ("fit", "short.csv")],
)
def test_bad_files_end_in_one_line(run, tmp_path, monkeypatch, name, command):
    monkeypatch.setattr("fitzpatrick.datasets._text._RATIO_FROM", 1 << 18)  # a small bomb will do
    content, problem = BAD[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    targets = ("--targets", "a,b") if name.endswith((".csv", ".xyz")) else ()
    output = ("-o", "made/model.skops") if command == "fit" else ("-o", "made")
    code, out, err = run(command, name, *targets, *output)
    assert code == 2
    assert out == ""
    assert re.fullmatch(rf"error: {problem}[^\n]*\n", err)
    assert not (tmp_path / "made").exists()


def test_fit_says_what_the_estimator_says(run, tmp_path):
    (tmp_path / "flat.csv").write_text("x,a,b\n" + "1,1,0\n1,0,1\n" * 8)
    code, _, err = run("fit", "flat.csv", "--targets", "a,b", "-o", "m.skops", "--alpha", 1)
    assert code == 2
    assert err.startswith("error: flat.csv: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "m.skops").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("reproduce", "yeats"), "unknown data set 'yeats'"),
        (("reproduce", "--losses", "sigmoid"), "'sigmoid' is not a loss on the simplex"),
        (("reproduce", "--losses", "logistic,logistic"), "one or more different names"),
        (("reproduce", "--tol", "-1"), "--tol must be a positive number"),
        (("reproduce", "--alphas", "1,x"), "--alphas needs numbers with commas"),
        (("reproduce", "--alphas", "1,0"), "--alphas must be a positive number"),
        (("fit", "a.csv", "-o", "m", "--loss", "nope"), "unknown loss 'nope'"),
        (("fit", "a.csv", "-o", "m", "--alpha", "0"), "--alpha must be a positive number"),
    ],
)
def test_wrong_options(run, arguments, problem):
    code, _, err = run(*arguments)
    assert code == 2
    assert err.startswith("error: ")
    assert problem in err
    assert err.count("\n") == 1


def test_folder_that_cannot_be_written(run, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = run("figures", "-o", tmp_path / "file" / "below")
    assert code == 2
    assert re.fullmatch(r"error: \S+: (Not a directory|File exists)\n", err)
