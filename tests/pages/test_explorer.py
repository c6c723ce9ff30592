"""The explorer in a real browser: its numbers are Python's, and it answers to every input."""

import re
import time

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick import explorer

REGULARIZERS = {
    1: fp.regularizers.Negentropy(),
    1.25: fp.regularizers.Tsallis(1.25),
    1.5: fp.regularizers.Tsallis(1.5),
    1.9: fp.regularizers.Tsallis(1.9),
    2: fp.regularizers.SquaredNorm(fp.sets.Simplex()),
}
TIGHTNESSES = (0, 0.25, 1, 3)
N_POINTS = 200
# The page promises 1e-9. Newton's method stops there after a step below 1e-9, whose square is left
# (its power 4/3 where an entry leaves zero with an infinite second derivative); rounding adds some
# eps times the scores, which go up to about 100.
CLOSE = {"rtol": 1e-11, "atol": 1e-11}
SOLVE = """
const [alpha, c, Y, theta] = arguments;
return Y.map((y, i) => ({ ...evaluate(alpha, y, theta[i], c), link: link(alpha, theta[i]) }));
"""
DEFAULT_HASH = "view=simplex&alpha=1&c=0.5&theta=2.2,0.3,-2.5&y=0.2,0.7,0.1&margin=-0.5"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "explorer.html"
    file.write_text(explorer.page(), encoding="utf-8")
    return file.as_uri()


@pytest.fixture
def browser(browser, url):
    browser.open(url)
    return browser


def draw_points():
    """Targets and scores: inside, on edges, at corners; close, far apart, with ties."""
    generator = np.random.default_rng(0)
    Y = generator.dirichlet(np.ones(3), N_POINTS)
    Y[:40] = np.eye(3)[generator.integers(3, size=40)]
    Y[40:80, 1] = 0
    Y[80:90, :2] *= 1e-12
    Y /= Y.sum(axis=1, keepdims=True)
    theta = generator.normal(size=(N_POINTS, 3)) * generator.choice([0.01, 1, 5, 30], (N_POINTS, 1))
    theta[::4, 2] = theta[::4, 0]
    theta[::9] = np.round(theta[::9])
    theta[5] = 0
    return Y, theta


def test_numbers_are_those_of_python(browser):
    Y, theta = draw_points()
    for alpha, omega in REGULARIZERS.items():
        for c in TIGHTNESSES:
            found = browser.run(SOLVE, alpha, c, Y.tolist(), theta.tolist())
            loss = fp.FitzpatrickLoss(omega, tightness=c)
            expected = {
                "value": loss.value(Y, theta),
                "yStar": loss.y_star(Y, theta),
                "gradient": loss.gradient(Y, theta),
                "link": loss.link(theta),
            }
            for name, values in expected.items():
                shown = np.asarray([one[name] for one in found], dtype=float)
                np.testing.assert_allclose(shown, values, **CLOSE, err_msg=f"{name} {alpha} {c}")


# What the page shows


def shown(browser):
    """All numbers of the first view."""
    return browser.run(
        """const value = (element) => Number(element.dataset.value), found = {};
        for (const output of document.querySelectorAll("output[id^=loss]"))
          found[output.id.replace("loss-", "")] = value(output);
        for (const row of document.querySelectorAll("tr[id^=row]"))
          found[row.id.replace("row-", "")] = [...row.cells].slice(1).map(value);
        return found;"""
    )


def check_numbers(browser, alpha, c):
    """What is shown follows from the θ and y that are shown."""
    seen = shown(browser)
    y, theta = np.asarray(seen["y"]), np.asarray(seen["theta"])
    losses = {
        end: fp.FitzpatrickLoss(REGULARIZERS[alpha], tightness=tightness)
        for end, tightness in {"0": 0, "c": c, "1": 1}.items()
    }
    for end, loss in losses.items():
        np.testing.assert_allclose(seen[end], loss.value(y, theta), **CLOSE)
    np.testing.assert_allclose(seen["link"], losses["c"].link(theta), **CLOSE)
    np.testing.assert_allclose(seen["star"], losses["c"].y_star(y, theta), **CLOSE)
    np.testing.assert_allclose(seen["star-1"], losses["1"].y_star(y, theta), **CLOSE)
    np.testing.assert_allclose(seen["gradient"], losses["c"].gradient(y, theta), **CLOSE)
    return seen


