"""Opens reports in a headless browser: plots are drawn, marks tell their values, zoom and saving work, nothing is fetched.

Usage: test_report.py POLYURN SCREENSHOTS, where POLYURN is the program and SCREENSHOTS a folder for pictures of the pages.
"""

import base64
import json
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

FIXTURES = Path(__file__).parents[2] / "crates/polyurn-cli/tests/fixtures"
DEMO_DATA = Path(__file__).parents[2] / "crates/polyurn-cli/src/demo_data"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
WIDTHS = {"wide": (1280, 900), "phone": (390, 844)}
HOSTILE = "<script>window.harmed = 1</script>\"'><img src=x onerror=alert(1)>"


def polyurn(program, *args):
    subprocess.run([program, *map(str, args)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def make_reports(program, folder):
    """One page of every kind, and one with hostile labels."""
    data, fit = folder / "lda.csv", folder / "fit.polyurn"
    prior = ["--a", 30, "--seed", 1]
    polyurn(program, "simulate", "--model", "doc[12] -> topic[3] -> word[40]", "--tokens", 600, "--seen", "doc,word",
            "-o", data, *prior)
    polyurn(program, "fit", "--model", "doc -> topic[3] -> word", "--data", data, "--method", "smc", "--particles", 64,
            "-o", fit, *prior)
    answers = [DEMO_DATA / "dilemmas.csv", "--json", "--seed", 1]
    polyurn(program, "select", "--model", "class[1..4] -> passenger critic doctor director", "--time-limit", "4s",
            "-o", folder / "select.json", "--data", *answers)
    polyurn(program, "select", "--model", "near[1..2] -> far[1..3]; near -> passenger critic; far -> doctor director",
            "--time-limit", "4s", "-o", folder / "select-two.json", "--data", *answers)
    anneal = ["--method", "anneal", "--bracket", "--sweeps", 50, "--chain-sweeps", 60, "--runs", 4]
    polyurn(program, "select", "--model", "lca(2..4)", *anneal, "-o", folder / "anneal.json", "--data", *answers)
    polyurn(program, "compare", "--model", "lca(2)", "--model", "near[2] -> passenger critic; near -> far[2] -> doctor director",
            *anneal, "-o", folder / "anneal-compare.json", "--data", *answers)
    structures = ["independent", "sex -> fate; age", "age -> fate; sex", "sex age -> fate", "complete"]
    models = [word for model in structures for word in ("--model", model)]
    polyurn(program, "compare", *models, "--data", DEMO_DATA / "donner.csv", "--json", "-o", folder / "compare.json")
    hostile = json.loads((FIXTURES / "compare.json").read_text())
    hostile["verdict"] = hostile["data"]["file"] = HOSTILE
    hostile["command_line"].append(HOSTILE)
    hostile["warnings"] = [{"kind": HOSTILE, "message": HOSTILE}]
    for model in hostile["models"]:
        model["model"] = HOSTILE + model["model"]
        for node in model["nodes"]:
            node["name"] = HOSTILE + node["name"]
            node["parents"] = [HOSTILE + parent for parent in node["parents"]]
    (folder / "hostile.json").write_text(json.dumps(hostile))
    large(folder / "large.json")
    pages = {}
    for name, result in {
        "select": folder / "select.json",
        "select-two": folder / "select-two.json",
        "compare": folder / "compare.json",
        "anneal": folder / "anneal.json",
        "anneal-compare": folder / "anneal-compare.json",
        "fit": fit,
        "hostile": folder / "hostile.json",
        "large": folder / "large.json",
    }.items():
        pages[name] = folder / f"{name}.html"
        polyurn(program, "report", result, "-o", pages[name], "--svg", folder / f"plots-{name}")
        plots = list((folder / f"plots-{name}").iterdir())
        assert plots, f"{name}: no plots were written"
        for plot in plots:
            ElementTree.parse(plot)
    return pages


def large(path):
    """A fit of thirty topics over five thousand words."""
    words = [f"word{ix}" for ix in range(5000)]
    rows = []
    for topic in range(30):
        weights = [1.0 / (1 + (ix * 7919 + topic * 104729) % 5000) for ix in range(5000)]
        total = sum(weights)
        rows.append({"given": {"topic": str(topic)}, "values": words, "mean": [w / total for w in weights],
                     "sd": [w / total / 9 for w in weights]})
    nodes = [{"name": "topic", "size": 30, "seen": False, "parents": ["doc"]},
             {"name": "doc", "size": 100, "seen": True, "parents": []},
             {"name": "word", "size": 5000, "seen": True, "parents": ["topic"]}]
    path.write_text(json.dumps({"command": "fit", "method": "vb", "objective": -1e6, "nodes": nodes,
                                "tables": [{"node": "word", "tied": [], "rows": rows}]}))


def open_browser(folder, theme):
    options = webdriver.ChromeOptions()
    for flag in [*FLAGS, f"--user-data-dir={folder / ('profile-' + theme)}"]:
        options.add_argument(flag)
    if theme == "dark":
        options.add_argument("--force-dark-mode")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option("prefs", {
        "download.default_directory": str(folder),
        "profile.default_content_setting_values.automatic_downloads": 1,
    })
    service = webdriver.ChromeService("/usr/bin/chromedriver") if Path("/usr/bin/chromedriver").exists() else None
    browser = webdriver.Chrome(options=options, service=service)
    # What the browser's own first page asks for is not ours.
    browser.get("about:blank")
    browser.get_log("performance")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                            {"features": [{"name": "prefers-color-scheme", "value": theme}]})
    return browser


def resize(browser, width):
    wide, high = WIDTHS[width]
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": width == "phone"})


def open_page(browser, page, path):
    """Opens a page and waits until its script has run, which comes last."""
    start = time.time()
    browser.get(path.as_uri())
    is_ready = "return document.readyState === 'complete' && document.querySelectorAll('.tools').length > 0"
    while not browser.execute_script(is_ready):
        assert time.time() - start < 20, f"{page}: does not come up"
        time.sleep(0.05)
    # Loading as the browser saw it; the machine may be busy with other things.
    took = browser.execute_script("return performance.getEntriesByType('navigation')[0].domComplete") / 1000
    assert took < 5, f"{page}: took {took:.1f} s to open"


def visible_plots(browser):
    return browser.execute_script("""
        return [...document.querySelectorAll('figure svg')].filter((svg) => svg.getBoundingClientRect().width);
    """)


def check_drawn(browser, page, width):
    plots = visible_plots(browser)
    figures = browser.find_elements(By.CSS_SELECTOR, "figure")
    assert len(plots) == len(figures) > 0, f"{page}: {len(plots)} plots in {len(figures)} figures"
    for plot in plots:
        assert plot.rect["width"] > 200 and plot.rect["height"] > 40, f"{page}: {plot.rect}"
    empty = browser.execute_script("""
        return [...document.querySelectorAll('figure svg')].filter((svg) => svg.getBoundingClientRect().width)
          .flatMap((svg) => {
            const view = svg.getAttribute('viewBox').split(' ').map(Number);
            const marks = [...svg.querySelectorAll('.mark')];
            const texts = [...svg.querySelectorAll('text')].map((text) => [text.textContent, text.getBBox(), text])
              .filter(([, box, text]) => !text.hasAttribute('transform')
                && (box.x < -2 || box.x + box.width > view[2] + 2 || box.y < -2 || box.y + box.height > view[3] + 2))
              .map(([words, box]) => `"${words}" at ${box.x} to ${box.x + box.width} of ${view[2]}`);
            const name = svg.closest('figure').dataset.name;
            return (marks.length ? [] : [`${name} has no marks`]).concat(texts.map((text) => `${name}: ${text}`));
          });
    """)
    assert not empty, f"{page} {width}: {empty}"
    overflow = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
    assert overflow <= 0, f"{page} {width}: wider than the screen by {overflow}"


def check_hover(browser, page, plots):
    for plot in plots:
        marks = plot.find_elements(By.CSS_SELECTOR, ".mark")
        known = browser.execute_script("return arguments[0].map((mark) => mark.dataset.tip)", marks)
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", marks[0])
        tip = browser.find_element(By.CSS_SELECTOR, ".tip")
        # Scrolling, which hides what was told, may take a moment to end.
        for _ in range(20):
            time.sleep(0.05)
            ActionChains(browser, duration=20).move_to_element_with_offset(marks[0], 1, 0).move_to_element(marks[0]).perform()
            if tip.is_displayed():
                break
        assert tip.is_displayed() and tip.text, f"{page}: hover tells nothing"
        assert browser.execute_script("return arguments[0].textContent", tip) in known, f"{page}: hover tells {tip.text!r}"


def check_zoom(browser, page):
    plot = visible_plots(browser)[0]
    box = lambda: plot.get_dom_attribute("viewBox")
    whole = box()
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    time.sleep(0.05)
    ActionChains(browser, duration=20).scroll_from_origin(ScrollOrigin.from_element(plot), 0, -200).perform()
    assert box() == whole, f"{page}: the wheel must scroll the page until the plot is clicked"
    # The page may still be scrolling.
    for _ in range(20):
        time.sleep(0.1)
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus()", plot)
        ActionChains(browser, duration=20).scroll_from_origin(ScrollOrigin.from_element(plot), 0, -400).perform()
        if box() != whole:
            break
    zoomed = box()
    assert zoomed != whole, f"{page}: the wheel does not zoom"
    ActionChains(browser, duration=20).click_and_hold(plot).move_by_offset(30, 10).release().perform()
    assert box() != zoomed, f"{page}: dragging does not move the plot"
    ActionChains(browser, duration=20).double_click(plot).perform()
    assert box() == whole, f"{page}: double click does not reset"
    browser.execute_script("arguments[0].focus()", plot)
    ActionChains(browser, duration=20).send_keys("+").perform()
    assert box() != whole, f"{page}: the + key does not zoom"
    ActionChains(browser, duration=20).send_keys("0").send_keys(Keys.ARROW_RIGHT).perform()
    assert box() == whole, f"{page}: the 0 key does not reset"
    assert browser.find_element(By.CSS_SELECTOR, ".tip").is_displayed(), f"{page}: arrow keys tell nothing"


def check_pinch(browser, page):
    plot = visible_plots(browser)[0]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    whole = plot.get_dom_attribute("viewBox")
    at = browser.execute_script("const b = arguments[0].getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]", plot)
    touch = lambda kind, *spread: browser.execute_cdp_cmd("Input.dispatchTouchEvent", {
        "type": kind, "touchPoints": [{"x": at[0] + dx, "y": at[1], "id": ix} for ix, dx in enumerate(spread)]})
    touch("touchStart", -20, 20)
    for far in (30, 45, 60, 80):
        touch("touchMove", -far, far)
    touch("touchEnd")
    assert plot.get_dom_attribute("viewBox") != whole, f"{page}: pinching does not zoom"


def check_saving(browser, page, folder):
    figure = browser.find_elements(By.CSS_SELECTOR, "figure")[0]
    name = figure.get_dom_attribute("data-name")
    for ending in ("SVG", "PNG"):
        path = folder / f"{name}.{ending.lower()}"
        path.unlink(missing_ok=True)
        button = [b for b in figure.find_elements(By.TAG_NAME, "button") if b.text == f"Save {ending}"][0]
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].click()", button)
        for _ in range(100):
            if path.exists() and path.stat().st_size:
                break
            time.sleep(0.05)
        assert path.exists(), f"{page}: {path.name} was not saved; console says {browser.get_log('browser')}"
    svg = (folder / f"{name}.svg").read_text()
    ElementTree.fromstring(svg)
    assert "var(" not in svg and "#ffffff" in svg, f"{page}: colours of the saved file"
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG"), f"{page}: not a PNG"


