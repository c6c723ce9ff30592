"""The command line as a user meets it: output, exit codes, one-line errors, survival of a kill."""

import csv
import gzip
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import KFold

from fitzpatrick import cli, explorer
from fitzpatrick.experiments import figures, model_files
from fitzpatrick.experiments.records import FILE_NAME
from fitzpatrick.linear_model import ProportionRegressor, fit_path

COMMANDS = ("reproduce", "compare", "fit", "predict", "figures", "explore", "datasets")


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FITZPATRICK_DATA", raising=False)
    monkeypatch.setenv("FITZPATRICK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")


FITTED = ("--alpha", 1, "-o", "m.model")


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


def stored(folder):
    """The rows of every fit on record, with their times."""
    file = folder / FILE_NAME
    if not file.is_file():
        return set()
    with closing(sqlite3.connect(file, timeout=60)) as connection:
        try:
            return set(connection.execute("SELECT path, position, seconds, sha256 FROM fits"))
        except sqlite3.OperationalError:  # before the tables are made
            return set()


def start_and_wait(folder, count, *arguments):
    """A run in a process of its own, with so many fits on record."""
    process = start(*arguments, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(stored(folder)) < count and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return process


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
    assert max(map(len, out.splitlines())) <= 79
    # P_△((y + θ)/2) of y = (½, ½, 0) and θ = (1.5, 0.2, −1), beside the link, which is a vertex
    line = next(line for line in out.splitlines() if line.startswith("fitzpatrick_sparsemax"))
    assert line.split(maxsplit=2)[2].split("(")[1:] == ["1, 0, 0)           ", "0.82, 0.17, 0)"]


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_fits_80_columns(run, command):
    code, out, _ = run(*command, "--help")
    assert code == 0
    assert "Usage" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    if not command:
        assert all(name in out for name in COMMANDS)
        assert "..." not in out.partition("Commands:")[2]  # every summary is whole


def test_version(run):
    code, out, _ = run("--version")
    assert code == 0
    assert re.fullmatch(r"fitzpatrick \d+\.\d+.*\n", out)


def test_without_typer():
    code = "import sys; sys.modules['typer'] = None; import fitzpatrick.cli"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 2
    assert done.stderr == "error: the command line needs typer: pip install 'fitzpatrick[cli]'\n"


def test_figures(run, tmp_path, monkeypatch):
    assert len(figures.FIGURES) == 4
    monkeypatch.setattr(figures, "FIGURES", {"one": figures.lower_bound_figure})
    code, out, _ = run("figures", "-o", "pictures", "-f", "svg", "-f", "png")
    assert (code, out) == (0, "wrote pictures/one.svg\nwrote pictures/one.png\n")
    assert len(list((tmp_path / "pictures").iterdir())) == 2


@pytest.fixture
def opened(monkeypatch):
    """The addresses that a browser was asked for, on a machine with a screen."""
    asked = []
    for name in ("WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(explorer.webbrowser, "open", lambda url: asked.append(url) or True)
    return asked


def test_explore_writes_and_opens_the_page(run, tmp_path, opened):
    code, out, err = run("explore")
    assert (code, out, err) == (0, "wrote out/explorer.html\n", "")
    page = tmp_path / "out" / "explorer.html"
    assert opened == [page.as_uri()]
    assert page.read_text(encoding="utf-8") == explorer.page()
    assert list(page.parent.iterdir()) == [page]  # no temporary file is left


def test_explore_says_what_to_do_where_no_browser_opens(run, opened, monkeypatch):
    wrote = (0, "wrote mine.html: open it in a browser\n")
    assert run("explore", "--no-open", "-o", "mine.html")[:2] == wrote
    monkeypatch.delenv("DISPLAY")
    monkeypatch.setattr(sys, "platform", "linux")
    assert run("explore", "-o", "mine.html")[:2] == wrote
    assert opened == []  # it did not start a browser of the terminal, which would wait for keys
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(explorer.webbrowser, "open", lambda url: False)
    assert run("explore", "-o", "mine.html")[:2] == wrote


def test_explore_where_it_cannot_write(run, tmp_path, opened):
    (tmp_path / "file").write_text("")
    code, out, err = run("explore", "-o", tmp_path / "file" / "page.html")
    assert (code, out) == (2, "")
    assert re.fullmatch(r"error: \S+page.html: (Not a directory|File exists)\n", err)
    assert run("explore", "-o", tmp_path)[2] == f"error: {tmp_path}: Is a directory\n"
    assert opened == []


def test_datasets(run):
    code, out, _ = run("datasets", "--details")
    assert code == 0
    assert re.search(r"yeast +1125 +375 +917 +103 +14 +embedded", out)
    assert "BSD 3-Clause" in out
    assert max(map(len, out.splitlines())) <= 80


def test_datasets_of_a_folder_that_is_none(run, monkeypatch):
    monkeypatch.setenv("FITZPATRICK_DATA", "nowhere")
    code, out, _ = run("datasets")
    assert code == 0
    assert re.search(r"yeast +1125 +375 +917 +103 +14 +unusable\n", out)
    assert "yeast: unusable: FITZPATRICK_DATA names nowhere, which is not a folder" in out
    assert max(map(len, out.splitlines())) <= 80


def test_reproduce_names_what_it_cannot_run_and_goes_on(run, tmp_path, monkeypatch):
    monkeypatch.setenv("FITZPATRICK_DATA", str(write_flags(tmp_path / "data")))
    (tmp_path / "cache").write_text("no folder")
    options = ("--seeds", 1, "-j", 1)
    code, out, err = run("reproduce", "--datasets", "birds", "scene", "flags", "flags", *options)
    assert code == 0
    assert "error: birds was not run: " in err
    assert re.search(r"error: scene was not run: the cache \S+ cannot be used: .*\n", err)
    assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= 80
    assert re.search(r"sparsemax +\.\d{4}\*? +– +\.186", out)  # the paper's number beside ours
    assert "flags: 36 of 36 fits" in err
    assert "\x1b" not in out + err
    page = (tmp_path / "out" / "report.html").read_text()
    assert "birds" in page
    assert "<pre>fitzpatrick reproduce --datasets birds scene flags flags --seeds 1 -j 1" in page
    assert "birds was not run: " in (tmp_path / "out" / "table.txt").read_text()
    assert re.search(r"The largest distance between the two is \.\d{4} \(flags, \w+\)\.", page)
    assert (tmp_path / "out" / "fits.csv").read_text().count("\n") == 37
    assert (tmp_path / "out" / "table.txt").read_text().splitlines()[-4:] == [
        line for line in out.splitlines() if re.match(r" +\w*(sparsemax|logistic) ", line)
    ]


def test_reproduce_stops_early_where_it_is_asked_to(run, tmp_path):
    """Fewer fits give one and the same table, with yeast's embedded rows."""
    losses = ("--losses", "logistic,fitzpatrick_logistic")
    command = ("reproduce", "-j", "1", "--seeds", "1", *losses)
    tables, fits = [], []
    for early in ((), ("--stop-early",)):
        code, out, _ = run(*command, *early)
        assert code == 0
        assert ("until the dev error has clearly risen" in out) is bool(early)
        tables.append(re.findall(r"^  \w+ +\.\d{3}.*", out, re.MULTILINE))
        with (tmp_path / "out" / "fits.csv").open() as rows:
            fits.append(len(list(csv.DictReader(rows))))
    assert len(tables[0]) == 2
    assert tables[0] == tables[1]
    assert fits[0] == 2 * 9
    assert fits[1] < fits[0]


def test_reproduce_with_nothing_to_run(run):
    code, _, err = run("reproduce", "birds")
    assert code == 2
    assert re.fullmatch(r"error: birds was not run: [^\n]*\n", err)
    assert not Path("out").exists()


@pytest.mark.parametrize("command", ["reproduce", "compare"])
def test_killed_twice_the_table_is_the_same(run, tmp_path, monkeypatch, command):
    """SIGKILL in the middle of the run, then once more to the end."""
    monkeypatch.setenv("FITZPATRICK_DATA", str(write_flags(tmp_path / "data")))
    arguments = ("reproduce", "flags", "--seeds", "8")
    if command == "compare":
        arguments = ("compare", str(tmp_path / "data" / "flags_train.svm"), "--seeds", "8")
    results = "table.txt" if command == "reproduce" else "compare-flags_train.txt"
    code, undisturbed, _ = run(*arguments, "-j", 1, "-o", "a")
    assert code == 0
    kept = set()
    for threshold, jobs in ((9, "2"), (60, "1")):
        process = start_and_wait(tmp_path / "b", threshold, *arguments, "-j", jobs, "-o", "b")
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)  # ends only when no worker is left either
        assert process.returncode == -signal.SIGKILL  # it was in the middle
        assert kept <= stored(tmp_path / "b")  # finished fits are not touched again
        kept = stored(tmp_path / "b")
    assert not (tmp_path / "b" / results).exists()
    code, output, _ = run(*arguments, "-j", 1, "-o", "b")
    assert code == 0
    assert kept <= stored(tmp_path / "b")
    written = [(tmp_path / folder / results).read_bytes() for folder in "ab"]
    assert written[0] == written[1]
    assert output.replace("b/", "a/") == undisturbed


@pytest.mark.parametrize("kind", ["indicators", "proportions", "labels"])
def test_compare_recommends_the_least_error(run, tmp_path, kind):
    file = write_csv(tmp_path / "mine.csv", kind=kind)
    targets = "kind" if kind == "labels" else "a,b,c"
    losses = "logistic,fitzpatrick_logistic,sparsemax"
    arguments = ("--targets", targets, "--losses", losses, "-j", 1, "--seeds", 2)
    code, out, _ = run("compare", file, *arguments)
    assert code == 0
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
    curves = {"0": {}, "1": {}}
    with (tmp_path / "out" / "compare-mine.csv").open() as lines:
        for row in csv.DictReader(lines):
            if row["loss"] == best and row["seed"]:
                curves[row["seed"]][float(row["alpha"])] = float(row["dev_error"])
    tried = sorted({*curves["0"], *curves["1"]})
    mean = sum(
        np.interp(np.log(tried), np.log(sorted(one)), [one[a] for a in sorted(one)], left=np.inf)
        for one in curves.values()
    )
    # six digits are written
    assert mean[tried.index(float(alpha))] == pytest.approx(mean.min(), rel=1e-4)
    page = (tmp_path / "out" / "compare-mine.html").read_text()
    assert f'<td class="text">{kind}</td>' in page
    assert "60 to learn from, 20 to test" in page
    assert "fitted to train and dev" in page
    assert f"<pre>fitzpatrick compare {file} --targets {targets}" in page
    assert f"<pre>{out.splitlines()[-1].removeprefix('next: ')}</pre>" in page
    shown = re.search(r"accuracy +log loss", out)
    assert bool(shown) == (kind == "labels")
    text = (tmp_path / "out" / "compare-mine.txt").read_text()
    assert text in out.replace("\nwrote", "wrote", 1)


def test_compare_prints_the_command_to_run_next(run, tmp_path):
    """With the options that it was given, and as a shell would take it."""
    write_csv(tmp_path / "my data.txt")
    given = ("--targets", "a, b,c", "--format", "csv", "--ignore", "x2", "--no-intercept")
    given += ("--scaling", "none")
    options = ("--losses", "sparsemax", "--seeds", 1, "-j", 1)
    code, out, _ = run("compare", "my data.txt", *given, *options)
    assert code == 0
    _, *words = shlex.split(out.splitlines()[-1].removeprefix("next: "))
    assert words[:-4] == ["fit", "my data.txt", *given, "--loss", "sparsemax"]
    assert words[-4::2] == ["--alpha", "-o"]
    code, out, _ = run(*words)
    assert code == 0
    assert "80 samples, 2 features" in out
    assert model_files.load(tmp_path / "model.safetensors").estimator.standardize is False


def test_the_next_command_fits_the_rows_that_were_compared(run, tmp_path):
    """Losses for labels that occur together are compared on rows with a label, too."""
    generator = np.random.default_rng(6)
    lines = ["x1,x2,genres"]
    for a, b in generator.normal(size=(90, 2)):
        tags = [name for name, x in (("rock", a), ("jazz", b), ("folk", a - b)) if x > 0.4]
        lines.append(f"{a:.4f},{b:.4f},{';'.join(tags)}")
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    unlabelled = sum(line.endswith(",") for line in lines)
    assert unlabelled > 10
    arguments = ("compare", "a.csv", "--targets", "genres", "--seeds", 1, "-j", 1)
    note = f"note: {unlabelled} of 90 samples have no label and are"
    for loss, is_named in (("fitzpatrick_sigmoid", True), ("fitzpatrick_logistic", False)):
        code, out, _ = run(*arguments, "--losses", loss, "--tightness", "0.5", "--no-refit")
        assert code == 0
        _, *words = shlex.split(out.splitlines()[-1].removeprefix("next: "))
        assert ("--labelled-only" in words) is is_named
        code, out, _ = run(*words)
        assert code == 0
        assert f"{loss} (tightness 0.5) to {90 - unlabelled} samples, " in out
        assert f"{note} left out\n" in out
    code, out, _ = run("fit", "a.csv", "--targets", "genres", "--loss", "sigmoid", *FITTED)
    assert code == 0
    assert "to 90 samples, 2 features, 3 targets (indicators)" in out
    assert f"{note} kept: each of their targets is 0\n" in out


def test_counts_become_shares_where_it_is_asked_for(run, tmp_path):
    rows = [f"{i / 10},{i * 7 % 11},{3 + i % 8},{40 - i % 9}" for i in range(60)]
    (tmp_path / "a.csv").write_text("x,z,u,v\n" + "\n".join(rows) + "\n")
    options = ("--targets", "u,v", "--normalize")
    losses = ("--losses", "logistic", "--seeds", 1, "-j", 1, "--alphas", "10,1")
    code, out, _ = run("compare", "a.csv", *options, *losses)
    assert code == 0
    _, *words = shlex.split(out.splitlines()[-1].removeprefix("next: "))
    assert words[:5] == ["fit", "a.csv", *options]
    code, out, _ = run(*words)
    assert (code, "60 samples, 2 features, 2 targets (proportions)" in out) == (0, True)
    assert run("compare", "a.csv", *options[:2], *losses)[0] == 2


def test_compare_says_what_was_left_out(run, tmp_path):
    lines = write_csv(tmp_path / "a.csv").read_text().splitlines()
    lines = [f"{lines[0]},flat", *(f"{line},7" for line in lines[1:]), "1,2,3,0,0,0,7"]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    options = ("--losses", "logistic", "--seeds", 1, "-j", 1)
    code, out, _ = run("compare", "a.csv", "--targets", "a,b,c", *options)
    assert code == 0
    page = (tmp_path / "out" / "compare-a.html").read_text()
    for note in (
        "1 of 81 samples have no label and are left out",
        "1 of 4 features is constant and left out",
    ):
        assert f"note: {note}" in out
        assert note in page


def test_results_of_other_data_are_replaced_with_a_note(run, tmp_path, monkeypatch):
    monkeypatch.setenv("FITZPATRICK_DATA", str(write_flags(tmp_path / "data")))
    for folder, seed in (("a", 0), ("b", 1)):
        (tmp_path / folder).mkdir()
        write_csv(tmp_path / folder / "mine.csv", seed=seed)
    options = ("--seeds", "1", "--losses", "logistic", "-j", "1", "--alphas", "10,1")
    for arguments, replaces in (
        (("compare", "a/mine.csv", "--targets", "a,b,c"), False),
        (("compare", "a/mine.csv", "--targets", "a,b,c"), False),
        (("compare", "b/mine.csv", "--targets", "a,b,c"), True),
        (("compare", "b/mine.csv", "--targets", "b,c"), True),
        (("reproduce", "yeast"), False),
        (("reproduce", "yeast", "flags"), False),
        (("reproduce", "flags"), True),
    ):
        code, out, _ = run(*arguments, *options)
        assert code == 0
        assert ("were of other data, and are replaced" in out) is replaces


def test_compare_with_a_test_file(run, tmp_path):
    train, test = write_csv(tmp_path / "a.csv"), write_csv(tmp_path / "b.csv", n=30, seed=1)
    test.write_text(test.read_text() + "1,2,3,0,0,0\n")
    options = ("--targets", "a,b,c", "--losses", "sparsemax", "-j", 1, "--seeds", 1)
    code, out, _ = run("compare", train, "--test", test, *options)
    assert code == 0
    assert "note: b.csv: 1 of 31 samples have no label and are left out" in out
    assert "80 to learn from, 30 to test" in (tmp_path / "out" / "compare-a.html").read_text()
    (tmp_path / "c.csv").write_text(test.read_text().replace("x1", "z1"))
    code, _, err = run("compare", train, "--test", tmp_path / "c.csv", *options)
    assert code == 2
    assert "c.csv, line 1: no column is called 'x1'; the columns are z1, x2, x3, a, b, c\n" in err


def test_compare_at_several_tightnesses(run, tmp_path):
    file = write_csv(tmp_path / "mine.csv")
    options = ("--targets", "a,b,c", "--seeds", 1, "-j", 1, "--no-refit")
    pair = "logistic,fitzpatrick_logistic"
    assert run("compare", file, *options, "--losses", pair)[0] == 0
    before = stored(tmp_path / "out")
    tightness = ("--losses", "fitzpatrick_logistic", "--tightness", "0.5,0,1,2")
    code, out, _ = run("compare", file, *options, *tightness)
    assert code == 0
    names = re.findall(r"^  (\w+(?: \(tightness \S+\))?) +\.\d{4}", out, re.MULTILINE)
    assert names == [
        "fitzpatrick_logistic (tightness 0.5)",
        "logistic",
        "fitzpatrick_logistic",
        "fitzpatrick_logistic (tightness 2)",
        "baseline",
    ]
    assert max(map(len, out.partition("wrote")[0].splitlines())) <= 80
    new = stored(tmp_path / "out") - before
    assert {path for path, *_ in new} == {  # both ends are on record
        f"fitzpatrick_logistic-tightness{c}-seed0" for c in (0.5, 2.0)
    }
    with (tmp_path / "out" / "compare-mine.csv").open() as lines:
        rows = {(row["loss"], row["tightness"]) for row in csv.DictReader(lines)}
    assert rows == {
        ("logistic", ""),
        ("fitzpatrick_logistic", ""),
        ("fitzpatrick_logistic", "0.5"),
        ("fitzpatrick_logistic", "2"),
    }


def test_compare_stops_where_the_whole_grid_does_not(run, tmp_path):
    """With the same choices, the same table, and fewer fits; the same command fits nothing anew."""
    file = write_csv(tmp_path / "mine.csv", n=160, seed=3)
    lines = file.read_text().splitlines()
    noise = np.random.default_rng(0).normal(size=(len(lines), 12))
    file.write_text(
        "\n".join(
            ",".join([f"{v:.4f}" if i else f"n{j}" for j, v in enumerate(row)] + [line])
            for i, (row, line) in enumerate(zip(noise, lines, strict=True))
        )
    )
    arguments = ("compare", file, "--targets", "a,b,c", "--seeds", 2, "-j", 1)
    losses = ("--losses", "logistic,fitzpatrick_sparsemax,sigmoid")
    errors, fits = {}, {}
    for whole in ((), ("--whole-grid",)):
        code, out, _ = run(*arguments, *losses, *whole)
        assert code == 0
        errors[whole] = re.findall(r"^  \w+ +(\.\d+)", out, re.MULTILINE)
        with (tmp_path / "out" / "compare-mine.csv").open() as rows:
            fits[whole] = sum(bool(row["seed"]) for row in csv.DictReader(rows))
        assert (" stopped early, at α = " in out) is (not whole)
    assert len(errors[()]) == 4
    found, expected = (np.asarray(one, dtype=float) for one in errors.values())
    # fits that choose α end at 1e-4 of the gradient, where the curve is flat
    np.testing.assert_allclose(found, expected, rtol=0.01)
    assert 3 * 2 * 9 < fits["--whole-grid",] <= 3 * 2 * (9 + 6)
    assert fits[()] < fits["--whole-grid",]
    before = stored(tmp_path / "out")
    assert run(*arguments, *losses)[0] == 0
    assert stored(tmp_path / "out") == before


def test_compare_of_tags_leads_to_a_fit_with_a_sigmoid(run, tmp_path):
    generator = np.random.default_rng(2)
    X = generator.normal(size=(120, 3))
    lines = ["x1,x2,x3,genres"]
    for row in X:
        tags = [name for name, x in zip(("rock", "jazz", "folk"), row, strict=True) if x > -0.3]
        lines.append(",".join(f"{x:.4f}" for x in row) + f",{';'.join(tags) or 'none'}")
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    arguments = ("compare", "a.csv", "--targets", "genres", "--seeds", 1, "-j", 1)
    code, out, _ = run(*arguments, "--losses", "sigmoid,logistic")
    assert code == 0
    next_line = out.splitlines()[-1]
    assert "--loss sigmoid" in next_line
    code, out, _ = run(*shlex.split(next_line)[2:])
    assert code == 0
    assert "120 samples, 3 features, 4 targets (indicators)" in out
    code, out, _ = run("predict", "model.safetensors", "a.csv")
    values = np.asarray([row.split(",") for row in out.splitlines()[1:]], dtype=float)
    assert out.startswith("folk,jazz,none,rock\n")
    assert values.sum(axis=1).max() > 1.5  # each label by itself
    write_csv(tmp_path / "classes.csv", kind="labels")
    code, _, err = run("compare", "classes.csv", "--targets", "kind", "--losses", "sigmoid")
    assert (code, err) == (
        2,
        "error: 'sigmoid' is for labels that occur together, and each row of classes.csv has one\n",
    )


def test_fit_stops_where_the_whole_grid_does_not(run, tmp_path):
    file = write_csv(tmp_path / "mine.csv", kind="labels")
    alphas = ("--alphas", "1e-3,1e4,1e3,1e2,1e-8,1e-7")
    errors = []
    for whole in ((), ("--whole-grid",)):
        arguments = ("fit", file, "--targets", "kind", "-o", "m.model", *alphas, *whole)
        code, out, _ = run(*arguments)
        assert code == 0
        errors.append(float(re.search(r"α = \S+: cross-validated squared error (\S+)", out)[1]))
        assert ("the search stopped at α = " in out) is (not whole)
    # fits that choose α end at 1e-4 of the gradient, or at 1e-8 on the whole grid
    assert errors[0] == pytest.approx(errors[1], rel=0.03)
    code, _, err = run(*arguments, "--alpha", 1)
    assert code == 2
    assert "give one of them" in err


@pytest.mark.parametrize("alpha", [(), ("--alpha", "0.5")], ids=["cv", "alpha"])
def test_fit_at_a_tightness(run, tmp_path, alpha):
    file = write_csv(tmp_path / "mine.csv")
    columns = ("--targets", "a,b,c", *alpha)
    for name, loss in (
        ("half", ("fitzpatrick_logistic", "--tightness", "0.5")),
        ("zero", ("fitzpatrick_logistic", "--tightness", "0")),
        ("plain", ("logistic",)),
    ):
        assert run("fit", file, *columns, "-o", f"{name}.model", "--loss", *loss)[0] == 0
    half, zero, plain = (
        model_files.load(tmp_path / f"{name}.model").estimator for name in ("half", "zero", "plain")
    )
    assert (half.tightness_, zero.tightness_, plain.tightness_) == (0.5, 0.0, 0.0)
    np.testing.assert_array_equal(zero.coef_, plain.coef_)
    assert np.abs(half.coef_ - plain.coef_).max() > 1e-3
    assert run("predict", "half.model", file)[0] == 0


@pytest.mark.parametrize("alpha", [(), ("--alpha", "0.5")], ids=["cv", "alpha"])
def test_fit_and_predict(run, tmp_path, alpha):
    file = write_csv(tmp_path / "mine.csv")
    code, out, err = run("fit", file, "--targets", "a,b,c", "-o", tmp_path / "m.model", *alpha)
    assert code == 0
    assert "80 samples, 3 features, 3 targets (indicators)" in out
    assert err == ""
    found = re.search(
        r"α = \S+: cross-validated squared error (\.\d{4})\nbaseline, .*: (\.\d+)", out
    )
    assert bool(found) == (not alpha)
    if found:
        lines = file.read_text().splitlines()[1:]
        Y = np.asarray([line.split(",")[3:] for line in lines], dtype=float)
        Y /= Y.sum(axis=1, keepdims=True)
        folds = KFold(5, shuffle=True, random_state=0).split(Y)
        means = [
            np.square(Y[test] - Y[rows].mean(axis=0)).sum(axis=1).mean() for rows, test in folds
        ]
        assert float(found[2]) == pytest.approx(np.mean(means), abs=5.1e-5)
        assert float(found[1]) < float(found[2])
    code, out, _ = run("predict", tmp_path / "m.model", file)
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
    code, again, _ = run("predict", tmp_path / "m.model", shuffled)
    assert code == 0
    assert again == out


def test_coefficients_as_a_table(run, tmp_path):
    file = write_csv(tmp_path / "mine.csv")
    file.write_text(file.read_text().replace("x2", "=x2"))
    options = ("--targets", "a,b,c", "--alpha", 1, "-o", "m.model", "--coefficients")
    code, out, _ = run("fit", file, *options, "w.csv")
    assert (code, out.splitlines()[-1]) == (0, "wrote w.csv")
    with (tmp_path / "w.csv").open() as lines:
        head, *rows = csv.reader(lines)
    assert head == ["feature", "a", "b", "c"]
    assert [row[0] for row in rows] == ["(intercept)", "x1", "'=x2", "x3"]
    estimator = model_files.load(tmp_path / "m.model").estimator
    expected = np.vstack([estimator.intercept_, estimator.coef_.T])
    np.testing.assert_allclose(np.asarray(rows)[:, 1:].astype(float), expected, rtol=1e-8)
    code, _, err = run("fit", file, *options, file)
    assert (code, "which is read; name another file" in err) == (2, True)


def test_text_that_a_spreadsheet_would_run_is_escaped(run, tmp_path):
    """Cells of text alone: numbers stay as they are, negative ones too."""
    cells = ["=1+1", "+cmd", "-2+3+cmd|' /C calc'!A0", "@SUM(1)", "plain", "-1.5", "-", "+3 %"]
    rows = [f'{i / 4},{i % 3},"{cells[i % 8]}",{("=bee", "ant")[i % 2]}' for i in range(32)]
    (tmp_path / "a.csv").write_text("x,z,=note,y\n" + "\n".join(rows) + "\n")
    options = ("--targets", "y", "--ignore", "=note", "--alpha", 1, "-o", "m.model")
    assert run("fit", "a.csv", *options)[0] == 0
    code, out, _ = run("predict", "m.model", "a.csv", "--keep", "=note,x")
    assert code == 0
    head, *lines = csv.reader(out.splitlines())
    assert head == ["'=note", "x", "'=bee", "ant", "class"]
    formulas = set(cells[:4])
    for i, (note, x, *values, name) in enumerate(lines):
        assert note == ("'" if cells[i % 8] in formulas else "") + cells[i % 8]
        assert float(x) == i / 4
        assert np.asarray(values, dtype=float).sum() == pytest.approx(1)
        assert name in ("'=bee", "ant")


def test_class_models_predict_the_class_too(run, tmp_path):
    file = write_csv(tmp_path / "mine.csv", kind="labels")
    file.write_text(file.read_text().replace("bee", "class"))  # a class may have any name
    assert run("fit", file, "--targets", "kind", "-o", "m.model", "--alpha", 1)[0] == 0
    code, out, _ = run("predict", "m.model", file)
    assert code == 0
    header, *rows = (line.split(",") for line in out.splitlines())
    assert header == ["ant", "cat", "class", "class_"]
    for row in rows:
        assert header[int(np.argmax(np.asarray(row[:3], dtype=float)))] == row[3]
    truth = [line.rsplit(",", 1)[1] for line in file.read_text().splitlines()[1:]]
    assert np.mean([row[3] == name for row, name in zip(rows, truth, strict=True)]) > 0.9


def test_fit_leaves_constant_columns_out(run, tmp_path):
    file = write_csv(tmp_path / "mine.csv")
    lines = file.read_text().splitlines()
    (tmp_path / "flat.csv").write_text(
        "\n".join([f"flat,{lines[0]},zero", *(f"7,{line},0" for line in lines[1:])]) + "\n"
    )
    options = ("--targets", "a,b,c", "--alpha", "0.5")
    assert run("fit", "mine.csv", "-o", "m.model", *options)[0] == 0
    code, out, _ = run("fit", "flat.csv", "-o", "f.model", *options)
    assert code == 0
    assert "note: 2 of 5 features are constant and left out" in out
    expected, found = (run("predict", model, "flat.csv")[1] for model in ("m.model", "f.model"))
    assert found == expected
    coef = model_files.load(tmp_path / "f.model").estimator.coef_
    assert coef.shape == (3, 5)
    assert not coef[:, [0, 4]].any()
    assert coef[:, 1:4].all()


def test_fit_of_a_file_sorted_by_class_shuffles_it(run, tmp_path):
    """Five classes, five folds: in the order of the file no fold would know its own class."""
    generator = np.random.default_rng(0)
    rows = []
    for label in np.arange(60) // 12:
        x = 4 * np.eye(5)[label] + generator.normal(size=5) / 2
        rows.append(",".join([*(f"{value:.4f}" for value in x), "abcde"[label]]))
    (tmp_path / "sorted.csv").write_text("p,q,r,s,t,y\n" + "\n".join(rows) + "\n")
    code, out, _ = run("fit", "sorted.csv", "--targets", "y", "-o", "m.model")
    assert code == 0
    error = float(re.search(r"cross-validated squared error (\S+)", out).group(1))
    assert error < 0.1


def test_fit_says_what_was_left_out_and_rounded(run, tmp_path):
    rows = [
        f"{i},{3 * i % 7},{'0,0' if i % 5 == 0 else '1,0' if i % 2 else '0,1'}" for i in range(30)
    ]
    (tmp_path / "a.csv").write_text("x,z,u,v\n" + "\n".join(rows) + "\n")
    code, out, _ = run("fit", "a.csv", "--targets", "u,v", "-o", "m.model", "--alpha", 1)
    assert code == 0
    assert "to 24 samples" in out
    assert "note: 6 of 30 samples have no label and are left out\n" in out
    rows = [f"{i},.33,.33,.33" if i % 2 else f"{i},.5,.25,.25" for i in range(30)]
    (tmp_path / "b.csv").write_text("x,u,v,w\n" + "\n".join(rows) + "\n")
    code, out, _ = run("fit", "b.csv", "--targets", "u,v,w", "-o", "m.model", "--alpha", 1)
    assert code == 0
    assert "note: the proportions of 15 of 30 samples do not sum to one exactly" in out
    assert max(map(len, out.splitlines())) <= 79


def test_fits_that_do_not_converge_are_a_note(run, tmp_path, monkeypatch):
    monkeypatch.setitem(ProportionRegressor.__init__.__kwdefaults__, "max_iter", 1)
    monkeypatch.setitem(fit_path.__kwdefaults__, "max_iter", 1)
    write_csv(tmp_path / "mine.csv")
    arguments = ("fit", "mine.csv", "--targets", "a,b,c", "-o", "m.model")
    for options, what in (
        (("--alpha", "0.01"), "stopped after 1 iterations at gradient norm "),
        ((), r"\d+ fits of the cross-validation did not converge\n"),
    ):
        code, out, err = run(*arguments, *options)
        assert code == 0
        assert re.search(f"\nnote: {what}", out)
        assert "Warning" not in out + err


def test_fit_at_the_end_of_the_grid_says_so(run, tmp_path):
    rows = [f"{i % 7},{'ab'[i % 2]}" for i in range(70)]  # nothing to learn
    (tmp_path / "a.csv").write_text("x,y\n" + "\n".join(rows) + "\n")
    code, out, _ = run("fit", "a.csv", "--targets", "y", "-o", "m.model")
    assert code == 0
    said = "α = 10000 is the strongest penalty that was tried: --alphas 10000,100000,1e+06 goes"
    assert f"note: {said}" in " ".join(out.split())
    code, out, _ = run("fit", "a.csv", "--targets", "y", "-o", "m.model", "--alphas", "1e5,1e6,1e4")
    assert code == 0
    assert "α = 1e+06: " in out


@pytest.mark.parametrize("form", ["csv", "arff"])
def test_fit_of_counts_and_of_numbers(run, tmp_path, form):
    rows = [f"{i / 10:.1f},{round(np.exp(i / 10))},{1 - i / 10:.1f}" for i in range(1, 31)]
    if form == "csv":
        head = "x,count,value"
    else:
        head = "@relation r\n@attribute x real\n@attribute count integer\n"
        head += "@attribute value real\n@data"
    (tmp_path / f"a.{form}").write_text("\n".join([head, *rows]) + "\n")
    for loss, target, other in (("poisson", "count", "value"), ("squared", "value", "count")):
        columns = ("--targets", target, "--ignore", other)
        code, out, _ = run(
            "fit", f"a.{form}", *columns, "--loss", loss, "-o", "m.model", "--alpha", "0.01"
        )
        assert code == 0
        assert "30 samples, 1 feature, 1 target (numbers)" in out
        code, out, _ = run("predict", "m.model", f"a.{form}")
        header, *values = out.splitlines()
        assert header == target
        found = np.asarray(values, dtype=float)
        expected = [float(row.split(",")[1 if target == "count" else 2]) for row in rows]
        np.testing.assert_allclose(found, expected, atol=0.6)
    assert found.min() < -1.5  # numbers, not proportions


def test_columns_to_ignore(run, tmp_path):
    file = write_csv(tmp_path / "mine.csv")
    lines = file.read_text().splitlines()
    text = [f"name,{lines[0]}", *(f"n{i},{line}" for i, line in enumerate(lines[1:]))]
    (tmp_path / "named.csv").write_text("\n".join(text) + "\n")
    options = ("--targets", "a,b,c", "-o", "m.model", "--alpha", 1)
    code, out, _ = run("fit", "named.csv", *options)
    assert code == 0
    assert "80 samples, 3 features, 3 targets (indicators)" in out
    note = "left out: name (a different text in every row, so probably a name)"
    assert f"note: {note}" in out
    assert run("predict", "m.model", "named.csv")[2] == f"note: {note}\n"
    code, _, err = run("fit", "named.csv", *options, "--kinds", "name=number")
    assert code == 2
    assert err.startswith("error: named.csv, line 2: column 'name': 'n0' is not a number; so is ")
    assert err.endswith(" --ignore name leaves the column out\n")
    code, out, _ = run("fit", "named.csv", "--ignore", "name, x2", *options)
    assert code == 0
    assert "80 samples, 2 features" in out
    assert run("predict", "m.model", "named.csv")[0] == 0


def test_output_through_a_link_and_to_a_folder(run, tmp_path):
    file = write_csv(tmp_path / "mine.csv")
    (tmp_path / "folder").mkdir()
    options = ("--targets", "a,b,c", "--alpha", 1)
    code, _, err = run("fit", file, *options, "-o", "folder")
    assert (code, err) == (2, "error: folder: Is a directory\n")
    assert run("fit", file, *options, "-o", "m.model")[0] == 0
    (tmp_path / "link.csv").symlink_to(tmp_path / "target.csv")
    assert run("predict", "m.model", file, "-o", "link.csv")[0] == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "target.csv").read_text() == run("predict", "m.model", file)[1]


