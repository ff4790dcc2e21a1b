"""Helpers of the browser tests: open tabs, take screenshots, run axe-core, reuse pages and watch them for errors."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from axe_playwright_python.base import AXE_FILE_PATH
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Locator, Page, Request, Route, expect

from attention_atlas.viz.assets import WEB
from bench.page.stage import LOCALE
from tests import ROOT

SCREENSHOTS = ROOT / "screenshots"
CLIPBOARD = {"permissions": ["clipboard-read", "clipboard-write"]}  # options of open_page
# How many elements the page has that can run or load something. Hostile text must not add any.
ELEMENTS = "document.querySelectorAll('script, iframe, object, embed, base, form').length"
FIELD = "#source-text textarea"  # where a visitor types
# Run axe-core. One rule is disabled, because Gradio's footer repeats "Settings" in an icon's alternative text. Style
# sheets are not preloaded, because only an experimental rule reads them. Meanwhile the content of hidden tabs and
# panels, on which axe would spend most of its time, is moved into fragments, which still accept later additions.
AXE = """async ([context, all, colours]) => {
  const hidden = all ? [] : [...document.querySelectorAll("[role=tabpanel], .atlas-panel")].filter((panel) =>
    !panel.offsetParent);
  const aside = hidden.map((panel) => {
    const fragment = new DocumentFragment();
    fragment.append(...panel.childNodes);
    return [panel, fragment];
  });
  try {
    const rules = colours ? { runOnly: ["color-contrast", "link-in-text-block"] }
      : { rules: { "image-redundant-alt": { enabled: false } } };
    return (await axe.run(context || document, { ...rules, resultTypes: ["violations"], preload: false })).violations;
  } finally {
    for (const [panel, fragment] of aside) if (!panel.hasChildNodes()) panel.append(fragment);
  }
}"""

# axe-core with its two slowest parts replaced. It parses the colours around an element again for each word, and keeps
# private fields in a WeakMap (it is compiled for old browsers). Here each colour is parsed once, and a field is a
# symbol property of its object.
LEAN_AXE = """(({{ WeakMap, WeakSet }}) => {{
  {axe}
  const known = new Map(), colour = axe.commons.color.Color.prototype, parse = colour.parseString;
  colour.parseString = function (text) {{
    if (!known.has(text)) known.set(text, (({{ r, g, b, alpha }}) => ({{ r, g, b, alpha }}))(parse.call(this, text)));
    return Object.assign(this, known.get(text));
  }};
}})((() => {{
  class Fields {{
    field = Symbol();
    has(owner) {{ return this.field in owner; }}
    get(owner) {{ return owner[this.field]; }}
    set(owner, value) {{ owner[this.field] = value; return this; }}
    add(owner) {{ return this.set(owner, true); }}
  }}
  return {{ WeakMap: Fields, WeakSet: Fields }};
}})());"""


PAIR = re.compile(r'\[say\("(.+?)"\), say\("(.+?)"\)\]')  # of a technical title and its plain one

# Console errors that Gradio writes when a page is left or reloaded during a request.
CUT_OFF = ("AbortError: signal is aborted", "Unexpected error Connection errored out")
# Console errors that are ignored for a page with `outlives = True`: its server is stopped, or replaced by another one.
ANOTHER = ("Failed to load resource: the server responded with a status of 404", "Response")
GONE = (
    *("Unexpected error Server stopped", "Failed to load resource: net::ERR_", "TypeError: network error"),
    "Failed to load resource: the server responded with a status of 503",
    *(*ANOTHER, *CUT_OFF),
)
# How the address of a request begins that does not leave this machine.
LOCAL = ("http://127.0.0.1:", "ws://127.0.0.1:", "file:", "data:", "blob:", "about:")
EMPTY = "http://127.0.0.1:1/"  # the address of load_modules(), which answers all of its requests itself
MODULES = """async (names) => {
  const preload = document.querySelector("link[rel=modulepreload][href^='atlas/']")?.getAttribute("href");
  const web = new URL(preload?.match(/atlas\\/[0-9a-f]+\\//)[0] ?? "", document.baseURI);
  window.atlas = Object.assign({}, ...(await Promise.all(names.map((name) => import(new URL(name, web))))));
}"""


def use_modules(page: Page, *names: str) -> None:
    """Import modules of viz/web/ by the page's own addresses, and merge their exports into `window.atlas`."""
    page.evaluate(MODULES, names)


def load_modules(page: Page, *names: str) -> None:
    """Open an empty page with only these modules of viz/web/ and their imports, as `window.atlas`."""

    def answer(route: Route) -> None:
        name = route.request.url.removeprefix(EMPTY)
        kind = "text/javascript" if name else "text/html"
        if name and not (WEB / name).is_file():
            route.fulfill(status=404)
            return
        route.fulfill(body=(WEB / name).read_text(encoding="utf-8") if name else "<!doctype html>", content_type=kind)

    page.route(f"{EMPTY}**", answer)
    page.goto(EMPTY)
    use_modules(page, *names)


def screenshot(page: Page, name: str) -> None:
    """Save a picture of the page in screenshots/ (ignored by git) if the environment variable SCREENSHOTS is set."""
    if os.environ.get("SCREENSHOTS"):
        SCREENSHOTS.mkdir(exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def plain_title(title: str) -> str:
    """Return what the page calls this title by default, in its plain wording."""
    return dict(PAIR.findall((WEB / "core/wording.js").read_text(encoding="utf-8"))).get(title, title)


def open_tab(page: Page, title: str, group: str = "#tabs") -> None:
    """Open a tab of this group by its technical title."""
    strip = page.locator(f"{group} > :is(.tab-wrapper, .strip-box)")
    strip.get_by_role("tab", name=plain_title(title), exact=True).click()


def open_more(page: Page, title: str) -> None:
    """Open a panel of the tab "More" by its title."""
    open_tab(page, "More")
    open_tab(page, title, "#more-tabs")


def submit(page: Page, text: str) -> None:
    """Type a text into the page's field, and press Enter."""
    page.locator(FIELD).fill(text)
    page.locator(FIELD).press("Enter")


def translate(page: Page, text: str) -> None:
    """Submit a text, and wait until the header shows its translation."""
    submit(page, text)
    expect(page.locator(".atlas-translation .source")).to_have_text(text)


def choose_direction(page: Page, name: str) -> None:
    page.locator("#direction input").click()
    page.get_by_role("option", name=name, exact=True).click()


def save_file(button: Locator) -> Path:
    """Press a button that saves a file, and return the file's path."""
    with button.page.expect_download() as started:
        button.press("Enter")
    return started.value.path()


def upload_json(part: Locator, content: object) -> None:
    """Choose a file with this content, bytes or what is written as JSON, in the file field of a part of the page."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    part.locator("input[type=file]").set_input_files({"name": "file.json", "mimeType": "text/json", "buffer": data})


def pick_example(page: Page, number: int) -> None:
    """Translate an example of the menu by its index, from 0."""
    page.locator(".atlas-examples .opens").click()
    page.locator(".atlas-examples .example").nth(number).click()


def no_violations(
    page: Page, part: str | Locator | None = None, *, hidden: bool = False, colours: bool = False
) -> None:
    """Fail if axe-core reports a violation on the page, or in the part that a selector or a locator names.

    hidden: check the content of hidden panels, too, where an id could be repeated. colours: apply only the rules on
    colours, which may break when a page turns dark or light.
    """
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(content=LEAN_AXE.format(axe=AXE_FILE_PATH.read_text(encoding="utf-8")))
    violations = page.evaluate(AXE, [part.element_handle() if isinstance(part, Locator) else part, hidden, colours])
    assert not violations, json.dumps(violations, indent=1)[:3000]


def no_faults(page: Page, part: str | Locator | None = None, *, name: str) -> None:
    """Save a picture of the page, and fail if it is wider than the window or axe-core reports a violation."""
    screenshot(page, name)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the window"
    no_violations(page, part)


class Pages:
    """A pool of one browser's pages, each reused by later tests with the same context options.

    A reused page opens the app in a quarter of the processor time, because its process still holds the compiled
    scripts. Between tests it is blank, its storage is empty, and its language, permissions and touch emulation, which
    Playwright can only set for a whole context, are reset.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._idle: dict[str, list[Page]] = {}

    @contextmanager
    def borrow(self, *, width: int, height: int, dark: bool, options: dict) -> Iterator[Page]:
        """Lend a page of this size, with touch emulation if it is narrower than 600 pixels.

        options: of Playwright's browser context; `has_touch` is needed for Playwright's own `tap`.
        """
        kind = {name: value for name, value in options.items() if name not in ("locale", "permissions")}
        idle = self._idle.setdefault(json.dumps(kind, sort_keys=True), [])
        page = idle.pop() if idle else self._browser.new_context(**kind).new_page()
        page.outlives = False
        page.set_viewport_size({"width": width, "height": height})
        page.mouse.move(0, 0)  # the last test may have left it outside this window, where the wheel scrolls nothing
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.context.grant_permissions(options.get("permissions", []))
        emulation = page.context.new_cdp_session(page)
        if "has_touch" not in options:  # emulate touch and locale with the commands that Playwright itself sends
            emulation.send("Emulation.setTouchEmulationEnabled", {"enabled": width < 600})
        locale = options.get("locale", LOCALE)
        emulation.send("Emulation.setLocaleOverride", {"locale": locale})
        emulation.send("Emulation.setUserAgentOverride", {"userAgent": "", "acceptLanguage": locale})
        yield page  # after an exception the page is not returned to the pool
        emulation.detach()
        page.context.clear_permissions()
        for opened in page.context.pages:
            if opened is not page:
                opened.close()
        page.evaluate("() => { try { localStorage.clear(); sessionStorage.clear(); } catch { /* no page of ours */ } }")
        page.context.clear_cookies()
        page.unroute_all()
        page.goto("about:blank")
        idle.append(page)


@contextmanager
def watched(page: Page, problems: list[str]) -> Iterator[None]:
    """Record console errors, page errors, dialogs and requests to other hosts while the context lasts."""
    cut_off: list[str] = []
    loads: list[Page] = []

    def console(message: ConsoleMessage) -> None:
        if message.type != "error" or (page.outlives and message.text.startswith(GONE)):
            return
        if message.location.get("url", "").endswith("/gradio_api/mcp/schema"):
            return  # Gradio's page on the API asks for tools, whether or not the package for them is installed
        (cut_off if message.text.startswith(CUT_OFF) else problems).append(f"console: {message.text}")

    def requested(request: Request) -> None:
        if not request.url.startswith(LOCAL):
            problems.append(f"request to {request.url}")

    def opened(dialog: Dialog) -> None:
        problems.append(f"a dialog opened: {dialog.message}")
        dialog.dismiss()

    listeners = {
        "console": console,
        "pageerror": lambda error: problems.append(f"page error: {error}"),
        "request": requested,
        "dialog": opened,
        "domcontentloaded": lambda loaded: loads.append(loaded),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    yield
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    if len(loads) < 2:  # without a second load nothing explains a request that was cut off
        problems.extend(cut_off)


def settle(page: Page) -> None:
    """Wait until no part is busy and no request has ended for a second (an answer may lead to another question)."""
    page.evaluate("new PerformanceObserver(() => (window.last = performance.now())).observe({ type: 'resource' })")
    page.wait_for_function(
        "() => !document.querySelector('[aria-busy=true]') && performance.now() - (window.last ?? 0) > 1000"
    )