def check_quiet(browser, page, path):
    """No console messages, and no request but the page itself."""
    log = browser.get_log("browser")
    assert not log, f"{page}: console says {log}"
    entries = browser.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    asked = [entry for entry in entries if not entry.startswith("data:") and not entry.startswith("blob:")]
    assert not asked, f"{page}: fetched {asked}"
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            assert url.split(":")[0] in ("about", "data", "blob") or url == path.as_uri(), f"{page}: asked for {url[:100]}"
    assert browser.execute_script("return window.harmed") is None, f"{page}: a label was run"
    assert browser.execute_script("return document.querySelectorAll('img, iframe, object, main script').length") == 0


def screenshot(browser, path):
    size = browser.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16000), "scale": 1}
    found = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    path.write_bytes(base64.b64decode(found["data"]))


def main():
    program, shots = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages = make_reports(program, folder)
        assert pages["large"].stat().st_size < 3_000_000, "the large report has more than 3 MB"
        for theme in ("light", "dark"):
            browser = open_browser(folder, theme)
            try:
                for page, path in pages.items():
                    for width in WIDTHS:
                        resize(browser, width)
                        open_page(browser, page, path)
                        check_drawn(browser, page, width)
                        if page != "large":
                            screenshot(browser, shots / f"{page}-{width}-{theme}.png")
                        plots = visible_plots(browser)
                        # Each plot of a page is hovered over once, and some of them at every width in every theme.
                        check_hover(browser, page, plots if (theme, width) == ("light", "wide") else plots[:3])
                        # What colours have no part in is tried once.
                        if theme == "light" and width == "wide":
                            check_zoom(browser, page)
                            check_saving(browser, page, folder)
                        elif theme == "light":
                            check_pinch(browser, page)
                        check_quiet(browser, page, path)
                    if theme == "light":
                        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
                        resize(browser, "wide")
                        screenshot(browser, shots / f"{page}-print.png")
                        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
                            "media": "", "features": [{"name": "prefers-color-scheme", "value": theme}]})
            finally:
                browser.quit()
    print(f"{len(pages)} reports at {len(WIDTHS)} widths, light and dark: all is well; pictures in {shots}")


if __name__ == "__main__":
    main()
