"""The gallery examples run without warnings, and their figures show what the text says."""

import ast
import contextlib
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from .helpers import TEST_ALL

pytest.importorskip("matplotlib")
import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
NAMES = sorted(path.stem.removeprefix("plot_") for path in GALLERY.glob("plot_*.py"))


@pytest.fixture
def run(monkeypatch):
    """Execute an example: its variables and its figures."""

    def execute(name):
        path = GALLERY / f"plot_{name}.py"
        packages = {package: pytest.importorskip(package) for package in _imports(path)}
        with _same_threads(packages.get("torch")):
            variables = runpy.run_path(str(path), run_name="__main__")
        return variables, [plt.figure(number) for number in plt.get_fignums()]

    mpl.use("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)  # it warns if there is a display
    with mpl.rc_context():
        yield execute
    plt.close("all")


@contextlib.contextmanager
def _same_threads(torch):
    """Restore the number of threads of PyTorch, which some examples set to one."""
    threads = None if torch is None else torch.get_num_threads()
    try:
        yield
    finally:
        if torch is not None:
            torch.set_num_threads(threads)


def _imports(path):
    """The third-party packages that a script imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module))
    return {name.partition(".")[0] for name in found} - set(sys.stdlib_module_names)


def _curves(axes):
    return [np.asarray(line.get_ydata()) for line in axes.get_lines()]


@pytest.mark.parametrize("name", NAMES)
def test_every_example_has_a_title_an_introduction_and_quiet_cells(name):
    """No cell ends with a value, which the page would print."""
    text = (GALLERY / f"plot_{name}.py").read_text(encoding="utf-8")
    title, underline, blank, *introduction = ast.get_docstring(ast.parse(text)).splitlines()
    assert underline == "=" * len(title)
    assert not blank
    assert " ".join(introduction).endswith(".")
    assert text.count("\n# %%\n") >= 2
    assert "\nplt.style.use(STYLE)\n" in text
    quiet = {"plt.show", "plt.style.use", "print", "torch.set_num_threads"}  # they return None
    for cell in text.split("\n# %%\n"):
        last = ast.parse(cell).body[-1:]
        if last and isinstance(last[0], ast.Expr) and isinstance(last[0].value, ast.Call):
            assert ast.unparse(last[0].value.func) in quiet


def test_corrected_probabilities_are_calibrated(run):
    variables, (figure, intervals) = run("calibration")
    raw, corrected = figure.axes
    *curves, diagonal = raw.get_lines()
    assert len(curves) == 2 * len(variables["FAMILY"])
    assert list(diagonal.get_xdata()) == [0, 1]

    def distance(line):
        return np.abs(np.subtract(*line.get_data())).mean()

    lines, dots = curves[::2], curves[1::2]
    assert distance(lines[0]) < 1e-12  # the logistic loss needs no correction
    assert distance(dots[-1]) > 0.03
    # 30,000 samples in 12 bins: a frequency has a standard deviation of about 0.01
    for line in corrected.get_lines()[:-1]:
        assert distance(line) < 0.02
    assert [len(axes.containers) for axes in intervals.axes] == [1, len(variables["FAMILY"])]
    # each of five coefficients is within four standard errors of its true value
    table = variables["tables"][0][1]
    exact = variables["truth"] * variables["slope"].mean()
    assert (np.abs(table["coef"] - exact) < 4 * table["std_err"]).all()


def test_a_regularizer_of_ones_own_has_the_link_that_it_should(run):
    variables, figures = run("custom_regularizer")
    assert [len(figure.axes) for figure in figures] == [2, 2]
    np.testing.assert_allclose(variables["link"].sum(axis=1), variables["total"], rtol=1e-12)
    # central differences with h = 1e-5: eps / h and h² times values of the size of 10
    assert np.abs(variables["difference"]).max() < 1e-7
    assert np.all(np.diff(_curves(figures[0].axes[1]), axis=0) <= 1e-11)
    with_budget, without = (float(axes.get_title().rpartition(" ")[2]) for axes in figures[1].axes)
    assert with_budget < without


# The number of axes in the figures of these examples; ``make test-all`` also runs the others.
AXES = {
    "losses": [6, 3],
    "level_sets": [6, 3],
    "tightness": [4, 2],
    "links": [3, 1],
    "counts": None,
}


@pytest.mark.parametrize("name", NAMES if TEST_ALL else AXES)
def test_every_picture_has_data_and_labels(run, name):
    _, figures = run(name)
    assert figures
    assert AXES.get(name) in (None, [len(figure.axes) for figure in figures])
    for figure in figures:
        assert _is_labeled(figure)
        for axes in figure.axes:
            assert axes.has_data()
            for curve in _curves(axes):
                assert np.isfinite(curve).all()


def _is_labeled(figure: Figure) -> bool:
    """True if the figure has a title, and its axes, if any, have labels."""
    has_title = bool(figure.get_suptitle()) or any(axes.get_title() for axes in figure.axes)
    bare = [axes for axes in figure.axes if axes.axison and not axes.images]
    return has_title and (not bare or any(axes.get_xlabel() or axes.get_ylabel() for axes in bare))
