"""The command line as a user meets it: output, exit codes, one-line errors, survival of a kill."""

import csv
import gzip
import importlib
import inspect
import io
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.model_selection import KFold

from fitzpatrick import cli, explorer
from fitzpatrick.datasets import DATASETS
from fitzpatrick.experiments import (
    compare,
    figures,
    learners,
    model_files,
    models,
    protocol,
    reproduce,
)
from fitzpatrick.experiments.protocol import LossChoice
from fitzpatrick.experiments.records import FILE_NAME
from fitzpatrick.experiments.runner import RunOptions

COMMANDS = ("reproduce", "compare", "fit", "predict", "figures", "explore", "datasets")
LINEAR = ("--model", "linear")
QUICK = (*LINEAR, "--seeds", 1, "-j", 1)
ABC = ("--targets", "a,b,c")
FITTED = ("--alpha", 1, "-o", "m.model")
SMALL = ("reproduce", "-j", "1", "--seeds", "1", "--losses", "logistic", "--alphas", "1e3,1e2")


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FITZPATRICK_DATA", raising=False)
    monkeypatch.setenv("FITZPATRICK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")


def write(name, *lines):
    Path(name).write_text("\n".join(lines) + "\n")
    return Path(name)


def write_csv(path, n=80, seed=0, kind="indicators"):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 3))
    scores = X @ generator.normal(size=(3, 3)) * 2
    if kind == "labels":
        names = np.asarray(["ant", "bee", "cat"])[scores.argmax(axis=1)]
        rows = [[*(f"{x:.5f}" for x in row), name] for row, name in zip(X, names, strict=True)]
        return write(path, "x1,x2,x3,kind", *map(",".join, rows))
    Y = (scores > 0).astype(float)
    Y[Y.sum(axis=1) == 0, 0] = 1
    if kind == "proportions":
        Y /= Y.sum(axis=1, keepdims=True)
    rows = [",".join(f"{v:.17g}" for v in row) for row in np.hstack([X, Y])]
    return write(path, "x1,x2,x3,a,b,c", *rows)


def write_flags(folder):
    """Files of the shape of the flags data, so that the registry takes them for it."""
    folder.mkdir()
    generator = np.random.default_rng(5)
    for part, n in (("train", 129), ("test", 65)):
        X = generator.normal(size=(n, 19)).round(4)
        Y = X[:, :7] + generator.normal(size=(n, 7)) / 2 > 0
        Y[~Y.any(axis=1), 0] = True
        file = str(folder / f"flags_{part}.svm")
        dump_svmlight_file(X, Y, file, zero_based=False, multilabel=True)
    return folder


def stored(folder):
    """Every path on record, with the times of its fits."""
    file = folder / FILE_NAME
    if not file.is_file():
        return set()
    with closing(sqlite3.connect(file, timeout=60)) as connection:
        try:
            return set(connection.execute("SELECT path, records FROM paths"))
        except sqlite3.OperationalError:  # before the tables are made
            return set()


def rows_of(file):
    with Path(file).open() as lines:
        return list(csv.DictReader(lines))


def next_words(out):
    """The arguments of the command that is printed last."""
    return shlex.split(out.splitlines()[-1].removeprefix("next: fitzpatrick "))


def last_line(text):
    """Without the lines of progress before it."""
    return text.rstrip("\n").splitlines()[-1]


def widest(text):
    return max(map(len, text.splitlines()))


def test_overview_shows_every_loss(ok):
    out = ok()
    assert all(name in out for name in cli.loss_names())
    assert widest(out) <= 79
    # P_△((y + θ)/2) of y = (½, ½, 0) and θ = (1.5, 0.2, −1), beside the link, which is a vertex
    line = next(line for line in out.splitlines() if line.startswith("fitzpatrick_sparsemax"))
    assert line.split(maxsplit=2)[2].split("(")[1:] == ["1, 0, 0)           ", "0.82, 0.17, 0)"]
    assert re.fullmatch(r"fitzpatrick \d+\.\d+.*\n", ok("--version"))


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_fits_80_columns(ok, command):
    out = ok(*command, "--help")
    assert "Usage" in out
    assert widest(out) <= 80
    assert "\x1b" not in out
    if command:
        check_options_named(*command, out)
    else:
        assert all(name in out for name in COMMANDS)
        assert "..." not in out.partition("Commands:")[2]  # every summary is whole


def test_without_typer(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "fitzpatrick.cli")
    with pytest.raises(SystemExit, match="2"):
        importlib.import_module("fitzpatrick.cli")
    said = "error: the command line needs typer: pip install 'fitzpatrick[cli]'\n"
    assert capsys.readouterr().err == said


def test_figures(ok, fails, tmp_path, monkeypatch):
    assert len(figures.FIGURES) == 4
    monkeypatch.setattr(figures, "FIGURES", {"one": figures.lower_bound_figure})
    out = ok("figures", "-o", "pictures", "-f", "svg", "-f", "png")
    assert out == "wrote pictures/one.svg\nwrote pictures/one.png\n"
    assert len(list((tmp_path / "pictures").iterdir())) == 2
    write("file")
    said = fails("figures", "-o", tmp_path / "file" / "below")
    assert re.fullmatch(r"\S+: (Not a directory|File exists)", said)


