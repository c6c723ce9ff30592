"""A real browser for the pages that we write: Chromium without a window, driven by Selenium."""

import os
import shutil

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


class Browser:
    """The driver, with what the tests of every page need."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, url, *, width=1200, height=900, dark=False):
        """Load a page afresh, in a window of that size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get("about:blank")  # a change of the fragment alone would load nothing
        self.driver.get(url)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def find_all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def press(self, *names, hold=None):
        """Press keys, by the names that selenium has for them, while another one is held."""
        from selenium.webdriver import ActionChains, Keys

        actions = ActionChains(self.driver, duration=0)
        if hold:
            actions.key_down(getattr(Keys, hold))
        actions.send_keys(*(getattr(Keys, name) for name in names))
        if hold:
            actions.key_up(getattr(Keys, hold))
        actions.perform()

    def drag(self, selector, dx=0, dy=0, kind="mouse"):
        """Drag something with the mouse or a finger; by nothing, click or tap it."""
        from selenium.webdriver.common.action_chains import ActionBuilder
        from selenium.webdriver.common.actions.pointer_input import PointerInput

        actions = ActionBuilder(self.driver, mouse=PointerInput(kind, kind), duration=0)
        pointer = actions.pointer_action
        pointer.move_to(self.find(selector)).pointer_down()
        pointer.move_by(dx // 2, dy // 2).move_by(dx - dx // 2, dy - dy // 2).pointer_up()
        actions.perform()

    def focus(self, selector, at=0):
        self.run("document.querySelectorAll(arguments[0])[arguments[1]].focus()", selector, at)

    def complaints(self):
        """What the page has written to the console since it was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def overflow(self):
        """By how many pixels the page is wider than its window."""
        return self.run(
            "const page = document.documentElement; return page.scrollWidth - page.clientWidth"
        )


@pytest.fixture(scope="session")
def started(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver_program = shutil.which("chromedriver")
    if program is None or driver_program is None:
        pytest.skip("needs a browser: chromium and chromedriver on the PATH")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for option in (*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(driver_program, log_output=os.devnull)
    driver = webdriver.Chrome(options=options, service=service)
    yield Browser(driver)
    driver.quit()


@pytest.fixture
def browser(started):
    """The browser; a page that complains on the console fails the test."""
    yield started
    assert started.complaints() == []
