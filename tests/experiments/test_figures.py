"""The figures: written whole in every format, the same bytes each time, curves in order."""

import re

import numpy as np
import pytest

from fitzpatrick.experiments.figures import FIGURES, FORMATS, lower_bound_figure, write_figures

_MAGIC = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "pdf": b"%PDF-"}


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_figure_is_written_in_every_format(tmp_path, suffix):
    paths = write_figures(tmp_path / "new", (suffix,))
    assert [path.name for path in paths] == [f"{name}.{suffix}" for name in FIGURES]
    assert sorted((tmp_path / "new").iterdir()) == sorted(paths)  # no temporary file is left
    assert all(path.read_bytes().startswith(_MAGIC[suffix]) for path in paths)


def test_figures_do_not_change_from_run_to_run(tmp_path):
    first = [path.read_bytes() for path in write_figures(tmp_path / "a", FORMATS, ("figure1",))]
    second = [path.read_bytes() for path in write_figures(tmp_path / "b", FORMATS, ("figure1",))]
    assert first == second


def test_figure_1_shows_bound_below_fitzpatrick_below_fenchel_young():
    for axes in lower_bound_figure().axes:
        loss, fitzpatrick, bound = (line.get_ydata() for line in axes.get_lines())
        assert np.all(bound <= fitzpatrick + 1e-12)
        assert np.all(fitzpatrick <= loss + 1e-12)
        assert np.max(loss - fitzpatrick) > 0.5


def test_lines_differ_without_colour():
    axes = lower_bound_figure().axes[0]
    patterns = {str(line._dash_pattern) for line in axes.get_lines()}
    assert len(patterns) == len(axes.get_lines()) == 3


def test_geometry_figure_prints_the_two_losses_as_gaps(tmp_path):
    (path,) = write_figures(tmp_path, ("svg",), ("figure2",))
    gaps = [float(gap) for gap in re.findall(r"L = ([\d.]+)", path.read_text())]
    assert len(gaps) >= 2
    assert gaps[-1] < gaps[0]


def test_unknown_format_is_named(tmp_path):
    with pytest.raises(ValueError, match="png, svg, pdf, not 'bmp'"):
        write_figures(tmp_path, ("bmp",))
    assert list(tmp_path.iterdir()) == []
