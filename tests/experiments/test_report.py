"""The HTML page: well-formed, self-contained, and safe with odd names."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from fitzpatrick.experiments import svg
from fitzpatrick.experiments.protocol import LossChoice
from fitzpatrick.experiments.report import Section, render
from fitzpatrick.experiments.summary import evaluate
from tests.experiments.test_summary import PROTOCOL, make

CHECKSUM = "0123456789abcdef" * 4


def parsed(text):
    """Every element; an error where tags do not close in order."""
    return list(ElementTree.fromstring(text).iter())


def section(title="demo", text="a note"):
    """Two losses; the text is wherever a user's may be."""
    records = {**make("logistic", 0.0), **make("fitzpatrick_logistic", -0.01)}
    evaluation = evaluate(records, PROTOCOL)
    checksums = {"file": CHECKSUM, text: text}
    return Section(
        title, evaluation, {"logistic": 0.2}, {"α grid": "1", text: text}, checksums, (text,)
    )


def page(title="demo", failures=None):
    return render("A title", "A lead", [section(title)], failures or {})


def test_page_is_well_formed_whole_and_self_contained():
    text = page(title="<script>alert(1)</script>", failures={"birds": "no copy"})
    assert text.count("<script>") == 1  # ours
    body = text[text.index("<body>") : text.index("<script>")] + "</body>"
    images = [one for one in parsed(body) if one.tag == "svg" and one.get("role") == "img"]
    assert len(images) == 4
    assert all(image.get("aria-label") for image in images)
    header = re.findall(r"<th>(.*?)</th>", text)
    assert header[:4] == ["loss", "test error", "paper", "minus Fenchel-Young"]
    assert not re.search(r"(src|href)=|url\(|@import|https?:", text)
    assert "default-src 'none'" in text
    of_plots = ('"logistic: 25 %"', '"logistic: 6 s"', '"logistic, α = 1: 0.3"')
    for content in (".200", "numpy", CHECKSUM, "a note", "no copy", "Not run", *of_plots):
        assert content in text
    assert re.findall(r'<tr class="better"><td>(\w+)', text) == ["fitzpatrick_logistic"]
    assert "Bold: better than the Fenchel-Young loss with the same link, or that loss" in text
    of_compare = render("T", "lead", [replace(section(), best=(LossChoice("logistic"),))])
    assert re.findall(r'<tr class="better"><td>(\w+)', of_compare) == ["logistic"]
    assert "Bold: the lowest error, and every loss that is not clearly worse" in of_compare


@pytest.mark.parametrize("plot", ["interval", "bar", "line"])
def test_labels_cannot_break_out_of_a_plot(plot):
    label = """"><script>'&"""
    drawn = {
        "interval": lambda: svg.row_plot(label, [svg.Row(label, 2, (1, 3), 2)], label),
        "bar": lambda: svg.row_plot(label, [svg.Row(label, 1.0)], label, label),
        "line": lambda: svg.line_plot(
            label, [1.0, 0.1], [svg.Series(label, [1.0, 0.1], np.ones(2), 0, False)], (label, label)
        ),
    }[plot]()
    elements = parsed(drawn)
    assert "script" not in {one.tag for one in elements}
    names = [one.get("data-loss") for one in elements if one.get("data-loss")]
    assert names == [label, label]  # its name, and what is drawn of it
    tips = [one.get("data-tip") for one in elements if one.get("data-tip")]
    assert tips
    assert all(tip.startswith(label) for tip in tips)


def test_lead_points_and_command():
    text = render("T", "lead", [], {}, points=["one", "<two>"], commands=["fitzpatrick a & b"])
    assert "<li>one</li><li>&lt;two&gt;</li>" in text
    assert "<pre>fitzpatrick a &amp; b</pre>" in text
    assert "<ul>" not in page()
    assert "<pre>" not in page()


def test_an_interval_is_around_its_value_and_below_the_reference():
    drawn = svg.row_plot("t", [svg.Row("a", 0.5, (0.4, 0.6), reference=0.5)], "error")
    (x, y) = map(float, re.search(r'class="fill" cx="(\S+)" cy="(\S+)"', drawn).groups())
    ends = re.search(r'<line class="ink" x1="(\S+)" x2="(\S+)" y1="(\S+)" y2="(\S+)"', drawn)
    *across, y1, y2 = map(float, ends.groups())
    assert (np.mean(across), y1, y2) == pytest.approx((x, y, y), abs=0.1)
    assert 0.7 * svg.WIDTH < across[1] - across[0] < svg.WIDTH
    (points,) = re.findall(r'<polygon class="hollow" points="([^"]*)"', drawn)
    corners = np.asarray([point.split(",") for point in points.split()], dtype=float)
    assert corners[:, 0].mean() == pytest.approx(x)
    assert corners[:, 1].max() < y - 1