def address_once_saved(browser):
    """The address, which is written a moment after the last change."""
    deadline = time.monotonic() + 10
    last = None
    while time.monotonic() < deadline:
        time.sleep(0.25)  # longer than the page waits
        if (now := browser.driver.current_url) == last:
            return now
        last = now
    raise AssertionError("the address keeps changing")


def test_page_opens_on_numbers_that_fit_together(browser):
    seen = check_numbers(browser, alpha=1, c=0.5)
    assert seen["1"] < seen["c"] < seen["0"]
    assert browser.find("#loss-0").text == f"{seen['0']:.4f}"
    assert {one.text for one in browser.find_all(".present")} == {f"loss {seen['c']:.4f}"}
    shares = """return [...document.querySelectorAll(".bar")]
        .map((bar) => bar.offsetWidth / bar.parentElement.clientWidth)"""
    expected = [seen[end] / seen["0"] for end in ("0", "c", "1")]
    assert browser.run(shares) == pytest.approx(expected, abs=0.01)  # of whole pixels


DRAWN = """
const [id, alpha, c, y, theta] = arguments, isScores = id === "scores";
const onSimplex = (point) => toTarget(point).map((value) => Math.max(value, 0));
const vectorAt = (point) => (isScores ? toVector(point, SCORE_PLANE) : onSimplex(point));
const lossAt = (point, c) => {
  const vector = vectorAt(point);
  return (isScores ? evaluate(alpha, y, vector, c) : evaluate(alpha, vector, theta, c)).value;
};
const all = (selector) => [...document.querySelectorAll(`#${id} ${selector}`)];
const number = (one, name) => Number(one.getAttribute(name));
const points = (line) => [...line.getAttribute("d").matchAll(/([-.\\d]+),([-.\\d]+)/g)]
  .map(([, x, y]) => ({ x: Number(x), y: Number(y) }));
const text = (one) => ({ x: number(one, "x"), y: number(one, "y") - 4 });
return {
  current: all(".current").map((line, k) => points(line).map((p) => lossAt(p, [0, 1, c][k]))),
  levels: all(".level-label").map((one) => [Number(one.textContent), lossAt(text(one), c)]),
  arrows: all(".arrow").map((line) => points(line).slice(0, 2).map(vectorAt)),
  dots: all(".point").map((one) => vectorAt({ x: number(one, "cx"), y: number(one, "cy") })),
  names: all(".point-label").map((one) => {
    return [one.textContent, vectorAt({ x: number(one, "x") - 11, y: number(one, "y") - 5 })];
  }),
};"""


@pytest.mark.parametrize(("alpha", "c"), [(1, 0.5), (1.5, 3)])
def test_drawings_show_what_the_numbers_say(browser, url, alpha, c):
    """Lines where losses have one value, arrows down the gradients, dots at the maximizers."""
    browser.open(f"{url}#alpha={alpha}&c=2&y=0.1,0.8,0.1")  # nothing of this is kept
    browser.open(f"{url}#alpha={alpha}&c={c}")
    seen = check_numbers(browser, alpha, c)
    for plot, taken in (("scores", "theta"), ("targets", "y")):
        drawn = browser.run(DRAWN, plot, alpha, c, seen["y"], seen["theta"])
        assert len(drawn["current"]) == 3
        for values in drawn["current"]:  # between the points of a mesh, and rounded
            assert len(values) > 20
            np.testing.assert_allclose(values, seen["c"], rtol=0.05)
        assert len(drawn["levels"]) > 3
        levels, values = np.transpose(drawn["levels"])
        np.testing.assert_allclose(values, levels, rtol=0.1)
        begins, ends = np.moveaxis(np.asarray(drawn["arrows"]), 1, 0)
        np.testing.assert_allclose(begins, len(begins) * [seen[taken]], atol=0.01)
        if plot == "scores":
            gradients = [np.subtract(seen[star], seen["y"]) for star in ("link", "star-1", "star")]
            np.testing.assert_allclose(ends - begins, -2.5 * np.asarray(gradients), atol=0.01)
        else:
            stars = [seen["link"], seen["star-1"], seen["star"]]
            np.testing.assert_allclose(drawn["dots"], stars, atol=1e-3)
            np.testing.assert_allclose(ends, [seen["star"]], atol=1e-3)
            places = dict(zip(("ŷ(θ)", "y*₁", "y*"), stars, strict=True))
            for name, place in drawn["names"][:-1]:  # the last one is the handle's
                np.testing.assert_allclose(place, places[name], atol=1e-3)