@pytest.fixture
def opened(monkeypatch):
    """The addresses that a browser was asked for, on a machine with a screen."""
    asked = []
    for name in ("WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(explorer.webbrowser, "open", lambda url: asked.append(url) or True)
    return asked


def test_explore_opens_the_page_or_says_what_to_do(ok, fails, tmp_path, opened, monkeypatch):
    assert ok("explore") == "wrote out/explorer.html\n"
    page = tmp_path / "out" / "explorer.html"
    assert opened == [page.as_uri()]
    assert page.read_text(encoding="utf-8") == explorer.page()
    assert list(page.parent.iterdir()) == [page]  # no temporary file is left
    assert fails("explore", "-o", tmp_path) == f"{tmp_path}: Is a directory"
    wrote = "wrote mine.html: open it in a browser\n"
    assert ok("explore", "--no-open", "-o", "mine.html") == wrote
    monkeypatch.delenv("DISPLAY")
    monkeypatch.setattr(sys, "platform", "linux")
    assert ok("explore", "-o", "mine.html") == wrote
    assert len(opened) == 1  # it did not start a browser of the terminal, which would wait for keys
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(explorer.webbrowser, "open", lambda url: False)
    assert ok("explore", "-o", "mine.html") == wrote


@pytest.mark.parametrize("folder", [None, "nowhere"])
def test_datasets(ok, monkeypatch, folder):
    if folder:
        monkeypatch.setenv("FITZPATRICK_DATA", folder)
    out = ok("datasets", "--details")
    place = "unusable\n" if folder else "embedded"
    assert re.search(rf"yeast +1125 +375 +917 +103 +14 +{place}", out)
    said = "yeast: unusable: FITZPATRICK_DATA names nowhere, which is not a folder"
    assert (said in out) is bool(folder)
    assert "BSD 3-Clause" in out
    assert widest(out) <= 80


def test_reproduce_names_what_it_cannot_run_and_goes_on(run, tmp_path, monkeypatch):
    monkeypatch.setenv("FITZPATRICK_DATA", str(write_flags(tmp_path / "data")))
    (tmp_path / "cache").write_text("no folder")
    typed = ("reproduce", "--datasets", "birds", "scene", "flags", "flags", "--seeds", 1, "-j", 1)
    code, out, err = run(*typed)
    assert code == 0
    assert "error: birds was not run: " in err
    assert re.search(r"error: scene was not run: the cache \S+ cannot be used: .*\n", err)
    assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= 80
    assert re.search(r"sparsemax +\.\d{4}\*? +– +\.186", out)  # the paper's number beside ours
    assert "flags: 36 of 36 fits" in err
    assert "\x1b" not in out + err
    page, table, fits = (
        (tmp_path / "out" / name).read_text() for name in ("report.html", "table.txt", "fits.csv")
    )
    assert "birds" in page
    assert f"<pre>fitzpatrick {' '.join(map(str, typed))}" in page
    assert re.search(r"The largest distance between the two is \.\d{4} \(flags, \w+\)\.", page)
    assert fits.count("\n") == 37
    assert "boosted" not in table + fits
    assert "birds was not run: " in table
    assert table.splitlines()[-4:] == [
        line for line in out.splitlines() if re.match(r" +\w*(sparsemax|logistic) ", line)
    ]
    code, _, err = run("reproduce", "birds", "-o", "none")
    assert code == 2
    assert re.fullmatch(r"error: birds was not run: [^\n]*\n", err)
    assert not Path("none").exists()


@pytest.mark.parametrize("kind", ["indicators", "proportions", "labels"])
def test_compare_recommends_the_least_error(ok, tmp_path, kind):
    file = write_csv(tmp_path / "mine.csv", kind=kind)
    targets = "kind" if kind == "labels" else "a,b,c"
    losses = "logistic,sparsemax"
    options = ("--targets", targets, "--losses", losses, "-j", 1, "--seeds", 2)
    out = ok("compare", file, *options, *LINEAR)
    typed = ("wrote ", "next: ")
    assert max(len(line) for line in out.splitlines() if not line.startswith(typed)) <= 80
    errors = {
        name: float(error) for name, error in re.findall(r"^  (\w+) +(\.\d{4})", out, re.MULTILINE)
    }
    assert errors.pop("baseline") > max(errors.values())
    assert list(errors) == losses.split(",")
    error, alpha = re.search(
        r"test error,? (\.\d+) \(mean over 2 dev splits.*\. Fit it with α = (\S+), which",
        " ".join(out.split()),
    ).groups()
    fitting = f"next: fitzpatrick fit {file} --targets {targets} --loss (.*) --alpha {alpha} -o "
    (best,) = re.search(fitting, out).groups()
    assert errors[best] == float(error) == min(errors.values())
    page = Path("out/compare-mine.html").read_text()
    for content in (
        f'<td class="text">{kind}</td>',
        "60 to learn from, 20 to test",
        "fitted to train and dev",
        f"<pre>fitzpatrick compare {file} --targets {targets}",
        f"<pre>{last_line(out).removeprefix('next: ')}</pre>",
    ):
        assert content in page
    assert bool(re.search(r"accuracy +log loss", out)) == (kind == "labels")
    check_options_named("compare", out)
    assert Path("out/compare-mine.txt").read_text() in out.replace("\nwrote", "wrote", 1)


def test_compare_tries_boosted_trees_too(ok, fails, tmp_path, monkeypatch):
    """On classes that no linear model can tell; what is recommended can be fitted and used."""
    pytest.importorskip("lightgbm")
    X = np.random.default_rng(1).normal(size=(160, 2))
    names = np.where(X.prod(axis=1) > 0, "same", "other")
    rows = [f"{a:.3f},{b:.3f},{name}" for (a, b), name in zip(X, names, strict=True)]
    write("xor.csv", "a,b,y", *rows)
    options = ("--targets", "y", "--losses", "logistic,fitzpatrick_logistic", "--seeds", 1, "-j", 1)
    out = ok("compare", "xor.csv", *options, "--no-intercept")
    assert "--model linear leaves them out" in " ".join(out.split())
    shown = re.findall(r"^  ((?:boosted )?\w+) +(\.\d{4})\*? .*?(α = |rounds?$)", out, re.MULTILINE)
    assert [name for name, *_ in shown] == [
        f"{model}{loss}"
        for model in ("", "boosted ")
        for loss in ("logistic", "fitzpatrick_logistic")
    ]
    assert max(float(error) for _, error, _ in shown[2:]) < min(float(e) for _, e, _ in shown[:2])
    assert "Boosted trees: LightGBM" in out
    for row in rows_of("out/compare-xor.csv"):
        assert (row["model"] == "boosted") == bool(row["rounds"]) != bool(row["alpha"])
    assert 'data-loss="boosted logistic"' in Path("out/compare-xor.html").read_text()
    words = next_words(out)
    assert words[:4] == ["fit", "xor.csv", "--targets", "y"]
    assert words[6:9] == ["--model", "boosted", "--rounds"]
    assert re.match(r"fitted boosted \w+ to 160 samples, 2 features, 2 targets", ok(*words))
    predicted = rows_of(write("p.csv", ok("predict", "model.safetensors", "xor.csv").rstrip()))
    assert np.mean([row["class"] for row in predicted] == names) > 0.9
    with monkeypatch.context() as few:
        few.setattr(learners, "MAX_TREE_CLASSES", 1)
        out = ok("compare", "xor.csv", *options)
        assert "not tried: 2 classes take as many trees in each round" in " ".join(out.split())
        assert "boosted logistic" not in out
    monkeypatch.setattr(learners, "find_spec", lambda _: None)  # as if it were not installed
    out = ok("compare", "xor.csv", *options)
    assert "boosted trees were not tried: they need lightgbm" in " ".join(out.split())
    needed = "--model boosted grows trees: they need lightgbm: pip install 'fitzpatrick[boosting]'"
    assert fails("compare", "xor.csv", *options, "--model", "boosted") == needed
    assert fails("fit", "xor.csv", *options[:2], "-o", "m", "--model", "boosted") == needed


def test_fit_of_boosted_trees_chooses_the_rounds(ok, fails, tmp_path, monkeypatch):
    pytest.importorskip("lightgbm")
    write_csv(tmp_path / "mine.csv", kind="proportions")
    options = ("fit", "mine.csv", *ABC, "-o", "m.model", "--model", "boosted")
    found = re.search(
        r"(\d+) rounds: cross-validated squared error (\.\d+)\nbaseline, .*: (\.\d+)", ok(*options)
    )
    assert float(found[2]) < float(found[3])
    loaded = model_files.load(tmp_path / "m.model")
    assert (loaded.estimator.n_iter_, loaded.model) == (int(found[1]), "boosted")
    shares = np.asarray(
        [row.split(",") for row in ok("predict", "m.model", "mine.csv").split()[1:]]
    )
    np.testing.assert_allclose(shares.astype(float).sum(axis=1), 1.0, atol=1e-6)
    for option in ("--alpha=1", "--alphas=1,2", "--no-intercept", "--coefficients=w.csv"):
        assert fails(*options, option).endswith("means nothing to a model that is boosted")
    said = fails("fit", "mine.csv", *ABC, *FITTED, "--rounds", 3)
    assert said == "--rounds means nothing to a model that is linear"
    monkeypatch.setattr(protocol, "Protocol", partial(protocol.Protocol, rounds=(1, 2)))
    assert "note: 2 rounds are the most that were tried: --rounds 4 goes further" in ok(*options)


def test_the_next_command_fits_the_rows_that_were_compared(ok, fails, tmp_path):
    """Losses for labels that occur together are compared on rows with a label, too."""
    lines = ["x1,x2,x3,genres"]
    for row in np.random.default_rng(6).normal(size=(120, 3)):
        tags = [n for n, x in zip(("rock", "jazz", "folk"), row, strict=True) if x > 0.4]
        lines.append(",".join(f"{x:.4f}" for x in row) + f",{';'.join(tags)}")
    write("a.csv", *lines)
    unlabelled = sum(line.endswith(",") for line in lines)
    assert unlabelled > 10
    note = f"note: {unlabelled} of 120 samples have no label and are"
    for family, is_named in (("sigmoid", True), ("logistic", False)):
        loss = f"fitzpatrick_{family}"
        options = ("--losses", loss, "--tightness", "2,0,0.5,1", "--no-refit", *QUICK)
        out = ok("compare", "a.csv", "--targets", "genres", *options)
        shown = re.findall(r"^  (\w+(?: \(tightness \S+\))?) +(\.\d{4})", out, re.MULTILINE)
        names = [f"{loss} (tightness 2)", family, f"{loss} (tightness 0.5)", loss, "baseline"]
        assert [name for name, _ in shown] == names
        found = {(row["loss"], row["tightness"]) for row in rows_of("out/compare-a.csv")}
        assert found == {(family, ""), (loss, ""), (loss, "0.5"), (loss, "2")}
        words = next_words(out)
        assert ("--labelled-only" in words) is is_named
        out = ok(*words)
        best = min(shown, key=lambda row: row[1])[0]
        assert f"fitted {best} to {120 - unlabelled} samples, " in out
        assert f"{note} left out\n" in out
    out = ok("fit", "a.csv", "--targets", "genres", "--loss", "sigmoid", *FITTED)
    assert "to 120 samples, 3 features, 3 targets (indicators)" in out
    assert f"{note} kept: each of their targets is 0\n" in out
    header, *rows = (row.split(",") for row in ok("predict", "m.model", "a.csv").splitlines())
    assert header == ["folk", "jazz", "rock"]
    assert np.asarray(rows, dtype=float).sum(axis=1).max() > 1.5  # each label by itself
    write_csv(tmp_path / "classes.csv", kind="labels")
    assert fails("compare", "classes.csv", "--targets", "kind", "--losses", "sigmoid") == (
        "'sigmoid' is for labels that occur together, and each row of classes.csv has one"
    )
    said = fails("fit", "classes.csv", "--targets", "kind", "--loss", "sigmoid", *FITTED)
    assert said.endswith("if these are class names: fitzpatrick fit --loss fitzpatrick_logistic")


def test_counts_become_shares_where_it_is_asked_for(ok, fails):
    rows = [f"{i / 10},{i * 7 % 11},{3 + i % 8},{40 - i % 9}" for i in range(60)]
    write("a.csv", "x,z,u,v", *rows)
    options = ("--targets", "u,v", "--normalize")
    losses = ("--losses", "logistic", *QUICK, "--alphas", "10,1")
    words = next_words(ok("compare", "a.csv", *options, *losses))
    assert words[:5] == ["fit", "a.csv", *options]
    assert "60 samples, 2 features, 2 targets (proportions)" in ok(*words)
    fails("compare", "a.csv", *options[:2], *losses)
    assert fails("fit", "a.csv", *options, "--loss", "poisson", "-o", "m") == (
        "--normalize makes shares of the targets, and 'poisson' takes them as they are"
    )


def test_results_of_other_data_are_replaced_with_a_note(ok, tmp_path, monkeypatch):
    monkeypatch.setenv("FITZPATRICK_DATA", str(write_flags(tmp_path / "data")))
    for folder, seed in (("a", 0), ("b", 1)):
        (tmp_path / folder).mkdir()
        write_csv(tmp_path / folder / "mine.csv", seed=seed)
    options = ("--seeds", "1", "--losses", "logistic", "-j", "1", "--alphas", "10,1")
    for arguments, replaces in (
        (("compare", "a/mine.csv", *ABC, *LINEAR), False),
        (("compare", "a/mine.csv", *ABC, *LINEAR), False),
        (("compare", "b/mine.csv", *ABC, *LINEAR), True),
        (("reproduce", "flags"), False),
        (("reproduce", "yeast", "flags"), False),
        (("reproduce", "flags"), True),
    ):
        assert ("were of other data, and are replaced" in ok(*arguments, *options)) is replaces


def test_compare_with_a_test_file_says_what_was_left_out(ok, fails, tmp_path):
    train, test = write_csv(tmp_path / "a.csv"), write_csv(tmp_path / "b.csv", n=30, seed=1)
    for file in (train, test):
        head, *lines = file.read_text().splitlines()
        write(file, f"{head},flat", *(f"{line},7" for line in lines), "1,2,3,0,0,0,7")
    options = (*ABC, "--losses", "sparsemax", *QUICK)
    out = ok("compare", train, "--test", test, *options)
    Y, Y_test = (np.loadtxt(one, delimiter=",", skiprows=1)[:-1, 3:6] for one in (train, test))
    Y, Y_test = (one / one.sum(axis=1, keepdims=True) for one in (Y, Y_test))
    baseline = np.square(Y_test - Y.mean(axis=0)).sum(axis=1).mean()
    assert re.search(r"\n  baseline +(\.\d{4})", out)[1] == f"{baseline:.4f}"[1:]
    page = Path("out/compare-a.html").read_text()
    for note in (
        "1 of 81 samples have no label and are left out",
        "b.csv: 1 of 31 samples have no label and are left out",
        "1 of 4 features is constant and left out",
    ):
        assert f"note: {note}" in out
        assert note in page
    assert "80 to learn from, 30 to test" in page
    (tmp_path / "c.csv").write_text(test.read_text().replace("x1", "z1"))
    said = fails("compare", train, "--test", tmp_path / "c.csv", *options)
    assert "c.csv, line 1: no column is called 'x1'; the columns are " in said


@pytest.mark.parametrize("command", ["compare", "fit"])
def test_the_search_stops_where_the_whole_grid_does_not(ok, fails, tmp_path, command):
    """With much the same error; a comparison that is repeated fits nothing anew."""
    X = np.random.default_rng(0).normal(size=(60, 14))  # all but the first column are noise
    kinds = np.where(X[:, 0] + 2 * X[:, 13] > 0, "a", "b")  # the last one is not shown
    rows = [
        ",".join([*map("{:.3f}".format, row), kind])
        for row, kind in zip(X[:, :13], kinds, strict=True)
    ]
    write("mine.csv", ",".join(f"x{j}" for j in range(13)) + ",kind", *rows)
    arguments = (command, "mine.csv", "--targets", "kind", "--alphas", "1e4,1e2,1,1e-2,1e-4,1e-6")
    arguments += (*QUICK, "--losses", "logistic") if command == "compare" else ("-o", "m.model")
    number = r"^  logistic +(\.\d+)" if command == "compare" else r"squared error (\S+)"
    errors = []
    for whole in (("--whole-grid",), ()):
        out = ok(*arguments, *whole)
        errors.append(float(re.search(number, out, re.MULTILINE)[1]))
        assert bool(re.search("the (path|search) stopped ", out)) is (not whole)
    # fits that choose α end at 1e-4 of the gradient, or at 1e-8 on the whole grid
    assert errors[0] == pytest.approx(errors[1], rel=0.03)
    if command == "fit":
        assert "give one of them" in fails(*arguments, "--alpha", 1)
    else:
        before = stored(tmp_path / "out")
        ok(*arguments)
        assert stored(tmp_path / "out") == before


@pytest.mark.parametrize("alpha", [(), ("--alpha", "0.5")], ids=["cv", "alpha"])
def test_fit_and_predict(run, ok, tmp_path, alpha):
    file = write_csv(tmp_path / "a.csv")
    code, out, err = run("fit", "a.csv", *ABC, "-o", "m.model", *alpha)
    assert (code, err) == (0, "")
    assert "80 samples, 3 features, 3 targets (indicators)" in out
    found = re.search(
        r"α = \S+: cross-validated squared error (\.\d{4})\nbaseline, .*: (\.\d+)", out
    )
    assert bool(found) == (not alpha)
    if found:
        Y = np.loadtxt(file, delimiter=",", skiprows=1)[:, 3:]
        Y /= Y.sum(axis=1, keepdims=True)
        folds = KFold(5, shuffle=True, random_state=0).split(Y)
        means = [
            np.square(Y[test] - Y[rows].mean(axis=0)).sum(axis=1).mean() for rows, test in folds
        ]
        assert float(found[2]) == pytest.approx(np.mean(means), abs=5.1e-5)
        assert float(found[1]) < float(found[2])
    header, *rows = ok("predict", "m.model", "a.csv").splitlines()
    assert header == "a,b,c"
    values = np.asarray([row.split(",") for row in rows], dtype=float)
    assert values.shape == (80, 3)
    np.testing.assert_allclose(values.sum(axis=1), 1.0, atol=1e-6)


def test_coefficients_as_a_table(ok, fails, tmp_path):
    file = write_csv(tmp_path / "mine.csv")
    file.write_text(file.read_text().replace("x2", "=x2"))
    options = (*ABC, *FITTED, "--coefficients")
    assert last_line(ok("fit", file, *options, "w.csv")) == "wrote w.csv"
    head, *rows = csv.reader((tmp_path / "w.csv").read_text().splitlines())
    assert head == ["feature", "a", "b", "c"]
    assert [row[0] for row in rows] == ["(intercept)", "x1", "'=x2", "x3"]
    estimator = model_files.load(tmp_path / "m.model").estimator
    expected = np.vstack([estimator.intercept_, estimator.coef_.T])
    np.testing.assert_allclose(np.asarray(rows)[:, 1:].astype(float), expected, rtol=1e-8)
    said = f"--coefficients names {file}, which is read; name another file"
    assert fails("fit", file, *options, file) == said
    (tmp_path / "link.model").symlink_to(tmp_path / "m.model")
    said = "--coefficients and --output name one file; name two"
    assert fails("fit", file, *options, "link.model") == said


def test_text_that_a_spreadsheet_would_run_is_escaped(ok):
    """Cells of text alone: numbers stay as they are, negative ones too."""
    cells = ["=1+1", "+cmd", "-2+3+cmd|' /C calc'!A0", "@SUM(1)", "plain", "-1.5", "-", "+3 %"]
    rows = [f'{i / 4},{i % 3},"{cells[i % 8]}",{("=bee", "class")[i % 2]}' for i in range(32)]
    write("a.csv", "x,z,=note,y", *rows)
    ok("fit", "a.csv", "--targets", "y", "--ignore", "=note", *FITTED)
    head, *lines = csv.reader(ok("predict", "m.model", "a.csv", "--keep", "=note,x").splitlines())
    assert head == ["'=note", "x", "'=bee", "class", "class_"]  # a class may have any name
    formulas = set(cells[:4])
    for i, (note, x, *values, name) in enumerate(lines):
        assert note == ("'" if cells[i % 8] in formulas else "") + cells[i % 8]
        assert float(x) == i / 4
        assert np.asarray(values, dtype=float).sum() == pytest.approx(1)
        assert name == head[2:4][int(np.argmax(np.asarray(values, dtype=float)))]


def test_fit_leaves_constant_columns_out(ok, tmp_path):
    head, *lines = write_csv(tmp_path / "mine.csv").read_text().splitlines()
    write("flat.csv", f"flat,{head},zero", *(f"7,{line},0" for line in lines))
    ok("fit", "mine.csv", *ABC, *FITTED)
    out = ok("fit", "flat.csv", *ABC, "--alpha", 1, "-o", "f.model")
    assert "note: 2 of 5 features are constant and left out" in out
    assert ok("predict", "f.model", "flat.csv") == ok("predict", "m.model", "flat.csv")
    coef = model_files.load(tmp_path / "f.model").estimator.coef_
    assert coef.shape == (3, 5)
    assert not coef[:, [0, 4]].any()
    assert coef[:, 1:4].all()


def test_fits_that_do_not_converge_are_a_note(run, tmp_path, monkeypatch):
    monkeypatch.setattr(protocol, "Protocol", partial(protocol.Protocol, max_iter=1))
    write_csv(tmp_path / "mine.csv")
    for options, what in (
        (("--alpha", "0.01"), "stopped after 1 iterations at gradient norm "),
        ((), r"\d+ fits of the cross-validation did not converge\n"),
    ):
        code, out, err = run("fit", "mine.csv", *ABC, "-o", "m.model", *options)
        assert code == 0
        assert re.search(f"\nnote: {what}", out)
        assert "Warning" not in out + err


def test_fit_at_the_end_of_the_grid_says_so(ok):
    write("a.csv", "x,y", *(f"{i % 7},{'ab'[i % 2]}" for i in range(70)))  # nothing to learn
    out = ok("fit", "a.csv", "--targets", "y", "-o", "m.model")
    said = "α = 10000 is the strongest penalty that was tried: --alphas 10000,100000,1e+06 goes"
    assert f"note: {said}" in " ".join(out.split())


def test_fit_of_counts_and_of_numbers(ok):
    rows = [f"{i / 10:.1f},{round(np.exp(i / 10))},{1 - i / 10:.1f}" for i in range(1, 31)]
    write("a.csv", "x,count,value", *rows)
    for at, (loss, target, other) in enumerate(
        (("poisson", "count", "value"), ("squared", "value", "count")), 1
    ):
        columns = ("--targets", target, "--ignore", other)
        out = ok("fit", "a.csv", *columns, "--loss", loss, "-o", "m.model", "--alpha", "0.01")
        assert "30 samples, 1 feature, 1 target (numbers)" in out
        header, *values = ok("predict", "m.model", "a.csv").splitlines()
        assert header == target
        found = np.asarray(values, dtype=float)
        np.testing.assert_allclose(found, [float(row.split(",")[at]) for row in rows], atol=0.6)
    assert found.min() < -1.5  # numbers, not proportions


def test_outputs_to_links_folders_and_what_is_read(ok, fails, tmp_path):
    file = write_csv(tmp_path / "mine.csv")
    content = file.read_bytes()
    (tmp_path / "folder").mkdir()
    options = (*ABC, "--alpha", 1)
    assert fails("fit", file, *options, "-o", "folder") == "folder: Is a directory"
    for _ in range(2):  # an old model is replaced
        ok("fit", "mine.csv", *options, "-o", "m.model")
    (tmp_path / "link.csv").symlink_to(tmp_path / "target.csv")
    ok("predict", "m.model", file, "-o", "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "target.csv").read_text() == ok("predict", "m.model", file)
    (tmp_path / "same.csv").symlink_to(file)
    said = fails("fit", "mine.csv", *options, "-o", "same.csv")
    assert said == "--output names mine.csv, which is read; name another file"
    for output in ("mine.csv", "m.model"):
        said = fails("predict", "m.model", "mine.csv", "-o", output)
        assert said.startswith(f"--output names {output}")
    assert file.read_bytes() == content


def test_one_sample_cannot_choose_a_penalty(fails):
    write("a.csv", "x,a,b", "1,0.5,0.5")
    said = fails("fit", "a.csv", "--targets", "a,b", "-o", "m", "--no-intercept", "--scaling=none")
    assert said == "a.csv: a single sample cannot be divided into folds"


BAD = {
    "junk.csv": (np.random.default_rng(0).bytes(4000), r"junk\.csv, line 2: not a text file"),
    "hole.csv": (
        b"x,a,b\n1,1,0\n1,1,\n",
        r"hole\.csv, line 3: target column 'b': no value; --missing drop-targets leaves such rows",
    ),
    "flat.csv": (b"x,a,b\n" + b"1,1,0\n1,0,1\n" * 20, r"flat\.csv: every feature is constant"),
    "range.svm": (b"0 1:1\n7777777 1:1\n", r"range\.svm, line 2: label '7777777' is out of range"),
    "large.csv": (
        b"x,a,b\n" + b"1e200,1,0\n-1e200,0,1\n" * 20,
        r"large\.csv: X holds an entry of size 1e\+200, and sums of squares overflow",
    ),
    "short.csv": (b"x,a,b\n1,1,0\n2,0,1\n", r"short\.csv: 1 sample to learn from, expected 16"),
    "folder.csv": ("folder", r"folder\.csv: is a folder; expected a file"),
    "none.csv": (None, r"none\.csv: no such file"),
}
OF_COMPARE = ("short.csv", "large.csv")


@pytest.mark.parametrize(
    ("command", "name"),
    # for a fit, two samples are enough, and its progress is shown before the estimator speaks
    [(c, n) for c in ("compare", "fit") for n in BAD if c != "fit" or n not in OF_COMPARE],
)
def test_bad_files_end_in_one_line(run, tmp_path, name, command):
    content, problem = BAD[name]
    if content == "folder":
        (tmp_path / name).mkdir()
    elif content is not None:
        (tmp_path / name).write_bytes(content)
    targets = () if ".svm" in name else ("--targets", "a,b")
    output = ("-o", "made/model.safetensors") if command == "fit" else ("-o", "made")
    code, out, err = run(command, name, *targets, *output)
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"error: {problem}[^\n]*\n", err)
    assert not (tmp_path / "made").exists()


def check_options_named(command, text):
    """Every option that a message names is one of the command, or of the one that it names."""
    commands = cli.typer.main.get_command(cli.app).commands
    for line in text.splitlines():
        other = re.search(r"fitzpatrick (\w+)", line)
        parameters = commands[other[1] if other else command].params
        known = {name for one in parameters for name in (*one.opts, *one.secondary_opts)}
        assert set(re.findall(r"--[a-z][a-z-]*", line)) <= known | {"--help"}, line


# files whose fault has advice on options, where there are any
ADVISED = {
    "missing.csv": "x,y\n1,u\nNA,v\n3,\n4,u\n",
    "mixed.csv": "x,y\n1,u\n2,v\nabout 3,u\n4,v\n5,u\n",
    "date.csv": "x,z,y\n1,2024-01-31,u\n2,2024-02-01,v\n3,2024-03-01,u\n",
    "marks.csv": "x;y\n1.234;u\n5.678;v\n",
    "unit.csv": "x,y\n3 kg,u\n4 kg,v\n",
    "numbers.csv": "x,y\n" + "".join(f"{i},{i * 5 % 203}.5\n" for i in range(203)),
    "no.txt": "x,y\n1,u\n",
    "none.arff": "@relation r\n@attribute x numeric\n@attribute y {0,1}\n@data\n1,0\n",
    "date.arff": "@relation r\n@attribute x date\n@attribute y {0,1}\n@data\n1,0\n",
}


@pytest.mark.parametrize("command", ["compare", "fit", "predict", "reproduce"])
def test_hints_name_options_that_the_command_has(run, ok, tmp_path, monkeypatch, command):
    write("train.csv", "x,z,y", *["1,2,u", "2,1,v"] * 3)
    ok("fit", "train.csv", "--targets", "y", *FITTED)
    folder = write_flags(tmp_path / "data")
    monkeypatch.setenv("FITZPATRICK_DATA", str(folder))
    for name, content in ADVISED.items():
        (tmp_path / name).write_text(content)
        targets = () if name == "none.arff" else ("--targets", "y")
        arguments = {
            "compare": (name, *targets),
            "fit": (name, *targets, "-o", "new.model"),
            "predict": ("m.model", name),
            "reproduce": ("flags",),
        }[command]
        if command == "reproduce":
            for file in folder.iterdir():
                file.unlink()
            suffix = "-{}.arff" if name.endswith(".arff") else "_{}.svm"
            for part in ("train", "test"):
                (folder / f"flags{suffix.format(part)}").write_text(content)
        code, _, err = run(command, *arguments)
        assert code == 2
        check_options_named(command, err)


TARGETS = (("indicators", "2,0,1"), ("proportions", "0.5,0.9,0"), ("proportions", "-1,1,1"))
TARGETS += (("proportions", "x,0.5,0.5"), ("labels", ""))


@pytest.mark.parametrize(
    ("command", "kind", "value"),
    [
        *(("compare", *case) for case in TARGETS),
        *(("fit -o m.model --loss logistic", *case) for case in TARGETS),
        ("fit -o m.model --loss poisson", "indicators", "1,-1,0"),
        ("fit -o m.model --loss sigmoid", "indicators", "1,7,0"),
    ],
)
def test_a_bad_target_in_line_62_is_reported_in_line_62(fails, tmp_path, command, kind, value):
    lines = write_csv(tmp_path / "a.csv", kind=kind).read_text().splitlines()
    lines[61] = ",".join([*lines[61].split(",")[:3], value])
    write("a.csv", *lines)
    targets = "kind" if kind == "labels" else "a,b,c"
    said = fails(*command.split(), "a.csv", "--targets", targets)
    assert said.startswith("a.csv, line 62: ")
    if "poisson" in command:
        assert said.endswith("target 'b' is -1, outside [0, inf], the range of the loss 'poisson'")
    assert not (tmp_path / "m.model").exists()


WRONG_OPTIONS = {
    "reproduce yeats": "unknown data set 'yeats'",
    "reproduce --losses sigmoid": "'sigmoid' does not predict proportions; choose among ",
    "reproduce --losses logistic,logistic": "one or more different names",
    "reproduce --losses sparse_max": "unknown loss 'sparse_max'; did you mean ",
    "reproduce --tol -1": "--tol must be a positive number",
    "reproduce --alphas 1,x": "--alphas needs numbers with commas",
    "reproduce --alphas 1,0": "--alphas must be a positive number",
    "fit a.csv -o m --loss nope": "unknown loss 'nope'; the names are ",
    "fit a.csv -o m --alpha 0": "--alpha must be a positive number",
    "fit a.csv -o m --tightness -1": "tightness must be",
    "fit a.csv -o m --loss logistic --tightness 0.5": "'logistic' is a Fenchel-Young loss, of "
    "tightness 0; for tightness=0.5 use 'fitzpatrick_logistic'",
    "fit a.csv -o m --kinds zip=text": "ignored, got 'zip=text'",
    "fit a.csv -o m --kinds =number": "ignored, got '=number'",
    "fit a.csv -o m --kinds a=number,a=tags": "--kinds names 'a' twice, as number and as tags",
    "fit a.csv -o m --kinds a=number --tags a": "--tags names 'a', which is number in --kinds",
    "compare a.csv --kinds zip": "--kinds needs NAME=KIND, with KIND among number, ",
    "compare a.csv --tightness 0,inf": "--tightness must be a finite number of",
    "compare a.csv --tightness 1e9": "tightness must be 0 or between 1e-12 and 1e+06",
    "compare a.csv --tightness '0;1'": "--tightness needs numbers with commas",
    "compare a.csv --model tree": "--model needs one or more of linear, boosted",
    "compare a.csv --losses logistic,poisson": "'poisson' does not predict proportions; choose "
    "among entmax15, fitzpatrick_entmax15, fitzpatrick_logistic, fitzpatrick_sigmoid, "
    "fitzpatrick_sparsemax, logistic, perceptron, sigmoid, sparsemax, or run fitzpatrick fit "
    "--loss poisson",
}


@pytest.mark.parametrize("typed", WRONG_OPTIONS)
def test_wrong_options(fails, typed):
    assert WRONG_OPTIONS[typed] in fails(*shlex.split(typed))


# options of commands, and what becomes of them; all else stays as it is without the option
OF_FITS = {"--scaling none": {"scaling": "none"}, "--alphas 1,2,2.0": {"alphas": (2.0, 1.0)}}
OF_RUNS = {
    **OF_FITS,
    "--losses sparsemax": {"losses": (LossChoice("sparsemax"),)},
    "--seeds 2": {"seeds": 2},
    "--jobs 3": {"n_jobs": 3},
    "--output there": {"output": Path("there")},
}
HANDED_OVER = {
    "reproduce": {
        **OF_RUNS,
        "--datasets flags yeast": {"names": ["flags", "yeast"]},
        "all": {"names": list(DATASETS)},
        "--split 3": {"split": 3},
        "--precision float32": {"dtype": "float32"},
        "--tol 1e-5": {"tol": 1e-5},
        "--stop-early": {"whole_grid": False},
        "--intercept": {"intercept": True},
        "--refit": {"refit": True},
        "--device cpu": {"device": "cpu", "n_jobs": 1},
    },
    "compare mine.csv --targets kind --model linear": {
        **OF_RUNS,
        "--losses fitzpatrick_logistic --tightness 2,1": {
            "losses": tuple(LossChoice("fitzpatrick_logistic", c) for c in (2.0, None))
        },
        "--model boosted --losses logistic": {"losses": (LossChoice("logistic", None, "boosted"),)},
        "--test test.csv": {"samples": (80, 30)},
        "--no-intercept": {"intercept": False},
        "--no-refit": {"refit": False},
        "--whole-grid": {"whole_grid": True},
    },
    "fit mine.csv --targets kind --output m": {
        **OF_FITS,
        "--loss sparsemax": {"choice": LossChoice("sparsemax")},
        "--tightness 0.5": {"choice": LossChoice("fitzpatrick_logistic", 0.5)},
        "--model boosted --rounds 3": {
            "choice": LossChoice("fitzpatrick_logistic", None, "boosted"),
            "setting": 3,
        },
        "--alpha 2": {"setting": 2.0},
        "--labelled-only": {"labelled_only": True},
        "--no-intercept": {"intercept": False},
        "--whole-grid": {"whole_grid": True},
    },
}
CALLED = {"reproduce": reproduce, "compare": compare, "fit": models}  # the modules
SETTINGS = {"names", "split", "choice", "setting", "labelled_only", "samples"}
SETTINGS |= {*vars(RunOptions(())), *vars(protocol.Protocol())} - {"protocol", "command"}


@pytest.mark.parametrize(
    ("command", "typed"),
    [(one, typed) for one, options in HANDED_OVER.items() for typed in options],
)
def test_options_are_handed_over(ok, tmp_path, monkeypatch, command, typed):
    """To what does the work, each without any other effect."""
    if "boosted" in typed:
        pytest.importorskip("lightgbm")
    if "--device" in typed:
        pytest.importorskip("torch")
    for name, n in (("mine.csv", 80), ("test.csv", 30)):
        write_csv(tmp_path / name, n, kind="labels")
    name, *_ = command.split()
    signature, seen = inspect.signature(getattr(CALLED[name], name)), []

    def watch(*given, **named):
        found = signature.bind(*given, **named).arguments
        for one in ("options", "protocol"):
            found |= vars(found[one]) if one in found else {}
        if one := found.get("experiment"):
            found["samples"] = len(one.Y), len(one.Y_test)
        seen.append({name: value for name, value in found.items() if name in SETTINGS})
        raise SystemExit

    monkeypatch.setattr(CALLED[name], name, watch)
    ok(*command.split())
    ok(*command.split(), *typed.split())
    assert seen[0] != seen[1] == seen[0] | HANDED_OVER[command][typed]


@pytest.mark.parametrize("command", HANDED_OVER)
def test_every_option_of_a_command_is_among_them(command):
    """But for those on how a file is read, or where the coefficients are written."""
    name, *_ = command.split()
    others = {*inspect.signature(cli.Source).parameters, "coefficients", "help", "names", "_"}
    own = [one for one in cli._commands()[name].params if one.name not in others]
    typed = " ".join([command, *HANDED_OVER[command]]).split()
    assert [one.name for one in own if not {*one.opts, *one.secondary_opts} & {*typed}] == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs names of files that are no UTF-8")
@pytest.mark.parametrize(
    ("name", "stem"),
    [
        (b"my.data.csv", b"my.data"),
        (b".hid.csv", b".hid"),
        (b"\xff.csv", b"\xff"),
        (b"z.csv.gz", b"z"),
    ],
)
def test_results_are_named_after_the_file(ok, tmp_path, name, stem):
    content = write_csv(tmp_path / "mine.csv").read_bytes()
    packed = gzip.compress(content) if name.endswith(b"gz") else content
    (tmp_path / os.fsdecode(name)).write_bytes(packed)
    ok("compare", os.fsdecode(name), *ABC, "--losses", "logistic", *QUICK)
    for suffix in (b".txt", b".csv", b".html"):
        assert (tmp_path / "out" / os.fsdecode(b"compare-" + stem + suffix)).is_file()


# what needs a process of its own: signals


def start(*arguments, **options):
    """The command line in a process of its own, where Ctrl-C is not ignored."""
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "from fitzpatrick.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        **options,
    )


