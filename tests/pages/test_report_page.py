"""A report in a real browser: plots that answer, and names from files that stay names."""

import re

import pytest

from fitzpatrick.experiments.report import render
from tests.experiments.test_report import section

ATTACK = (
    """</script></style><script>window.hit = 1</script><img src=x onerror="hit=2">'" onload=hit=3"""
)
TIP = re.compile(r"(\w+), α = ([\d.]+): ([\d.]+)")


def write(tmp_path_factory, page):
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(page, encoding="utf-8")
    return file.as_uri()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    two = [section(), section("another")]
    return write(tmp_path_factory, render("A title", "A lead", two, {"birds": "no copy"}))


def hover(browser, selector, end=0):
    """Put the pointer on a mark: at its left end (−1), in its middle (0) or at its right end."""
    from selenium.webdriver import ActionChains

    mark = browser.find(selector)
    browser.run("arguments[0].scrollIntoView({ block: 'center' })", mark)
    aside = end * (mark.size["width"] // 2 - 2)
    ActionChains(browser.driver, duration=0).move_to_element_with_offset(mark, aside, 0).perform()


def visible_marks(browser, loss):
    return browser.run(
        """return [...document.querySelectorAll("[data-loss] [data-tip]")].filter((mark) =>
          mark.closest("[data-loss]").dataset.loss === arguments[0]
          && getComputedStyle(mark).visibility === "visible").length""",
        loss,
    )


def test_values_under_the_pointer(browser, url):
    browser.open(url)
    assert not browser.find(".tip").is_displayed()
    hover(browser, "svg svg [data-loss=fitzpatrick_logistic] [data-tip]:nth-of-type(2)")
    lines = browser.find(".tip").text.splitlines()  # of both losses, which have equal dev errors
    found = [TIP.fullmatch(line).groups() for line in lines]
    assert found == [("logistic", "1", "0.3"), ("fitzpatrick_logistic", "1", "0.3")]
    for end in (-1, 1):  # all along the bar
        hover(browser, ".plots rect.bar", end)
        assert browser.find(".tip").text == "logistic: 25 %"
    hover(browser, "h1")
    assert not browser.find(".tip").is_displayed()


def test_values_at_the_tap_of_a_finger(browser, url):
    browser.open(url)
    browser.run("document.querySelector('.bar').scrollIntoView({ block: 'center' })")
    browser.drag(".plots rect.bar", kind="touch")
    assert browser.find(".tip").text == "logistic: 25 %"  # and it stays


def test_values_by_the_keyboard(browser, url):
    browser.open(url)
    browser.focus("figure > svg", 1)
    browser.press("ARROW_RIGHT")
    first = TIP.fullmatch(browser.find(".tip").text).groups()
    browser.press("ARROW_RIGHT")
    second = TIP.fullmatch(browser.find(".tip").text).groups()
    assert first[0] == second[0] == "logistic"
    assert float(first[1]) > float(second[1])
    browser.press("ARROW_LEFT")
    assert browser.find(".tip").text.startswith(f"logistic, α = {first[1]}")
    described = browser.find_all("figure > svg")[1].get_attribute("aria-description")
    assert described == browser.find(".tip").text
    browser.press("ESCAPE")
    assert not browser.find(".tip").is_displayed()


@pytest.mark.parametrize("way", ["mouse", "keyboard"])
def test_a_loss_can_be_hidden(browser, url, way):
    browser.open(url)
    legend = browser.find("svg g.legend[data-loss=logistic]")
    whole = visible_marks(browser, "logistic"), visible_marks(browser, "fitzpatrick_logistic")

    def toggle():
        if way == "mouse":
            legend.click()
        else:
            browser.run("arguments[0].focus()", legend)
            browser.press("ENTER")

    toggle()
    assert legend.get_attribute("aria-pressed") == "false"
    assert visible_marks(browser, "logistic") == whole[0] // 2  # of the other data set
    assert visible_marks(browser, "fitzpatrick_logistic") == whole[1]
    assert legend.is_displayed()
    browser.focus("figure > svg", 1)
    browser.press("ARROW_RIGHT")
    assert browser.find(".tip").text.startswith("fitzpatrick_logistic, α = ")
    browser.press("ESCAPE")
    toggle()
    assert legend.get_attribute("aria-pressed") == "true"
    assert visible_marks(browser, "logistic") == whole[0]


def test_without_scripts_the_page_shows_everything(browser, url):
    disable = "Emulation.setScriptExecutionDisabled"
    browser.driver.execute_cdp_cmd(disable, {"value": True})
    try:
        browser.open(url)
        assert browser.find_all(".theme-toggle") == []
        legends = browser.find_all("svg .legend")
        assert len(legends) == 2 * 4 * 2
        assert all(one.is_displayed() for one in legends + browser.find_all("figure > svg, table"))
    finally:
        browser.driver.execute_cdp_cmd(disable, {"value": False})


def test_it_fits_a_telephone_and_the_dark(browser, url):
    browser.open(url, width=400, height=800, dark=True)
    assert browser.overflow() == 0
    browser.focus("figure > svg", 1)
    browser.press("ARROW_RIGHT")  # to the mark at the right end
    seen = "const { right } = tip.getBoundingClientRect(); return innerWidth - right"
    assert 0 <= browser.run(seen) < 100
    color = "return getComputedStyle(document.body).backgroundColor"
    assert browser.run(color) != "rgb(255, 255, 255)"
    browser.find(".theme-toggle").click()
    assert browser.run(color) == "rgb(255, 255, 255)"


def test_names_cannot_inject_anything(browser, tmp_path_factory):
    hostile = section(ATTACK, ATTACK)
    page = render(ATTACK, ATTACK, [hostile], {ATTACK: ATTACK}, points=[ATTACK], commands=[ATTACK])
    browser.open(write(tmp_path_factory, page))
    assert browser.run("return window.hit ?? null") is None
    assert browser.find_all("img, [onerror], [onload]") == []
    assert len(browser.find_all("script, style")) == 2
    assert browser.find("h1").text == ATTACK
    assert browser.driver.title == ATTACK
    assert len(browser.find_all("figure > svg")) == 4


def test_a_script_that_got_in_would_not_run(browser, url):
    """The page names the checksums of its own scripts, and the browser runs no others."""
    browser.open(url)
    browser.run(
        """const script = document.createElement("script");
        script.textContent = "window.hit = 1";
        document.body.append(script);"""
    )
    assert browser.run("return window.hit ?? null") is None
    assert any("Content Security Policy" in message for message in browser.complaints())
