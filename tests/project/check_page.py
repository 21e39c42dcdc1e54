"""Opens the page of ``ohmlearn serve --demo`` in a real browser, for ``make check-page``.

Needs chromium and the Python package playwright. The pictures in ``out/page`` are there to be
looked at. The checks see to it that the page updates, that nodes can be labelled in it, that tokens
are asked for, that it notices when the service is gone, and that it loads nothing from elsewhere.
"""

import contextlib
import json
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
OUT = Path("out/page")
WAIT_MS = 60_000  # a newcomer sees labels move within a minute
WRITE, READ = "write-token-0123456789", "read-token-0123456789"
HOSTILE = "<img src=x onerror=alert(1)>"

expect.set_options(timeout=WAIT_MS)


@contextlib.contextmanager
def serving(*options: str, port: int = 0, folder: str = "--demo") -> Iterator[str]:
    """Serve a folder, or run the demo, and yield the address."""
    command = [Path(sys.executable).with_name("ohmlearn"), "serve", folder, "--port", str(port)]
    with tempfile.TemporaryFile("w+") as log:
        server = subprocess.Popen(
            [*map(str, command), *options], stdout=subprocess.PIPE, stderr=log, text=True
        )
        assert server.stdout is not None
        try:
            for line in server.stdout:
                if found := re.search(r"http://\S+", line):
                    yield found[0]
                    break
            else:
                log.seek(0)
                sys.exit(log.read())
        finally:
            server.send_signal(signal.SIGTERM)
            status = server.wait(60)
            server.stdout.close()
        log.seek(0)
        written = log.read()
        assert status == 0, written
        assert "Traceback" not in written, written


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(address: str, path: str, token: str | None = None) -> Any:
    """Return what the service says, without the page."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"{address.rstrip('/')}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=20) as reply:
        return json.load(reply)


class Watched:
    """A page, what its console says, and which addresses it asks for."""

    def __init__(self, browser: Browser, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def _hear(self, message: Any) -> None:
        # A warning about reading pixels is due to `canvas_print`.
        if message.type in ("error", "warning") and "willReadFrequently" not in message.text:
            self.errors.append(f"{message.text} ({message.location.get('url')})")

    def close(self, address: str, *, allowed: str = "^$") -> None:
        """Refuse errors other than those allowed, and what was loaded from elsewhere."""
        found = [error for error in self.errors if not re.search(allowed, error)]
        assert not found, found
        elsewhere = [url for url in self.asked if not url.startswith(address)]
        assert not elsewhere, elsewhere
        self.context.close()


def read_count(page: Page, name: str) -> int:
    """Return a counter of the page."""
    text = page.locator(f"#{name}").inner_text()
    return int(text.replace(",", "")) if text[0].isdigit() else -1


def wait_until(page: Page, holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds."""
    for _ in range(WAIT_MS // 200):
        if holds():
            return
        page.wait_for_timeout(200)
    raise AssertionError(f"not within {WAIT_MS // 1000} s: {what}")


def canvas_print(page: Page) -> list[int]:
    """Return the number of coloured pixels of the map, and a hash of them."""
    found: list[int] = page.evaluate(
        """() => {
          const canvas = document.getElementById("map");
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let count = 0, hash = 0;
          for (let at = 0; at < data.length; at += 4) {
            if (data[at + 3] > 60) count++;
            hash = (hash * 31 + data[at] + 7 * data[at + 1] + 13 * data[at + 3]) | 0;
          }
          return [count, hash];
        }"""
    )
    return found


def check_live(address: str, watched: Watched) -> None:
    """See that the counters, the map, the charts and the changes are live."""
    page = watched.page
    page.goto(address)
    expect(page.locator("#connection-text")).to_have_text("Live")
    expect(page.locator("#name")).to_have_text("demo")
    wait_until(page, lambda: read_count(page, "edges") > 0, "edges are counted")
    before = read_count(page, "edges")
    wait_until(page, lambda: read_count(page, "edges") > before + 1000, "the counter rises")
    wait_until(page, lambda: read_count(page, "nodes") >= 600, "all people are nodes")
    expect(page.locator("#classes tbody tr")).to_have_count(4)
    wait_until(page, lambda: canvas_print(page)[0] > 3000, "the map is drawn")
    version, drawn = page.locator("#map").get_attribute("data-version"), canvas_print(page)
    wait_until(
        page,
        lambda: page.locator("#map").get_attribute("data-version") != version,
        "a new map comes",
    )
    wait_until(page, lambda: canvas_print(page)[1] != drawn[1], "the map moves")
    moves = page.locator("#changes li").filter(has_not_text="none")
    wait_until(page, lambda: moves.count() > 0, "somebody gets another label")
    assert page.locator("#confidence rect").count() == 20
    expect(page.locator("#certificate path.line")).to_have_count(2)
    assert page.locator("#rate path.line").count() == 1
    assert page.title() == "demo – ohmlearn"


def check_labelling(address: str, page: Page) -> None:
    """Label a suggested node and another one, and remove a label, with the keyboard only."""
    form = page.locator("#suggest form").first
    name = form.locator("b").inner_text()
    form.locator("input").fill("research")
    form = page.locator("#suggest li", has_text=name)  # suggestions may have changed places
    form.locator("input").press("Enter")
    expect(page.locator("#said")).to_have_text(f"Labelled {name} as research.")
    expect(form.locator(".done")).to_have_text("✓ research")
    given = {row["node"]: row["label"] for row in ask(address, "/v1/labels")["labels"]}
    assert given[name] == "research", given
    page.locator("#undo").press("Enter")
    expect(page.locator("#said")).to_have_text(f"Removed the label of {name}.")
    given = {row["node"]: row["label"] for row in ask(address, "/v1/labels")["labels"]}
    assert name not in given, given

    canvas = page.locator("#map")
    canvas.focus()
    canvas.press("ArrowRight")
    expect(page.locator("#map-focus")).to_have_text(re.compile(r"^[a-z]+-\d+: \w+, "))
    first = page.locator("#map-focus").inner_text().split(":")[0]
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        canvas.press(key)
    canvas.press("ArrowDown")
    chosen = page.locator("#map-focus").inner_text().split(":")[0]
    assert chosen != first, "arrow keys move from node to node"
    canvas.press("Enter")
    expect(page.locator("#other-node")).to_have_value(chosen)
    expect(page.locator("#other-label")).to_be_focused()
    page.keyboard.type(HOSTILE)
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_have_text(f"Labelled {chosen} as {HOSTILE}.")
    expect(page.locator("#classes th", has_text=HOSTILE)).to_have_count(1)
    assert page.locator("main img").count() == 0, "names must be text"
    page.locator("#undo").press("Enter")
    expect(page.locator("#classes th", has_text=HOSTILE)).to_have_count(0)


def check_versions(page: Page) -> None:
    """The map and suggestions name their answer, and are grey if there is a later one."""
    of_now = re.compile(r"Of answer \d+\.$")
    expect(page.locator("#map-of")).to_have_text(of_now)
    expect(page.locator("#suggest-of")).to_have_text(of_now)

    def answer_old(route: Any) -> None:
        route.fulfill(json={**route.fetch().json(), "of_version": 1})

    page.route("**/v1/suggest*", answer_old)
    expect(page.locator("#suggest-of")).to_have_text(re.compile(r"Of answer 1, not yet of \d+\.$"))
    expect(page.locator("#suggest.old")).to_have_css("opacity", "0.6")
    page.screenshot(path=OUT / "old.png", full_page=True)
    page.unroute_all(behavior="wait")  # for an answer that is being replaced
    expect(page.locator("#suggest-of")).to_have_text(of_now)


def check_reasons(page: Page) -> None:
    """Reasons open from the search, a suggestion, a change, the map, and another label."""
    dialog, text = page.locator("#why"), page.locator("#why-text")
    ways = (
        page.locator("#suggest .who button").first,
        page.locator("#changes li", has_not_text="none").locator("button").first,
    )
    for number, button in enumerate(ways):
        button.click()
        expect(text).to_contain_text(" is ")
        page.screenshot(path=OUT / f"why-{number}.png")
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
    given = page.locator("#changes li button").first.inner_text()
    page.locator("#search-node").fill(given)
    page.keyboard.press("Enter")
    expect(text).to_contain_text(f"{given} is ")
    if page.locator("#why-all").is_visible():
        page.locator("#why-all").click()
        expect(page.locator("#why-basis")).to_contain_text("all edges")
    page.locator("#why-more").click()
    expect(page.locator("#why-more")).to_be_hidden()
    assert page.locator("#why-picture circle").count() >= 2
    choice = page.locator("#why-head select")
    other = choice.locator("option").last.inner_text()
    choice.select_option(other)
    expect(text).to_contain_text(f'not "{other}"')
    page.locator("#why-labels button").first.click()
    expect(page.locator("#why-title")).not_to_have_text(f"Why {given}?")
    page.locator("#why-close").click()
    page.locator("#search-node").fill(HOSTILE)
    page.keyboard.press("Enter")
    expect(page.locator("#why-state")).to_contain_text("is not known")
    page.keyboard.press("Escape")
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(text).to_contain_text(" is ")
    page.keyboard.press("Escape")


def check_review(page: Page) -> None:
    """A click on a class says what to look at in it, and a node there why it is of the class."""
    page.locator("#classes button").first.click()
    expect(page.locator("#review-thresholds tbody tr").first).to_contain_text("≥")
    page.screenshot(path=OUT / "review.png")
    first = page.locator("#review-borderline button").first
    name = first.inner_text()
    first.click()
    expect(page.locator("#why-text")).to_contain_text(f"{name} is ")
    page.keyboard.press("Escape")
    page.locator("#review-close").click()
    expect(page.locator("#review")).to_be_hidden()


def check_hover(page: Page) -> None:
    """Point at a place with nodes, and read who is there."""
    box = page.locator("#map").bounding_box()
    assert box is not None
    for share in range(5, 95):
        page.mouse.move(box["x"] + box["width"] * share / 100, box["y"] + box["height"] / 2)
        if page.locator("#tip").is_visible():
            assert re.search(r"-\d+\n", page.locator("#tip").inner_text())
            return
    raise AssertionError("no node shows its name")


def check_looks(address: str, browser: Browser) -> None:
    """Leave pictures of the page, and see that it is as wide as the screen."""
    for name, scheme, width, height in (
        ("light", "light", 1440, 900),
        ("dark", "dark", 1440, 900),
        ("medium", "dark", 1000, 800),
        ("narrow", "light", 390, 844),
        ("tiny", "dark", 320, 640),
    ):
        watched = Watched(browser, color_scheme=scheme, viewport={"width": width, "height": height})
        page = watched.page
        page.goto(address)
        wait_until(page, lambda page=page: canvas_print(page)[0] > 1500, f"{name}: a map is drawn")
        expect(page.locator("#suggest li").first).to_be_visible()
        page.wait_for_timeout(4000)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name}: too wide"
        page.screenshot(path=OUT / f"{name}.png", full_page=True)
        watched.close(address)
    watched = Watched(browser, reduced_motion="reduce")
    page = watched.page
    page.goto(address)
    wait_until(page, lambda: canvas_print(page)[0] > 1500, "a map is drawn without motion")
    watched.close(address)