def test_output_does_not_replace_what_is_read(run, tmp_path):
    file = write_csv(tmp_path / "mine.csv")
    (tmp_path / "link.csv").symlink_to(file)
    content = file.read_bytes()
    options = ("--targets", "a,b,c", "--alpha", 1)
    code, _, err = run("fit", "mine.csv", *options, "-o", "link.csv")
    assert (code, err) == (2, "error: --output names mine.csv, which is read; name another file\n")
    assert run("fit", "mine.csv", *options, "-o", "m.model")[0] == 0
    assert run("fit", "mine.csv", *options, "-o", "m.model")[0] == 0  # an old model is replaced
    for output in ("mine.csv", "m.model"):
        code, _, err = run("predict", "m.model", "mine.csv", "-o", output)
        assert (code, err.count(f"--output names {output}")) == (2, 1)
    assert file.read_bytes() == content


def test_predict_from_libsvm_to_a_file(run, tmp_path):
    lines = [f"{i % 3} 1:{i % 5} 2:{(i * 7) % 4}" for i in range(40)]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n")
    assert run("fit", "a.svm", "-o", "m.model", "--alpha", 1)[0] == 0
    (tmp_path / "b.svm").write_text(" 1:3\n 2:1\n")
    assert run("predict", "m.model", "b.svm", "-o", "p.csv")[0] == 0
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 3


