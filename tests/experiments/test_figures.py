"""The figures: written whole in every format, the same bytes each time, curves in order."""

import numpy as np
import pytest
from matplotlib.tri import TriContourSet

from fitzpatrick import get_loss
from fitzpatrick.experiments import figures
from fitzpatrick.experiments.figures import (
    FORMATS,
    geometry_figure,
    level_set_figure,
    lower_bound_figure,
    tightness_figure,
    write_figures,
)

_MAGIC = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "pdf": b"%PDF-"}


def test_figures_in_every_format_do_not_change_from_run_to_run(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "FIGURES", {"figure1": lower_bound_figure})
    first, second = (write_figures(tmp_path / run, FORMATS) for run in "ab")
    assert [path.name for path in first] == [f"figure1.{suffix}" for suffix in FORMATS]
    for path, again in zip(first, second, strict=True):
        assert path.read_bytes().startswith(_MAGIC[path.suffix.lstrip(".")])
        assert path.read_bytes() == again.read_bytes()


def test_figure_1_shows_bound_below_fitzpatrick_below_fenchel_young():
    for axes in lower_bound_figure().axes:
        loss, fitzpatrick, bound = (line.get_ydata() for line in axes.get_lines())
        assert np.all(bound <= fitzpatrick + 1e-12)
        assert np.all(fitzpatrick <= loss + 1e-12)
        assert np.max(loss - fitzpatrick) > 0.5


@pytest.mark.parametrize(("figure", "count"), [(lower_bound_figure, 3), (tightness_figure, 4)])
def test_lines_differ_without_color(figure, count):
    for axes in figure().axes:
        patterns = {str(line._dash_pattern) for line in axes.get_lines()}
        assert len(patterns) == len(axes.get_lines()) == count


def test_the_family_falls_with_its_tightness():
    upper, lower = np.split(np.asarray(tightness_figure().axes), 2)
    for losses, gaps in zip(upper, lower, strict=True):
        values = [line.get_ydata() for line in losses.get_lines()]
        labels = [text.get_text() for text in losses.get_legend().get_texts()]
        assert labels == ["c = 0", "c = 0.5", "c = 1", "c = 2"]
        for tighter, looser, gap in zip(values[1:], values, gaps.get_lines()[1:], strict=False):
            assert np.all(tighter <= looser + 1e-12)
            assert np.max(looser - tighter) > 0.3
            np.testing.assert_allclose(gap.get_ydata(), values[0] - tighter, atol=1e-12)


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