def test_page_asks_for_nothing_from_outside(browser, url):
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    page = explorer.page().replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert not re.search(r"https?:|src=|href=|@import|url\((?!#)|fetch\(|XMLHttp|import\(", page)
    assert page.count("</script") == page.count("</style") == 1


@pytest.mark.parametrize("kind", ["mouse", "touch"])
def test_dragging_the_scores(browser, kind):
    before = shown(browser)
    browser.drag("#scores .handle .knob", 60, 50, kind)  # right and down: to class 3, off class 1
    after = check_numbers(browser, alpha=1, c=0.5)
    assert after["y"] == before["y"]
    assert after["theta"][2] > before["theta"][2] + 0.5
    assert after["theta"][0] < before["theta"][0] - 0.5
    assert sum(after["theta"]) == pytest.approx(0, abs=1e-12)
    assert after["link"] != before["link"]
    browser.press("ARROW_UP")  # a handle that was dragged has the keyboard
    assert check_numbers(browser, alpha=1, c=0.5)["theta"][0] > after["theta"][0]


@pytest.mark.parametrize("kind", ["mouse", "touch"])
def test_dragging_the_target_to_a_corner(browser, kind):
    before = shown(browser)
    browser.drag("#targets .handle .knob", -150, 90, kind)  # out of the simplex
    after = check_numbers(browser, alpha=1, c=0.5)
    assert after["y"] == [0, 1, 0]
    assert after["theta"] == before["theta"]
    assert after["link"] == before["link"]
    browser.drag("#targets .handle .knob", 150, 0, kind)
    on_edge = check_numbers(browser, alpha=1, c=0.5)["y"]
    assert on_edge[0] == pytest.approx(0, abs=0.01)
    assert 0 < on_edge[2] < 1


def test_a_click_sends_the_handle_there(browser):
    browser.drag("#scores")
    theta = check_numbers(browser, alpha=1, c=0.5)["theta"]
    np.testing.assert_allclose(theta, 0, atol=0.05)  # the middle of the plot, to a pixel


def test_tab_reaches_every_control_in_order(browser):
    reached = []
    for _ in range(10):
        browser.press("TAB")
        name = "const e = document.activeElement; return e.ariaLabel || e.value || e.textContent"
        reached.append(browser.run(name))
        mark, style, seen = ("e", "outlineStyle", "solid")
        if browser.run("return document.activeElement.matches('.handle')"):
            mark, style, seen = ("e.querySelector('.ring')", "visibility", "visible")
        look = f"const e = document.activeElement; return getComputedStyle({mark}).{style}"
        assert browser.run(look) == seen
    assert reached == [
        "Dark mode",
        "Three classes",
        "Margins",
        "Tightness c",
        "1",
        "Order α of Tsallis' entropy",
        "Reset",
        "Scores θ",
        "Target y",
        "The formulas",
    ]


def test_arrow_keys_move_scores_and_target(browser):
    start = shown(browser)
    browser.focus("#scores .handle")
    browser.press("ARROW_UP")
    up = check_numbers(browser, alpha=1, c=0.5)
    step = up["theta"][0] - start["theta"][0]
    assert 0.05 < step < 0.2
    browser.press("ARROW_UP", hold="CONTROL")  # which is the browser's
    assert shown(browser) == up
    browser.press("ARROW_DOWN", hold="SHIFT")
    down = check_numbers(browser, alpha=1, c=0.5)
    assert down["theta"][0] - up["theta"][0] == pytest.approx(-5 * step, abs=0.01)
    label = browser.find("#scores .handle").get_attribute("aria-valuetext")
    assert label == "(" + ", ".join(f"{v:.2f}".replace("-", "−") for v in down["theta"]) + ")"

    browser.focus("#targets .handle")
    browser.press("ARROW_RIGHT")
    right = check_numbers(browser, alpha=1, c=0.5)
    assert right["theta"] == down["theta"]
    assert right["y"][2] > down["y"][2]
    assert sum(right["y"]) == pytest.approx(1, abs=1e-12)