def test_bars_are_as_long_as_their_values():
    drawn = svg.row_plot("t", [svg.Row("a", 1.0), svg.Row("b", 3.0), svg.Row("c", 0.0)], "x")
    lengths = [float(width) for width in re.findall(r'<rect [^>]*width="([^"]*)"', drawn)]
    np.testing.assert_allclose(lengths, [lengths[1] / 3, lengths[1], 0], atol=0.1)
    assert 0.7 * svg.WIDTH < lengths[1] < svg.WIDTH


def test_six_losses_can_be_distinguished():
    """Losses of one link share a color and differ in dash; no two lines have the same marker."""
    names = ("logistic", "sparsemax", "entmax15")
    records = {}
    for name in names:
        records |= {**make(name, 0.0), **make(f"fitzpatrick_{name}", 0.0)}
    text = render("T", "lead", [Section("a", evaluate(records, PROTOCOL))])
    lines = re.findall(r'<polyline class="line (s\d)( dashed)?"', text)
    assert lines == [(hue, dash) for hue in ("s0", "s1", "s2") for dash in ("", " dashed")]
    legend = re.findall(r'<(polygon|circle) class="fill s\d" ([^/]*)/><text class="" x="68', text)
    shapes = set()
    for kind, attributes in legend:
        points = re.findall(r"([\d.-]+),([\d.-]+)", attributes)
        corners = np.asarray(points, dtype=float).reshape(-1, 2)
        shapes.add((kind, str((corners - corners.mean(axis=0)).round(1)) if len(points) else ""))
    assert len(legend) == len(shapes) == 6


def test_dev_curve_shows_its_minimum():
    """Values far above the least are cut off, and a ring marks where the least is."""
    values = np.asarray([0.7, 0.05, 0.06])
    x = [1.0, 0.1, 0.01]
    drawn = svg.line_plot("t", x, [svg.Series("a", x, values, 0, False)], ("α", "error"))
    (points,) = re.findall(r'<polyline [^>]*points="([^"]*)"', drawn)
    places = np.asarray([point.split(",") for point in points.split()], dtype=float)
    *ring, radius = re.search(r'class="ring" cx="(\S+)" cy="(\S+)" r="(\S+)"', drawn).groups()
    np.testing.assert_allclose(places[1], np.asarray(ring, dtype=float))
    width = float(re.search(r'<svg x="\S+" y="\S+" width="(\S+)"', drawn)[1])
    assert float(radius) < min(places[0, 0], width - places[2, 0])  # a ring is whole at the ends
    assert places[0, 1] < -1000  # out of sight
    assert places[1, 1] - places[2, 1] > 30  # a fifth more is seen
    assert "cut off above" in drawn
    left = float(re.search(r'<svg x="(\S+)"', drawn)[1])
    ticks = re.findall(r'<text class="middle" x="(\S+)" [^>]*>([^<]*)<', drawn)
    assert {float(text): float(at) for at, text in ticks} == pytest.approx(
        dict(zip(x, left + places[:, 0], strict=True)), abs=0.2
    )
    for seen in (values[1:], np.asarray([0.101, 0.05])):  # all of it is in the picture
        line = svg.Series("a", x[:2], seen, 0, False)
        assert "cut off" not in svg.line_plot("t", [1.0, 0.1], [line], ("α", "error"))


@pytest.mark.parametrize("value", [0.0, 0.3])
def test_equal_values_have_a_readable_axis(value):
    """Neither rounding errors nor zeros make ticks of 1e-10."""
    equal = [value, value * (1 + 1e-15)]
    plots = (
        svg.row_plot("t", [svg.Row(str(one), one, (one, one)) for one in equal], "x"),
        svg.row_plot("t", [svg.Row(str(one), one) for one in equal], "x", " %"),
        svg.line_plot(
            "t", [30, 40], [svg.Series("a", [30, 40], np.asarray(equal), 0, False)], ("x", "y")
        ),
    )
    for plot in plots:
        ticks = re.findall(r'<text class="(?:middle|end)" [^>]*>([^<]*)<', plot)
        assert len(set(ticks)) == len(ticks) > 2
        assert not any("e-" in tick for tick in ticks)