def check_tokens(browser: Browser, folder: Path) -> None:
    """The page asks for a token, refuses a wrong one, and says what a reader may not do."""
    tokens = folder / "tokens"
    tokens.write_text(f"write {WRITE}\nread {READ}\n")
    tokens.chmod(0o600)
    with serving("--token-file", str(tokens)) as address:
        watched = Watched(browser)
        page = watched.page
        page.goto(address)
        dialog = page.locator("#token")
        expect(dialog).to_be_visible()
        expect(page.locator("#token-value")).to_be_focused()
        page.screenshot(path=OUT / "token.png")
        page.keyboard.type("wrong-token-0123456789")
        page.keyboard.press("Enter")
        expect(page.locator("#token-text.wrong")).to_be_visible()
        page.locator("#token-value").fill(READ)
        page.keyboard.press("Enter")
        expect(page.locator("#connection-text")).to_have_text("Live")
        expect(dialog).to_be_hidden()
        wait_until(page, lambda: page.locator("#suggest li").count() > 0, "there are suggestions")
        page.locator("#other-node").fill("ana-000")
        page.locator("#other-label").fill("research")
        page.keyboard.press("Enter")
        expect(page.locator("#said.wrong")).to_have_text(
            "This token may read, but not label nodes."
        )
        page.evaluate("sessionStorage.clear()")
        page.reload()
        page.locator("#token-value").fill(WRITE)
        page.keyboard.press("Enter")
        page.locator("#other-node").fill("ana-000")
        page.locator("#other-label").fill("research")
        page.keyboard.press("Enter")
        expect(page.locator("#said")).to_have_text("Labelled ana-000 as research.")
        given = {row["node"] for row in ask(address, "/v1/labels", READ)["labels"]}
        assert "ana-000" in given
        watched.close(address, allowed=r"status of 40[13]")