def test_the_slider_of_the_tightness(browser):
    before = shown(browser)
    browser.focus("#tightness")
    browser.press("ARROW_RIGHT")
    after = check_numbers(browser, alpha=1, c=0.55)
    assert after["c"] < before["c"]
    assert (after["0"], after["1"], after["link"]) == (before["0"], before["1"], before["link"])
    assert browser.find("#tightness-value").text == "0.55"
    browser.press("HOME")
    assert check_numbers(browser, alpha=1, c=0)["c"] == before["0"]
    browser.press("END")
    assert check_numbers(browser, alpha=1, c=4)["c"] < before["1"]


def test_the_choice_of_the_regularizer(browser):
    browser.find("input[name=alpha][value='2']").click()
    check_numbers(browser, alpha=2, c=0.5)
    assert browser.find("#alpha-value").text == "2"
    browser.find("input[name=alpha][value='1.5']").click()
    check_numbers(browser, alpha=1.5, c=0.5)
    browser.focus("#alpha")
    browser.press(*["ARROW_RIGHT"] * 8)
    check_numbers(browser, alpha=1.9, c=0.5)
    assert browser.find_all("input[name=alpha]:checked") == []
    browser.find("[type=reset]").click()
    check_numbers(browser, alpha=1, c=0.5)


def test_the_address_holds_the_state(browser, url):
    browser.drag("#scores .handle .knob", 37, 21)
    browser.drag("#targets .handle .knob", 23, -31)
    browser.find("input[name=alpha][value='1.5']").click()
    browser.focus("#tightness")
    browser.press("ARROW_RIGHT")
    browser.find(".theme-toggle").click()
    before, address = shown(browser), address_once_saved(browser)
    assert "alpha=1.5&c=0.55" in address
    assert address.endswith("theme=dark")

    browser.open(address)
    assert shown(browser) == before
    assert browser.find("#alpha-value").text == "1.5"
    assert browser.run("return theme.isDark")
    assert address_once_saved(browser) == address

    browser.driver.get(f"{url}#{DEFAULT_HASH}")  # typed into the same window
    browser.run("return new Promise((done) => setTimeout(done))")
    check_numbers(browser, alpha=1, c=0.5)
    assert not browser.run("return theme.isDark")


def test_what_is_not_valid_in_the_address_has_its_default(browser, url):
    defaults = shown(browser)
    for hash_ in (
        "view=x&alpha=7&c=-1&theta=1,2&y=2,-1,0&margin=abc&hide=foo&theme=pink",
        "alpha=&c=&theta=,,&y=,,&margin=&hide=&theme=",
        "alpha=1.0000001&c=Infinity&theta=NaN,0,0&y=0.5,0.5,0.5&margin=99",
        "theta=900,-900,0&y=<b>,0,1&c=1e999&%=%E0%A4",
        "nonsense",
    ):
        browser.open(f"{url}#{hash_}")
        assert shown(browser) == defaults, hash_
    browser.open(f"{url}#c=9&alpha=2&y=0,1,0")  # what is valid counts
    assert check_numbers(browser, alpha=2, c=0.5)["y"] == [0, 1, 0]


def test_dark_mode_follows_the_system_and_the_button(browser, url):
    background = "return getComputedStyle(document.body).backgroundColor"
    ink = "return getComputedStyle(document.querySelector('.handle .knob')).fill"
    browser.open(url, dark=True)
    dark = browser.run(background), browser.run(ink)
    assert browser.find(".theme-toggle").text == "Light mode"
    browser.open(url)
    light = browser.run(background), browser.run(ink)
    assert light[0] == "rgb(255, 255, 255)"
    assert dark[0] != light[0]
    assert dark[1] != light[1]
    button = browser.find(".theme-toggle")
    assert button.text == "Dark mode"
    button.click()
    assert (browser.run(background), browser.run(ink)) == dark
    assert button.text == "Light mode"
    browser.find("[type=reset]").click()
    browser.open(address_once_saved(browser))
    assert browser.run(background) == dark[0]


