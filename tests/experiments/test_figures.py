"""The figures: written whole in every format, the same bytes each time, curves in order."""

import numpy as np
import pytest
from matplotlib.tri import TriContourSet

from fitzpatrick import get_loss
from fitzpatrick.experiments.figures import (
    FIGURES,
    FORMATS,
    geometry_figure,
    level_set_figure,
    lower_bound_figure,
    write_figures,
)

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


def test_geometry_figure_prints_the_two_losses_as_gaps():
    y, theta = np.asarray([0.2, 0.8]), np.asarray([1.4, 0.0])
    for axes, name in zip(
        geometry_figure().axes, ("logistic", "fitzpatrick_logistic"), strict=True
    ):
        texts = [text.get_text() for text in axes.texts]
        assert f"L = {get_loss(name).value(y, theta):.3f}" in texts


def test_every_level_line_has_its_number_inside_the_simplex():
    figure = level_set_figure()
    assert "θ fixed" in figure.get_suptitle()
    for axes in figure.axes:
        lines, filled = (c for c in reversed(axes.collections) if isinstance(c, TriContourSet))
        assert len(np.unique(filled.get_facecolor(), axis=0)) == len(filled.levels) - 1
        drawn = {
            f"{level:g}"
            for level, path in zip(lines.levels, lines.get_paths(), strict=True)
            if len(path.vertices)
        }
        labels = {text.get_text(): text.xy for text in axes.texts}
        assert drawn == {label for label in labels if label[0].isdigit()}
        for label in drawn:
            x, height = labels[label]
            edge = min(x, 1 - x) * np.sqrt(3) - height  # distance below the left or right side
            assert height > 0.02
            assert edge > 0.04


def test_unknown_format_is_named(tmp_path):
    with pytest.raises(ValueError, match="png, svg, pdf, not 'bmp'"):
        write_figures(tmp_path, ("bmp",))
    assert list(tmp_path.iterdir()) == []