def start_and_wait(folder, count, *arguments):
    """A run in a process of its own, with this many paths on record."""
    process = start(*arguments, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(stored(folder)) < count and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return process


def test_killed_the_table_is_the_same(ok, tmp_path, monkeypatch):
    """SIGKILL in the middle of the run, then once more to the end."""
    monkeypatch.setenv("FITZPATRICK_DATA", str(write_flags(tmp_path / "data")))
    arguments = ("reproduce", "flags", "--seeds", "4", "--losses", "logistic,sparsemax")
    undisturbed = ok(*arguments, "-j", 1, "-o", "a")
    process = start_and_wait(tmp_path / "b", 1, *arguments, "-j", "2", "-o", "b")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)  # ends only when no worker is left either
    assert process.returncode == -signal.SIGKILL  # it was in the middle
    kept = stored(tmp_path / "b")
    assert not (tmp_path / "b" / "table.txt").exists()
    assert ok(*arguments, "-j", 1, "-o", "b").replace("b/", "a/") == undisturbed
    assert kept < stored(tmp_path / "b")  # finished fits are not touched again
    written = [(tmp_path / folder / "table.txt").read_bytes() for folder in "ab"]
    assert written[0] == written[1]


@pytest.mark.skipif(os.name != "posix", reason="signals of a terminal")
@pytest.mark.parametrize("paths", [0, 1])
def test_interrupt_keeps_what_is_finished(tmp_path, paths):
    """While workers start, and once the first of them has finished a path."""
    many = ("reproduce", "--seeds", "200", "--losses", "logistic", "--alphas", "1e3,1e2")
    process = start_and_wait(tmp_path / "out", paths, *many, "-j", "2")
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert [line for line in err.splitlines() if not re.fullmatch(r"yeast: .* fits.*", line)] == []
    assert not paths or stored(tmp_path / "out")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_terminal_without_greek_letters_and_a_full_disk(run, monkeypatch):
    out = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="cp1252"))
        assert run() == (0, "", "")
        assert "scores ? = " in out.getvalue().decode("cp1252")
        full = io.TextIOWrapper(io.FileIO("/dev/full", "w"), write_through=True)
        patch.setattr(sys, "stdout", full)
        assert run("datasets") == (2, "", "error: the output: No space left on device\n")