def check_reconnection(browser: Browser) -> None:
    """The page says that the service is gone, and comes back with it."""
    port = free_port()
    watched = Watched(browser)
    page = watched.page
    with serving(port=port) as address:
        page.goto(address)
        expect(page.locator("#connection-text")).to_have_text("Live")
    expect(page.locator("#connection-text")).to_have_text(re.compile(r"^Disconnected since \d"))
    expect(page.locator("#retry")).to_be_visible()
    page.screenshot(path=OUT / "lost.png")
    with serving(port=port) as address:
        if page.locator("#retry").is_visible():
            page.locator("#retry").click()
        expect(page.locator("#connection-text")).to_have_text("Live")
        wait_until(page, lambda: read_count(page, "edges") > 0, "edges are counted again")
        watched.close(address, allowed="ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY")


def post(address: str, path: str, content: Any) -> None:
    """Send something to the service in JSON."""
    body, headers = json.dumps(content).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address.rstrip('/')}{path}", body, headers)
    urllib.request.urlopen(request, timeout=20).close()


def read_percent(page: Page) -> int:
    """Return the estimated accuracy that the page shows."""
    return int(re.findall(r"About (\d+)", page.locator("#accuracy-text").inner_text())[0])


def check_accuracy(browser: Browser, folder: Path) -> None:
    """The estimate of the accuracy falls when labels are wrong on purpose, and the page says so."""
    draw = random.Random(0)
    edges = [(draw.randrange(300), draw.randrange(100) * 3) for _ in range(3000)]
    rows = [{"u": u, "v": v + u % 3} for u, v in edges if u != v + u % 3]

    def give_labels(first: int, last: int, shift: int = 0) -> None:
        labels = [{"node": n, "label": f"group {(n + shift) % 3}"} for n in range(first, last)]
        post(address, "/v1/labels", {"labels": labels})

    with serving(folder=str(folder / "accuracy")) as address:
        watched = Watched(browser, viewport={"width": 1440, "height": 900})
        page = watched.page
        page.goto(address)
        post(address, "/v1/edges", rows)
        for count in (60, 66, 72, 78):  # estimates of ten seconds are one point
            give_labels(0, count)
            page.wait_for_timeout(11_000)
        expect(page.locator("#accuracy-text")).to_contain_text("from 78 labels")
        expect(page.locator("#problems")).to_be_empty()
        expect(page.locator("#accuracy path.line")).to_have_count(1)
        right = read_percent(page)
        give_labels(0, 40, shift=1)
        expect(page.locator("#problems")).to_contain_text("estimated accuracy has fallen")
        wrong = read_percent(page)
        assert wrong < right - 10, (right, wrong)
        page.screenshot(path=OUT / "wrong.png", full_page=True)
        give_labels(0, 40)
        expect(page.locator("#problems")).to_be_empty()
        watched.close(address)


def check() -> None:
    """Start the demo, open the page, check it."""
    chromium = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if chromium is None:
        sys.exit(f"a browser is needed: one of {', '.join(BROWSERS)}")
    OUT.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS.split())
        with serving() as address:
            watched = Watched(browser, viewport={"width": 1440, "height": 900})
            check_live(address, watched)
            check_labelling(address, watched.page)
            check_versions(watched.page)
            check_reasons(watched.page)
            check_review(watched.page)
            check_hover(watched.page)
            watched.close(address, allowed="status of 40[04]")
            check_looks(address, browser)
        check_tokens(browser, Path(folder))
        check_reconnection(browser)
        check_accuracy(browser, Path(folder))
        browser.close()
    print(f"The page is live, labels nodes and asks for tokens; look at {OUT}/*.png")


if __name__ == "__main__":
    check()
