"""What the browser tests do to a page: pictures to look at, and what axe-core finds."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from axe_playwright_python.base import AXE_FILE_PATH
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Error, Locator, Page, Request, Route

from attention_atlas.viz.assets import WEB
from tests import ROOT

SCREENSHOTS = ROOT / "screenshots"
# The rule left out: Gradio's footer says "Settings" twice, in an icon and beside it. Of rules that hold, nothing is
# listed; no style sheet is fetched again, which only an experimental rule would read. What hidden tabs and panels hold
# is put aside for as long as axe looks, which would else spend most of its time on styles that nobody sees: each into a
# fragment, where it has a parent, and what comes meanwhile is not lost.
AXE = """async ([context, all, colours]) => {
  const hidden = all ? [] : [...document.querySelectorAll("[role=tabpanel], .atlas-panel")].filter((one) =>
    !one.offsetParent);
  const aside = hidden.map((one) => {
    const kept = new DocumentFragment();
    kept.append(...one.childNodes);
    return [one, kept];
  });
  try {
    const rules = colours ? { runOnly: ["color-contrast", "link-in-text-block"] }
      : { rules: { "image-redundant-alt": { enabled: false } } };
    return (await axe.run(context || document, { ...rules, resultTypes: ["violations"], preload: false })).violations;
  } finally {
    for (const [one, kept] of aside) if (!one.hasChildNodes()) one.append(kept);
  }
}"""

# Most of axe's time goes into what it does again and again: it parses the colours of an element's surroundings anew for
# each word, and looks up the fields of each colour, compiled for old browsers, in a WeakMap. Here a colour is parsed
# once, and a field stands on its object.
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
    has(one) {{ return this.field in one; }}
    get(one) {{ return one[this.field]; }}
    set(one, value) {{ one[this.field] = value; return this; }}
    add(one) {{ return this.set(one, true); }}
  }}
  return {{ WeakMap: Fields, WeakSet: Fields }};
}})());"""


# What Gradio tells the console when a page is left or loaded anew in the middle of a request.
CUT_OFF = ("AbortError: signal is aborted", "Unexpected error Connection errored out")
# Of a page whose test says so, `outlives`: its server is gone or not there yet, or another is asked for its answers.
ANOTHER = ("Failed to load resource: the server responded with a status of 404", "Response")
GONE = (
    *("Unexpected error Server stopped", "Failed to load resource: net::ERR_", "TypeError: network error"),
    "Failed to load resource: the server responded with a status of 503",
    *(*ANOTHER, *CUT_OFF),
)
EMPTY = "http://127.0.0.1:1/"  # where load_modules() has a page; nothing is asked of a network
MODULES = """async (names) => {
  const own = document.querySelector("link[rel=modulepreload][href^='atlas/']")?.getAttribute("href");
  const web = new URL(own?.match(/atlas\\/[0-9a-f]+\\//)[0] ?? "", document.baseURI);
  window.atlas = Object.assign({}, ...(await Promise.all(names.map((name) => import(new URL(name, web))))));
}"""


def use_modules(page: Page, *names: str) -> None:
    """Give a page's `atlas` what these modules of viz/web/ export: the page's own ones, which run once."""
    page.evaluate(MODULES, names)