@pytest.mark.skipif(os.name != "posix", reason="limits of a process")
def test_full_disk_behind_the_records(run, ok, tmp_path):
    import resource

    ok(*SMALL)
    table = (tmp_path / "out" / "table.txt").read_bytes()
    kept = stored(tmp_path / "out")
    longer = (*SMALL[:-1], "1e3,1e2,1e1")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        code, _, err = run(*longer)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert code == 2
    said = r"error: out/records\.sqlite: the records cannot be kept here: [^\n]+"
    assert re.fullmatch(said, last_line(err))
    assert (tmp_path / "out" / "table.txt").read_bytes() == table
    assert stored(tmp_path / "out") == kept
    ok(*longer)


def test_files_without_names_and_names_with_commas(ok):
    X = np.random.default_rng(3).normal(size=(60, 2)).round(3)
    rows = [f"{a},{b},{'yes' if a > 0 else 'no'}" for a, b in X]
    write("bare.csv", *rows)
    ok("fit", "bare.csv", "--targets", "column_3", "--no-header", *FITTED)
    assert len(ok("predict", "m.model", "bare.csv", "--no-header").splitlines()) == 61
    write("named.csv", '"width, in cm",height,fits', *rows)
    ok("fit", "named.csv", "--ignore", '"width, in cm"', "--targets", "fits", *FITTED)
    out = ok("predict", "m.model", "named.csv", "--keep", 'height,"width, in cm"')
    assert out.startswith('height,"width, in cm",')


def test_the_decimal_mark_of_a_file_to_predict(ok, fails):
    """Of a file that does not make it clear, and that is not the training file's."""
    write("a.csv", "x;y", *(f"{i / 10 + 0.05:.3f};{'no' if i < 15 else 'yes'}" for i in range(30)))
    ok("fit", "a.csv", "--targets", "y", *FITTED)
    write("b.csv", "x", "1.234", "2.345")
    write("c.csv", "x", '"1,234"', '"2,345"')
    expected = ok("predict", "m.model", "b.csv")
    assert fails("predict", "m.model", "c.csv").endswith("specify --decimal . or --decimal ,")
    assert ok("predict", "m.model", "c.csv", "--decimal", ",") == expected
    assert ok("predict", "m.model", "b.csv", "--decimal", ".") == expected
    write("d.csv", "x;y", *(f"{i},25;{'ab'[i % 2]}" for i in range(30)))
    for words in (("fit", "d.csv", "--targets", "y", *FITTED), ("predict", "m.model", "d.csv")):
        assert fails(*words, "--decimal", ".") == "d.csv: column 'x': the decimal mark is not '.'"