ARFF = "@relation r\n@attribute x numeric\n@attribute a {{{0}}}\n@attribute b {{{0}}}\n@data\n"
BAD = {
    "junk.csv": (np.random.default_rng(0).bytes(4000), r"junk\.csv, line 2: not a text file"),
    "ragged.csv": (b"x,a,b\n1,1,0\n1,1\n", r"ragged\.csv, line 3: 2 fields, expected 3"),
    "empty.csv": (b"", r"empty\.csv: the file is empty"),
    "word.csv": (
        b"x,a,b\n1,1,0\n2,0,1\nmany,1,0\n",
        r"word\.csv, line 4: column 'x': 'many' is not a number, as 2 of its values are; "
        r"--missing-values many reads such words as missing, --kinds x=category takes every value "
        r"for a category, --ignore x leaves the column out",
    ),
    "hole.csv": (
        b"x,a,b\n1,1,0\n1,1,\n",
        r"hole\.csv, line 3: target column 'b': no value; --missing drop leaves such rows out",
    ),
    "flat.csv": (b"x,a,b\n" + b"1,1,0\n1,0,1\n" * 20, r"flat\.csv: every feature is constant"),
    "range.svm": (b"0 1:1\n7777777 1:1\n", r"range\.svm, line 2: label '7777777' is out of range"),
    "large.csv": (
        b"x,a,b\n" + b"1e200,1,0\n-1e200,0,1\n" * 20,
        r"large\.csv: X holds an entry of size 1e\+200, and sums of squares overflow",
    ),
    "short.csv": (b"x,a,b\n1,1,0\n2,0,1\n", r"short\.csv: 1 sample to learn from, expected 16"),
    "bomb.svm.gz": (
        gzip.compress(b"0 1:1\n" * 10_000_000),
        r"bomb\.svm\.gz, line \d+: \d+ bytes decompress to more than \d+ MiB: .* not read",
    ),
    "undeclared.arff": (
        (ARFF.format("yes,no") + "1,yes,no\n2,maybe,no\n").encode(),
        r"undeclared\.arff, line 7: the value of attribute 'a' is 'maybe', which was not declared",
    ),
    "folder.csv": ("folder", r"folder\.csv: is a folder; expected a file"),
    "odd.xyz": (b"1", r"odd\.xyz: the format of a \.xyz file is not known"),
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
    assert code == 2
    assert out == ""
    assert re.fullmatch(rf"error: {problem}[^\n]*\n", err)
    assert not (tmp_path / "made").exists()


def test_fit_says_what_the_estimator_says(run, tmp_path):
    (tmp_path / "a.csv").write_text("x,n\n" + "1,3\n2,-1\n" * 8)
    options = ("--targets", "n", "--loss", "poisson", "-o", "m.model", "--alpha", 1)
    code, _, err = run("fit", "a.csv", *options)
    assert code == 2
    problem = "a.csv, line 3: target 'n' is -1, outside [0, inf], the range of the loss 'poisson'"
    assert err == f"error: {problem}\n"
    assert not (tmp_path / "m.model").exists()


def options_of(command):
    """The options that a command has."""
    parameters = cli.typer.main.get_command(cli.app).commands[command].params
    return {"--help", *(name for one in parameters for name in (*one.opts, *one.secondary_opts))}


def check_options_named(command, text):
    """Every option that a message names is one of the command, or of the one that it names."""
    for line in text.splitlines():
        other = re.search(r"fitzpatrick (\w+)", line)
        named = set(re.findall(r"--[a-z][a-z-]*", line))
        assert named <= options_of(other[1] if other else command), line


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


@pytest.mark.parametrize("name", ADVISED)
@pytest.mark.parametrize("command", ["compare", "fit", "predict", "reproduce"])
def test_hints_name_options_that_the_command_has(run, tmp_path, monkeypatch, command, name):
    (tmp_path / name).write_text(ADVISED[name])
    arguments = {
        "compare": (name, "--targets", "y"),
        "fit": (name, "--targets", "y", "-o", "new.model"),
        "predict": ("m.model", name),
        "reproduce": ("flags",),
    }[command]
    if name == "none.arff":
        arguments = [one for one in arguments if one not in ("--targets", "y")]
    if command == "predict":
        train = "x,z,y\n" + "1,2,u\n2,1,v\n" * 3
        (tmp_path / "train.csv").write_text(train)
        assert run("fit", "train.csv", "--targets", "y", "--alpha", 1, "-o", "m.model")[0] == 0
    if command == "reproduce":
        folder = write_flags(tmp_path / "data")
        if name.endswith(".arff"):
            for file in folder.iterdir():
                file.unlink()
            for part in ("train", "test"):
                (folder / f"flags-{part}.arff").write_text(ADVISED[name])
        else:
            (folder / "flags_train.svm").write_text(ADVISED[name])
        monkeypatch.setenv("FITZPATRICK_DATA", str(folder))
    code, _, err = run(command, *arguments)
    assert (code, err.count("\n")) == (2, 1)
    check_options_named(command, err)


def test_help_and_answers_name_options_that_the_command_has(run, tmp_path):
    for command in COMMANDS:
        check_options_named(command, run(command, "--help")[1])
    write_csv(tmp_path / "mine.csv")
    options = ("--targets", "a,b,c", "--seeds", 1, "-j", 1)
    code, out, _ = run("compare", "mine.csv", *options)
    assert code == 0
    check_options_named("compare", out)


@pytest.mark.parametrize(
    ("kind", "value", "loss"),
    [
        ("indicators", "2,0,1", None),
        ("proportions", "0.5,0.9,0", None),
        ("proportions", "-1,1,1", None),
        ("labels", "", None),
        ("indicators", "1,-1,0", "poisson"),
        ("indicators", "1,7,0", "sigmoid"),
        ("proportions", "x,0.5,0.5", None),
    ],
)
@pytest.mark.parametrize("command", ["compare", "fit"])
def test_a_bad_target_in_line_62_is_reported_in_line_62(run, tmp_path, kind, value, loss, command):
    lines = write_csv(tmp_path / "a.csv", kind=kind).read_text().splitlines()
    lines[61] = ",".join([*lines[61].split(",")[:3], value])
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    if command == "compare" and loss:
        pytest.skip("compare has losses on the simplex only")
    own = () if command == "compare" else ("-o", "m.model", "--loss", loss or "logistic")
    targets = "kind" if kind == "labels" else "a,b,c"
    code, _, err = run(command, "a.csv", "--targets", targets, *own)
    assert code == 2
    assert re.fullmatch(r"error: a\.csv, line 62: [^\n]*\n", err)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("reproduce", "yeats"), "unknown data set 'yeats'"),
        (
            ("reproduce", "--losses", "sigmoid"),
            "'sigmoid' does not predict proportions; choose among ",
        ),
        (("reproduce", "--losses", "logistic,logistic"), "one or more different names"),
        (("reproduce", "--tol", "-1"), "--tol must be a positive number"),
        (("reproduce", "--alphas", "1,x"), "--alphas needs numbers with commas"),
        (("reproduce", "--alphas", "1,0"), "--alphas must be a positive number"),
        (("fit", "a.csv", "-o", "m", "--loss", "nope"), "unknown loss 'nope'; the names are "),
        (("reproduce", "--losses", "sparse_max"), "unknown loss 'sparse_max'; did you mean "),
        (("fit", "a.csv", "-o", "m", "--alpha", "0"), "--alpha must be a positive number"),
        (("fit", "a.csv", "-o", "m", "--tightness", "-1"), "tightness must be"),
        (
            ("fit", "a.csv", "-o", "m", "--loss", "logistic", "--tightness", "0.5"),
            "'logistic' is a Fenchel-Young loss, of tightness 0; for tightness=0.5 use "
            "'fitzpatrick_logistic'",
        ),
        (("compare", "a.csv", "--tightness", "0,inf"), "--tightness must be a finite number of"),
        (
            ("compare", "a.csv", "--kinds", "zip"),
            "--kinds needs NAME=KIND, with KIND among number, ",
        ),
        (("fit", "a.csv", "-o", "m", "--kinds", "zip=text"), "ignored, got 'zip=text'"),
        (("fit", "a.csv", "-o", "m", "--kinds", "=number"), "ignored, got '=number'"),
        (
            ("fit", "a.csv", "-o", "m", "--kinds", "a=number, a=tags"),
            "--kinds names 'a' twice, as number and as tags",
        ),
        (
            ("fit", "a.csv", "-o", "m", "--kinds", "a=number", "--tags", "a"),
            "--tags names 'a', which is number in --kinds",
        ),
        (("compare", "a.csv", "--tightness", "0;1"), "--tightness needs numbers with commas"),
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