def load_modules(page: Page, *names: str) -> None:
    """Open an empty page with these modules of viz/web/ alone, and what they import."""

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
    """With `SCREENSHOTS=1 make test-all`, leave a picture in the ignored folder screenshots/, for a person to see."""
    if os.environ.get("SCREENSHOTS"):
        SCREENSHOTS.mkdir(exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def open_tab(page: Page, title: str, group: str = "#tabs") -> None:
    """Open a tab of this group by its title, also one that is marked as unavailable and then says why."""
    strip = page.locator(f"{group} > :is(.tab-wrapper, .strip)")
    tab = strip.get_by_role("tab", name=title, exact=True)
    tab.click(force=tab.get_attribute("aria-disabled") == "true")


def spaced(number: int) -> str:
    """As the page writes it in English."""
    return f"{number:,}"


def pick_example(page: Page, number: int) -> None:
    """Translate the example with this number, from 0, of the menu."""
    page.locator(".atlas-examples .opens").click()
    page.locator(".atlas-examples .example").nth(number).click()


def open_details(page: Page) -> None:
    """How the translation came about, the way it is decoded, and what the model is."""
    button = page.locator(".atlas-translation .more")
    if button.get_attribute("aria-expanded") == "false":
        button.click()


def no_violations(
    page: Page, part: str | Locator | None = None, *, hidden: bool = False, colours: bool = False
) -> None:
    """Fail on what axe-core finds wrong with the page, or the part of it that a selector or a locator names.

    hidden: among all that hidden panels hold, where an id could stand a second time. colours: by the rules alone that a
    page which has turned dark or light could break.
    """
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(content=LEAN_AXE.format(axe=AXE_FILE_PATH.read_text(encoding="utf-8")))
    found = page.evaluate(AXE, [part.element_handle() if isinstance(part, Locator) else part, hidden, colours])
    assert not found, json.dumps(found, indent=1)[:3000]


class Pages:
    """Pages of one browser, each used again by a later test that asks for the same kind of browser.

    A page that has shown the app before opens it in a quarter of the processor's time, because its process still holds
    the compiled scripts. In between it is empty, and so is what it stored; and a language, permissions and touches,
    which Playwright knows only of a context, it has from one test to the next only.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._idle: dict[str, list[Page]] = {}

    @contextmanager
    def one(self, *, width: int, height: int, dark: bool, options: dict) -> Iterator[Page]:
        """A page of this size, which takes touches where it is narrow, for as long as the context lasts. options: of
        Playwright's browser context; with has_touch, Playwright itself can tap."""
        kind = {name: value for name, value in options.items() if name not in ("locale", "permissions")}
        idle = self._idle.setdefault(json.dumps(kind, sort_keys=True), [])
        page = idle.pop() if idle else self._browser.new_context(**kind).new_page()
        page.outlives = False  # of this test
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.context.grant_permissions(options.get("permissions", []))
        emulation = page.context.new_cdp_session(page)
        if "has_touch" not in options:  # as Playwright does it, here and below
            emulation.send("Emulation.setTouchEmulationEnabled", {"enabled": width < 600})
        if "locale" in options:
            emulation.send("Emulation.setLocaleOverride", {"locale": options["locale"]})
            emulation.send("Emulation.setUserAgentOverride", {"userAgent": "", "acceptLanguage": options["locale"]})
        yield page  # after an error in between, it is not used again
        emulation.detach()
        page.context.clear_permissions()
        for other in page.context.pages:
            if other is not page:
                other.close()
        page.evaluate("() => { try { localStorage.clear(); sessionStorage.clear(); } catch { /* no page of ours */ } }")
        page.context.clear_cookies()
        page.unroute_all()
        page.goto("about:blank")
        idle.append(page)


@contextmanager
def watched(page: Page, problems: list[str]) -> Iterator[None]:
    """Write down console errors, page errors, dialogs and requests to other hosts, as long as the context lasts."""
    cut_off: list[str] = []
    loads: list[Page] = []

    def console(message: ConsoleMessage) -> None:
        if message.type != "error" or (page.outlives and message.text.startswith(GONE)):
            return
        if message.location.get("url", "").endswith("/gradio_api/mcp/schema"):
            return  # Gradio's page on the API asks for tools, whether or not the package for them is installed
        (cut_off if message.text.startswith(CUT_OFF) else problems).append(f"console: {message.text}")

    def failed(error: Error) -> None:
        problems.append(f"page error: {error}")

    def asked(request: Request) -> None:
        if is_foreign(request.url):
            problems.append(f"request to {request.url}")

    def opened(dialog: Dialog) -> None:
        problems.append(f"a dialog opened: {dialog.message}")
        dialog.dismiss()

    def loaded(page: Page) -> None:
        loads.append(page)

    listeners = {
        "console": console,
        "pageerror": failed,
        "request": asked,
        "dialog": opened,
        "domcontentloaded": loaded,
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    yield
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    if len(loads) < 2:  # one page, which nothing had cause to cut off
        problems.extend(cut_off)


def is_foreign(url: str) -> bool:
    """Whether a request leaves this machine."""
    return not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "about:"))


def settle(page: Page) -> None:
    """Wait until nothing that was asked is under way: of one thing another may follow, so for a second."""
    page.evaluate("new PerformanceObserver(() => (window.last = performance.now())).observe({ type: 'resource' })")
    page.wait_for_function(
        "() => !document.querySelector('[aria-busy=true]') && performance.now() - (window.last ?? 0) > 1000"
    )
