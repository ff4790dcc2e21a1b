"""The first view of the page: no layout shifts, early content, and the picture within the first screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.viz import shell
from tests.page.browser import open_tab, screenshot, submit

pytestmark = pytest.mark.browser

TWELVE = "Mein kleiner Bruder hat gestern einen roten Apfel gegessen."  # at least twelve tokens
BUSY = "#tabs > [role=tabpanel]:visible .atlas-root[aria-busy=true]:visible"
CELLS = ".atlas-explorer .detail .plot"
PLOTTED = ".atlas-explorer .detail .heatmaplayer image"
# The colour in the middle of each cell (the canvas has one pixel a cell): red, green, blue, red, ...
PIXELS = """async (selector) => {
  const { width, height } = document.querySelector('.atlas-explorer .detail .plot');
  let picture = document.querySelector(selector);
  if (picture.tagName === 'image') {
    picture = Object.assign(new Image(), { src: picture.getAttribute('href') });
    await picture.decode();
  }
  const canvas = Object.assign(document.createElement('canvas'), { width: 9 * width, height: 9 * height });
  const context = canvas.getContext('2d');
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height), channels = [];
  for (let row = 0; row < height; row++) for (let column = 0; column < width; column++)
    channels.push(...data.slice(4 * ((9 * row + 4) * canvas.width + 9 * column + 4)).slice(0, 3));
  return channels; }"""
# All layout shifts since the page began (W3C Layout Instability): [score, sources]. A score is the share of the window
# that moved, times the distance as a share of the window.
SHIFTS = """() => new Promise((done) => {
  const shifts = [], box = ({ x, y, width, height }) => [x, y, width, height].map(Math.round).join(' ');
  const name = (node) => node?.id || node?.className || node?.nodeName;
  new PerformanceObserver((list) => shifts.push(...list.getEntries().map((entry) => [entry.value, entry.sources.map(
    (source) => `${name(source.node)}: ${box(source.previousRect)} -> ${box(source.currentRect)}`)])))
    .observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => done(shifts), 500); })"""
# The left edges of the visible parts, except pictures that have their controls at the side.
LEFT = """() => {
  const tab = [...document.querySelectorAll('#tabs > [role=tabpanel]')].find((panel) => panel.offsetParent);
  const indented = innerWidth > 1000 ? '[data-group=positions] > .atlas-frame:has(> .controls) > .content *' : 'none';
  const within = [...tab.querySelectorAll('.atlas-root')].filter((part) => !part.matches(indented));
  const above = ['#tabs > .tab-wrapper', '#translation .atlas-root'].map((name) => document.querySelector(name));
  const parts = [...above, ...within];
  return parts.filter((part) => part.offsetWidth && part.offsetHeight).map((part) => part.getBoundingClientRect().left);
}"""


def open_twelve(open_page, url: str, **options) -> Page:
    """Open the link of a sentence of twelve tokens, and wait until it is drawn."""
    page = open_page(f"{url}#text={TWELVE}&direction=de-en", **options)
    expect(page.locator(".atlas-translation .source")).to_have_text(TWELVE)
    expect(page.locator(".atlas-explorer .sentence-lines")).to_contain_text(TWELVE.split()[-2])
    return page


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_jumps_while_the_page_opens_and_all_tabs_begin_at_one_edge(app_url, open_page, width) -> None:
    page = open_page(app_url, width=width)
    page.wait_for_selector(CELLS)
    shifts = page.evaluate(SHIFTS)
    assert sum(value for value, _ in shifts) < 0.05, shifts
    edges, seen = {}, len(shifts)
    for title, _, name in shell.TABS:
        open_tab(page, str(title))
        expect(page.locator("#tabs > [role=tabpanel]:visible .atlas-root:not(:empty)").first).to_be_visible()
        expect(page.locator(BUSY)).to_have_count(0, timeout=60_000)
        edges[name] = page.evaluate(LEFT)
        shifts = page.evaluate(SHIFTS)
        assert sum(value for value, _ in shifts[seen:]) < 0.05, (name, shifts[seen:])
        seen = len(shifts)
    assert all(len(lefts) > 1 for lefts in edges.values()), edges
    assert max(map(max, edges.values())) - min(map(min, edges.values())) < 1, edges


def test_nothing_jumps_on_a_phone_while_a_link_opens(app_url, open_page) -> None:
    page = open_twelve(open_page, app_url, width=390, height=844)
    page.wait_for_selector(CELLS)
    shifts = page.evaluate(SHIFTS)
    assert sum(value for value, _ in shifts) < 0.05, shifts


def test_nothing_jumps_on_why_while_another_sentence_is_translated(app_url, open_page) -> None:
    page = open_page(f"{app_url}#text=Guten+Tag.&direction=de-en&tab=why", height=800)
    expect(page.locator(".why-picture")).to_be_visible()
    expect(page.locator(BUSY)).to_have_count(0)
    seen = len(page.evaluate(SHIFTS))
    submit(page, TWELVE.replace(" hat ", " \nhat "))  # pasted with a line break: still one sentence
    expect(page.locator(".atlas-translation .source")).to_have_text(TWELVE)
    expect(page.locator(".why-picture .coloured")).to_contain_text("Apfel")
    expect(page.locator(BUSY)).to_have_count(0)
    shifts = page.evaluate(SHIFTS)[seen:]
    assert sum(value for value, _ in shifts) < 0.05, shifts


def test_plotly_draws_the_map_that_a_canvas_shows_before(app_url, open_page) -> None:
    """The explorer is complete while Plotly.js is delayed; Plotly then draws the same cells in the same colours."""
    page = open_page("about:blank")
    delayed = []
    page.route("**/plotly.min.js*", lambda route: delayed.append(route))
    page.goto(app_url, wait_until="commit")  # the load event may wait for the delayed script
    page.wait_for_selector(".atlas-explorer .thumbnail canvas")
    expect(page.locator(".atlas-explorer .axis-label.row").first).to_be_visible()
    expect(page.locator(".atlas-explorer .heading-line")).to_contain_text("Layer")
    box, canvas = page.locator(CELLS).bounding_box(), page.evaluate(PIXELS, CELLS)
    height = page.locator(".atlas-explorer").bounding_box()["height"]
    page.wait_for_function("document.querySelector('script[src*=plotly]')")
    assert height > 400 and page.locator(PLOTTED).count() == 0 and len(delayed) == 1
    delayed[0].continue_()
    page.wait_for_selector(PLOTTED)
    assert page.locator(".atlas-explorer").bounding_box()["height"] == height
    plot_box = page.locator(PLOTTED).bounding_box()
    assert all(abs(plot_box[side] - box[side]) <= 1 for side in box), (plot_box, box)
    plotted = page.evaluate(PIXELS, PLOTTED)
    assert len(canvas) == len(plotted) > 100 and max(abs(a - b) for a, b in zip(canvas, plotted)) <= 2  # of 255


def test_the_explorers_space_is_reserved_before_its_scripts_arrive(app_url, open_page) -> None:
    page = open_page("about:blank")
    delayed = []
    page.route("**/atlas/*/explorer/*.js", lambda route: delayed.append(route))
    page.goto(app_url, wait_until="commit")
    page.wait_for_selector("#translation-text", state="attached")
    frame = page.locator(".atlas-explorer").bounding_box()
    screenshot(page, "first-sight")
    assert frame["height"] > 400 and page.locator(".atlas-explorer > *").count() == 0
    for route in delayed:
        route.continue_()
    page.unroute_all()
    page.wait_for_selector(CELLS)
    filled = page.locator(".atlas-explorer").bounding_box()
    assert (filled["x"], filled["y"], filled["width"]) == (frame["x"], frame["y"], frame["width"])


def test_the_modules_of_the_first_view_are_preloaded(app_url, open_page) -> None:
    """No module waits until another imports it, and Plotly.js is requested after all of them."""
    page = open_page("about:blank")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(app_url)
    page.wait_for_selector(PLOTTED)
    links = page.locator("head link[rel=modulepreload]").evaluate_all("links => links.map((link) => link.href)")
    named = {url for url in links if "/atlas/" in url}
    scripts = [url for url in requests if "/atlas/" in url and url.endswith(".js")]
    plotly = next(i for i, url in enumerate(scripts) if "plotly.min.js" in url)
    assert len(named) > 40 and set(scripts[:plotly]) <= named
    assert scripts[plotly + 1 :] == [], "scripts that the first view does not need"


# The picture of each tab; it may have several parts.
PICTURES = {
    "Attention": (".atlas-explorer .detail", ".sentence-lines .sheet", ".atlas-explorer .thumbnail"),
    "Step by step": (".atlas-stepper .sentences", ".atlas-stepper .strip canvas"),
    "Why": (".why-picture",),
}
# Tabs with a strip of panels: their picture must begin as high.
WITHIN = {
    "More": (".survey .stage",),
    "Table": ("#panel-position-table .figure",),
    "Inside": ("#panel-map .inside .top", "#panel-map .scene"),
}
# The top of the parts' root, the top and bottom of all parts, and how many of their containers scroll sideways.
SPAN = """(selectors) => {
  scrollTo(0, 0);
  const parts = [...document.querySelectorAll(selectors)].filter((part) => part.getClientRects()[0]);
  const boxes = parts.map((part) => part.getBoundingClientRect());
  const around = new Set(parts.map((part) => part.closest(".scroll")).filter(Boolean));
  const cut = [...around].filter((box) => box.scrollWidth > box.clientWidth + 1).length;
  const whole = parts[0].closest(".atlas-root").getBoundingClientRect();
  return [whole.top, Math.min(...boxes.map((box) => box.top)), Math.max(...boxes.map((box) => box.bottom)), cut]; }"""


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_picture_has_the_first_screen(app_url, open_page, shipped_translators, width, height) -> None:
    """At 1280 x 800 a picture of twelve tokens is whole and fills half of the screen; on a phone it begins there."""
    assert len(shipped_translators["de-en"].translate(TWELVE, "de-en").source_ids) >= 12
    page = open_twelve(open_page, app_url, width=width, height=height)
    for title, parts in [*PICTURES.items(), *(WITHIN.items() if width > 600 else ())]:
        open_tab(page, title, "#more-tabs" if title == "Table" else "#tabs")
        for part in parts:
            expect(page.locator(f"{part}:visible").first).to_be_visible()
        expect(page.locator(BUSY)).to_have_count(0, timeout=60_000)
        screenshot(page, f"first-{title.lower().replace(' ', '-')}-{width}")
        begins, top, bottom, cut = page.evaluate(SPAN, ", ".join(parts))
        if width < 600:
            assert top < height - 200, (title, top)
        else:
            first = top if title in WITHIN else begins
            highest = 270 if title == "Inside" else 230  # the picture has a bar of its own
            assert first <= highest and bottom <= height and cut == 0, (title, begins, top, bottom, cut)
            assert title in WITHIN or bottom - top >= 0.55 * height, (title, top, bottom)