SMALL = ("reproduce", "-j", "1", "--seeds", "1", "--losses", "logistic", "--alphas", "1e3,1e2")


def test_damaged_records_are_named(run, tmp_path):
    assert run(*SMALL)[0] == 0
    table = (tmp_path / "out" / "table.txt").read_text()
    file = tmp_path / "out" / FILE_NAME
    file.write_bytes(file.read_bytes()[:5000])
    code, _, err = run(*SMALL)
    said = f"error: out/{FILE_NAME}: is damaged; delete it, and its fits are run again"
    assert (code, last_line(err)) == (2, said)
    file.unlink()
    assert run(*SMALL)[0] == 0
    assert (tmp_path / "out" / "table.txt").read_text() == table


def last_line(text):
    """Without the lines of progress before it."""
    return text.rstrip("\n").splitlines()[-1]


def start(*arguments, before="", **options):
    """The command line in a process of its own, where Ctrl-C is not ignored."""
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"{before}from fitzpatrick.cli import main; main()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        **options,
    )


def test_terminal_without_greek_letters(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    process = start(stdout=subprocess.PIPE)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "scores ? = " in out


@pytest.mark.skipif(sys.platform != "linux", reason="needs names of files that are no UTF-8")
def test_file_names_of_all_kinds(run, tmp_path):
    """The results are named after the file without its ending."""
    text = write_csv(tmp_path / "mine.csv").read_bytes()
    options = ("--targets", "a,b,c", "--losses", "logistic", "--seeds", 1, "-j", 1)
    for name, stem in (
        (b"my.data.csv", b"my.data"),
        (b".hid.csv", b".hid"),
        (b"\xff.csv", b"\xff"),
    ):
        (tmp_path / os.fsdecode(name)).write_bytes(text)
        assert run("compare", os.fsdecode(name), *options)[0] == 0
        for suffix in (b".txt", b".csv", b".html"):
            assert (tmp_path / "out" / os.fsdecode(b"compare-" + stem + suffix)).is_file()
    (tmp_path / "z.csv.gz").write_bytes(gzip.compress(text))
    assert run("compare", "z.csv.gz", *options)[0] == 0
    assert (tmp_path / "out" / "compare-z.txt").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk_behind_the_output():
    with Path("/dev/full").open("w") as full:
        process = start("datasets", stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err == "error: the output: No space left on device\n"


@pytest.mark.skipif(os.name != "posix", reason="limits of a process")
def test_full_disk_behind_the_records(run, tmp_path):
    assert run(*SMALL)[0] == 0
    table = (tmp_path / "out" / "table.txt").read_bytes()
    kept = stored(tmp_path / "out")

    # not by preexec_fn, which forks this process and all of its threads
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "
    longer = (*SMALL[:-1], "1e3,1e2,1e1")
    process = start(*longer, before=limit, stdout=subprocess.PIPE)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    said = r"error: out/records\.sqlite: the records cannot be kept here: [^\n]+"
    assert re.fullmatch(said, last_line(err))
    assert (tmp_path / "out" / "table.txt").read_bytes() == table
    assert stored(tmp_path / "out") == kept
    assert run(*longer)[0] == 0


@pytest.mark.skipif(os.name != "posix", reason="signals of a terminal")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interrupt_keeps_what_is_finished(tmp_path, jobs):
    process = start_and_wait(tmp_path / "out", 1, "reproduce", "--seeds", "40", "-j", jobs)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert [line for line in err.splitlines() if not re.fullmatch(r"yeast: .* fits.*", line)] == []
    assert stored(tmp_path / "out")