@pytest.mark.parametrize("width", [400, 360])
@pytest.mark.parametrize("view", ["simplex", "margin"])
def test_it_fits_a_telephone(browser, url, view, width):
    browser.open(f"{url}#view={view}&c=2.85&alpha=1.85", width=width, height=800)
    browser.run("document.querySelector('details').open = true")
    assert browser.overflow() == 0
    beyond = browser.run(
        """const panel = document.getElementById("controls");
        const right = (one) => one.getBoundingClientRect().right;
        const end = right(panel) - parseFloat(getComputedStyle(panel).paddingRight);
        const beyond = [...panel.querySelectorAll("*")].filter((one) => right(one) > end + 0.5);
        return beyond.map((one) => one.id || one.tagName)"""
    )
    assert beyond == []
    for plot in browser.find_all(f"#{view} figure > svg"):
        assert plot.size["width"] > 0.75 * width


# Margins


def margin_values(browser, table):
    return browser.run(
        """const rows = [...document.querySelectorAll(`#${arguments[0]} tbody tr`)];
        const values = (row) => [...row.cells].slice(1).map((cell) => Number(cell.dataset.value));
        return Object.fromEntries(rows.map((row) => [row.cells[0].textContent, values(row)]));""",
        table,
    )


def check_margin(browser, margin, c):
    y, theta = np.asarray([1.0, 0.0]), np.asarray([margin, 0.0])
    losses = {
        name: [fp.FitzpatrickLoss(fp.get_loss(name).regularizer, tightness=t) for t in (0, c, 1)]
        for name in ("logistic", "sparsemax", "entmax15")
    } | {"perceptron": [fp.get_loss("perceptron")]}
    values, slopes = margin_values(browser, "values"), margin_values(browser, "slopes")
    assert set(values) == set(slopes) == set(losses)
    for name, family in losses.items():
        expected = [loss.value(y, theta) for loss in family]
        np.testing.assert_allclose(values[name], expected, **CLOSE)
        expected = [loss.gradient(y, theta)[0] for loss in family]
        np.testing.assert_allclose(slopes[name], expected, **CLOSE)


def test_margins(browser):
    browser.find("[data-view=margin]").click()
    check_margin(browser, -0.5, 0.5)
    assert len(browser.find_all("#curves .line:not(table *)")) == 10
    browser.drag("#curves .handle .knob", 126, 0)
    margin = float(browser.find("#curves .handle").get_attribute("aria-valuenow"))
    assert margin > 1
    check_margin(browser, margin, 0.5)
    browser.focus("#derivatives .handle")
    browser.press("ARROW_LEFT")
    check_margin(browser, round(margin - 0.1, 2), 0.5)


def test_a_family_can_be_hidden(browser, url):
    browser.open(f"{url}#view=margin")
    browser.find("#values [name=sparsemax]").click()
    assert len(browser.find_all("#curves polyline")) == 7
    assert not browser.find("#slopes [name=sparsemax]").is_selected()
    browser.find("#slopes [name=logistic]").click()
    browser.open(address_once_saved(browser))
    assert len(browser.find_all("#derivatives polyline")) == 4
    browser.find("#values [name=sparsemax]").click()
    assert len(browser.find_all("#curves polyline")) == 7


def test_pointing_at_a_curve_shows_its_values(browser, url):
    from selenium.webdriver import ActionChains

    browser.open(f"{url}#view=margin")
    line = browser.find("#curves polyline.s0")  # logistic at c = 0
    point = browser.run(
        """const [line] = arguments, at = line.points[80];  // a quarter of the way: margin −2
        const place = new DOMPoint(at.x, at.y).matrixTransform(line.getScreenCTM());
        return [Math.round(place.x), Math.round(place.y)]""",
        line,
    )
    actions = ActionChains(browser.driver, duration=0)
    actions.w3c_actions.pointer_action.move_to_location(*point)
    actions.perform()
    found = re.fullmatch(
        r"logistic at −(\d\.\d+): loss (\d\.\d+), derivative −(\d\.\d+)", browser.find(".tip").text
    )
    margin, value, slope = (float(text) for text in found.groups())
    assert margin == pytest.approx(2, abs=0.02)  # a pixel
    assert value == pytest.approx(np.log1p(np.exp(margin)), abs=6e-5)  # four digits are shown
    assert slope == pytest.approx(1 / (1 + np.exp(-margin)), abs=6e-5)
    assert "near" in line.get_attribute("class")
    ActionChains(browser.driver, duration=0).move_to_element(browser.find("h1")).perform()
    assert not browser.find(".tip").is_displayed()
    assert "near" not in line.get_attribute("class")
