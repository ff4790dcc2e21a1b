"""What one sees before the first picture is there: its frame, in its place, and nothing that jumps."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.page.browser import open_tab, screenshot
from viz.ui import tabs

pytestmark = pytest.mark.browser

CELLS = ".atlas-explorer .detail .heatmaplayer image"
# Each shift since the page began (Layout Instability, W3C): the share of the window that moved, times how far; what.
SHIFTS = """() => new Promise((done) => {
  const found = [], box = ({ x, y, width, height }) => [x, y, width, height].map(Math.round).join(' ');
  const name = (node) => node?.id || node?.className || node?.nodeName;
  new PerformanceObserver((list) => found.push(...list.getEntries().map((entry) => [entry.value, entry.sources.map(
    (source) => `${name(source.node)}: ${box(source.previousRect)} -> ${box(source.currentRect)}`)])))
    .observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => done(found), 500); })"""
# The colours in the middle of a picture's cells, as many as the sketch has pixels: red, green, blue, one by one.
PIXELS = """async (selector) => {
  const { width, height } = window.__sketch ||= document.querySelector('.atlas-explorer .detail .sketch');
  let picture = document.querySelector(selector);
  if (picture.tagName === 'image') {
    picture = Object.assign(new Image(), { src: picture.getAttribute('href') });
    await picture.decode();
  }
  const canvas = Object.assign(document.createElement('canvas'), { width: 9 * width, height: 9 * height });
  const context = canvas.getContext('2d');
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height), found = [];
  for (let row = 0; row < height; row++) for (let column = 0; column < width; column++)
    found.push(...data.slice(4 * ((9 * row + 4) * canvas.width + 9 * column + 4)).slice(0, 3));
  return found; }"""
# What stands in the page's HTML, and what takes its place. Words stand as wide as they are, in boxes of their own size.
STANDS = {
    "h1": "#atlas-title h1",
    ".asked > .sentence": "#source-text textarea",
    ".asked > .direction": "#direction .wrap-inner",
    ".asked > u": ".atlas-examples .opens",
    ".asked > i": "#translate",
    ".written span": ".atlas-translation .source",
    ".written b": "#translation-text",
    ".written > :last-child": ".atlas-translation .status",
    ".tabs :first-child": "#tab-explorer-button",
}
WIDE = {".name > p": "#atlas-title p", ".tabs :nth-child(2)": "#tab-stepper-button"}
# The words, their colour, where: a field's are those it holds; a button of tabs names its panel to other eyes, too.
LOOKS = """(node) => {
  const { x, y, width, height } = node.getBoundingClientRect(), { color } = getComputedStyle(node);
  const held = node.matches('textarea') ? node : node.querySelector('input');
  return [(held ? held.value : node.innerText).trim().split('\\n').pop(), color, x, y, width, height]; }"""
# Of all parts but pictures that stand beside their controls.
LEFT = """() => {
  const tab = [...document.querySelectorAll('#tabs > [role=tabpanel]')].find((panel) => panel.offsetParent);
  const beside = innerWidth > 1000 ? '#tab-positions .atlas-frame:has(> .controls) > .content *' : 'none';
  const within = [...tab.querySelectorAll('.atlas-root')].filter((part) => !part.matches(beside));
  const parts = [document.querySelector('#translation .atlas-root'), ...within];
  return parts.filter((part) => part.offsetWidth && part.offsetHeight).map((part) => part.getBoundingClientRect().left);
}"""


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_jumps_while_the_page_opens_and_all_tabs_begin_at_one_edge(app_url, open_page, width) -> None:
    page = open_page(app_url, width=width)
    page.wait_for_selector(CELLS)
    shifts = page.evaluate(SHIFTS)
    assert sum(value for value, _ in shifts) < 0.05, shifts
    edges, seen = {}, len(shifts)
    for title, _, name in tabs.TABS:
        open_tab(page, str(title))
        expect(page.locator("#tabs > [role=tabpanel]:visible .atlas-root:not(:empty)").first).to_be_visible()
        busy = page.locator("#tabs > [role=tabpanel]:visible .atlas-root[aria-busy=true]:visible")
        expect(busy).to_have_count(0, timeout=60_000)
        edges[name] = page.evaluate(LEFT)
        found = page.evaluate(SHIFTS)
        assert sum(value for value, _ in found[seen:]) < 0.05, (name, found[seen:])
        seen = len(found)
    assert all(len(found) > 1 for found in edges.values()), edges
    assert max(map(max, edges.values())) - min(map(min, edges.values())) < 1, edges


def test_nothing_jumps_on_a_phone_while_a_link_opens(app_url, open_page) -> None:
    page = open_page(f"{app_url}#text={TWELVE}&direction=de-en", width=390, height=844)
    expect(page.locator(".atlas-translation .source")).to_have_text(TWELVE)
    expect(page.locator(".atlas-explorer .sentence-lines")).to_contain_text(TWELVE.split()[-2])
    page.wait_for_selector(CELLS)
    shifts = page.evaluate(SHIFTS)
    assert sum(value for value, _ in shifts) < 0.05, shifts


def test_nothing_jumps_on_why_while_another_sentence_is_translated(app_url, open_page) -> None:
    page = open_page(f"{app_url}#text=Guten+Tag.&direction=de-en&tab=why", height=800)
    busy = page.locator("#tab-why .atlas-root[aria-busy=true]:visible")
    expect(page.locator(".why-picture")).to_be_visible()
    expect(busy).to_have_count(0)
    seen = len(page.evaluate(SHIFTS))
    box = page.locator("#source-text textarea")
    box.fill(TWELVE.replace(" hat ", " \nhat "))  # as it may be pasted: one sentence
    box.press("Enter")
    expect(page.locator(".atlas-translation .source")).to_have_text(TWELVE)
    expect(page.locator(".why-picture .coloured")).to_contain_text("Apfel")
    expect(busy).to_have_count(0)
    found = page.evaluate(SHIFTS)[seen:]
    assert sum(value for value, _ in found) < 0.05, found


def test_all_is_there_before_plotly(app_url, open_page) -> None:
    """Plotly.js is held back: the frame, the heads, the labels, the facts and the picture stand; its own then takes the
    place, of the same cells in the same colours."""
    page = open_page("about:blank")
    held = []
    page.route("**/plotly.min.js*", lambda route: held.append(route))
    page.goto(app_url, wait_until="commit")  # a busy page may not be loaded without what is held
    page.wait_for_selector(".atlas-explorer .thumbnail canvas")
    expect(page.locator(".atlas-explorer .axis-label.row").first).to_be_visible()
    expect(page.locator(".atlas-explorer .heading-line")).to_contain_text("Layer")
    sketch = page.locator(".atlas-explorer .detail .sketch")
    box, drawn = sketch.bounding_box(), page.evaluate(PIXELS, ".atlas-explorer .detail .sketch")
    height = page.locator(".atlas-explorer").bounding_box()["height"]
    page.wait_for_function("document.querySelector('script[src*=plotly]')")
    assert height > 400 and page.locator(CELLS).count() == 0 and len(held) == 1
    held[0].continue_()
    page.wait_for_selector(CELLS)
    assert page.locator(".atlas-explorer").bounding_box()["height"] == height
    found = page.locator(CELLS).bounding_box()
    assert all(abs(found[side] - box[side]) <= 1 for side in box), (found, box)
    theirs = page.evaluate(PIXELS, CELLS)
    assert len(drawn) == len(theirs) > 100 and max(abs(a - b) for a, b in zip(drawn, theirs)) <= 2  # of 255


def test_the_frame_of_what_comes_is_there_before_the_scripts(app_url, open_page) -> None:
    page = open_page("about:blank")
    held = []
    page.route("**/atlas/*/explorer/*.js", lambda route: held.append(route))
    page.goto(app_url, wait_until="commit")
    page.wait_for_selector("#translation-text")
    frame = page.locator(".atlas-explorer").bounding_box()
    screenshot(page, "first-sight")
    assert frame["height"] > 400 and page.locator(".atlas-explorer > *").count() == 0
    for route in held:
        route.continue_()
    page.unroute_all()
    page.wait_for_selector(CELLS)
    found = page.locator(".atlas-explorer").bounding_box()
    assert (found["x"], found["y"], found["width"]) == (frame["x"], frame["y"], frame["width"])


@pytest.mark.parametrize(
    ("width", "dark", "locale"),
    [
        pytest.param(1000, False, "en", marks=pytest.mark.long),
        (390, True, "de-DE"),
        pytest.param(768, False, "en", marks=pytest.mark.long),
        pytest.param(1280, False, "en", marks=pytest.mark.long),
        pytest.param(390, True, "en", marks=pytest.mark.long),
    ],
)
def test_the_page_comes_where_its_frame_stood(app_url, open_page, width, dark, locale) -> None:
    """The same words in the same colours and places, before a single script of Gradio's has come; lines that break
    included."""
    page, held, sheets = open_page("about:blank", width=width, dark=dark, locale=locale), [], []
    page.route("**/assets/index-*.js", lambda route: held.append(route))
    page.route("**/assets/together-*.css", lambda route: sheets.append(route))
    with page.expect_request("**/assets/together-*.css"):
        page.goto(f"{app_url}?__theme={'dark' if dark else 'light'}", wait_until="commit")
    page.wait_for_selector(".atlas-shell .tabs", state="attached")
    expect(page.locator(".atlas-shell .tabs")).to_be_hidden()  # no word in English, and no light colour, comes first
    sheets[0].continue_()
    expect(page.locator(".atlas-shell .tabs")).to_be_visible()
    screenshot(page, f"frame-{width}")
    parts = STANDS | WIDE if width > 1200 else STANDS
    stood = {theirs: page.locator(f".atlas-shell {ours}").evaluate(LOOKS) for ours, theirs in parts.items()}
    assert page.locator("#atlas-title").count() == 0 and len(held) == 1 and len(stood["#translation-text"][0]) > 5
    held[0].continue_()
    page.unroute_all()
    page.wait_for_selector(CELLS)
    expect(page.locator(".atlas-shell")).to_have_count(0)
    for name, (text, colour, *box) in stood.items():
        there, theirs, *place = page.locator(name).evaluate(LOOKS)
        assert (text, colour) == (there, theirs), name
        if name in (".atlas-translation .source", "#translation-text"):
            box[2] = place[2]  # of words that are buttons no two letters are kerned
        assert all(abs(ours - its) <= 2 for ours, its in zip(box, place)), (name, box, place)
    assert width < 600 or page.locator(".atlas-explorer").bounding_box()["y"] < 230
    shifts = [(value, parts) for value, parts in page.evaluate(SHIFTS) if "undefined: " not in parts[0]]  # the frame's
    assert sum(value for value, _ in shifts) < 0.05, shifts
    for menu in page.locator(".atlas-title details").all():
        menu.locator("summary").click()
        choices = menu.locator(".choices").bounding_box()
        assert choices["x"] >= 0 and choices["x"] + choices["width"] <= width, (menu, choices)
        menu.locator("summary").press("Escape")


def test_the_frame_is_in_the_visitor_s_words_and_a_link_names_another_sentence(app_url, open_page) -> None:
    page, held = open_page("about:blank", locale="de-DE"), []
    page.route("**/assets/index-*.js", lambda route: held.append(route))
    page.goto(f"{app_url}#text=Guten+Tag.&tab=explorer", wait_until="commit")
    expect(page.locator(".atlas-shell .tabs > :nth-child(2)")).to_have_text("Schritt für Schritt")
    expect(page.locator(".atlas-shell .asked > i")).to_have_text("Übersetzen")
    assert page.locator(".atlas-shell :is(.sentence, .written span, .written b)").all_inner_texts() == [""] * 3
    held[0].continue_()
    page.unroute_all()
    expect(page.locator(".atlas-shell")).to_have_count(0)


def test_the_frame_hides_the_page_while_it_is_being_built(app_url, open_page) -> None:
    """Its fields are there before the translation is drawn, and none of their parts shows through; messages would."""
    page, held = open_page("about:blank"), []
    page.route("**/atlas/*/page/translation.js", lambda route: held.append(route))
    page.goto(app_url, wait_until="commit")
    expect(page.locator("#decoding [data-testid=block-info]")).to_be_attached()
    parts, above = page.evaluate("""() => {
      const height = (node) => Number(getComputedStyle(node).zIndex) || 0;
      const frame = height(document.querySelector('.atlas-shell'));
      const parts = [...document.querySelectorAll('.gradio-container .main.app :not(.toast-wrap)')];
      return [parts.length, parts.filter((node) => height(node) >= frame).map((node) => node.className)]; }""")
    assert parts > 50 and above == []
    for route in held:
        route.continue_()
    page.unroute_all()
    expect(page.locator(".atlas-shell")).to_have_count(0)


def test_what_the_first_view_needs_is_named_at_the_top_of_the_page(app_url, open_page) -> None:
    """No script waits for another one to name it, and Plotly.js for all."""
    page = open_page("about:blank")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(app_url)
    page.wait_for_selector(CELLS)
    named = set(
        page.locator("head link[rel=modulepreload], head link[rel=preload]").evaluate_all(
            "links => links.map((link) => link.href)"
        )
    )
    scripts = [url for url in asked if ".js" in url.rsplit("/", 1)[-1]]
    plotly = next(i for i, url in enumerate(scripts) if "plotly.min.js" in url)
    late = {url for url in scripts[:plotly] if url not in named and "iframeResizer" not in url}
    assert len(named) > 50 and len(late) <= 3, late  # three: what no table of Gradio's names
    assert all("/atlas/" not in url for url in scripts[plotly:]), "scripts of ours that the first view does not need"


# What each of these tabs is about; several parts are one picture.
PICTURES = {
    "Attention": (".atlas-explorer .detail", ".sentence-lines .sheet", ".atlas-explorer .thumbnail"),
    "Step by step": (".atlas-stepper .sentences", ".atlas-stepper .strip canvas"),
    "Why": (".why-picture",),
}
# Of tabs with a strip of their own the picture itself begins as high.
WITHIN = {
    "Heads": (".survey .stage",),
    "Positions": ("#panel-position-table .figure",),
    "Inside": ("#panel-map .pictured",),
}
TWELVE = "Mein kleiner Bruder hat gestern einen roten Apfel gegessen."  # tokens, or some more
# Where what they belong to begins, the first and last pixel of all parts, how many of what they stand in are scrolled.
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
    """At 1280 x 800 more than half of it, whole, of twelve tokens; on a phone it begins there."""
    assert len(shipped_translators["de-en"].translate(TWELVE, "de-en").source_ids) >= 12
    page = open_page(f"{app_url}#text={TWELVE}&direction=de-en", width=width, height=height)
    expect(page.locator(".atlas-translation .source")).to_have_text(TWELVE)
    expect(page.locator(".atlas-explorer .sentence-lines")).to_contain_text(TWELVE.split()[-2])
    for title, parts in [*PICTURES.items(), *(WITHIN.items() if width > 600 else ())]:
        open_tab(page, title)
        for part in parts:
            expect(page.locator(f"{part}:visible").first).to_be_visible()
        busy = page.locator("#tabs > [role=tabpanel]:visible .atlas-root[aria-busy=true]:visible")
        expect(busy).to_have_count(0, timeout=60_000)
        screenshot(page, f"first-{title.lower().replace(' ', '-')}-{width}")
        begins, top, bottom, cut = page.evaluate(SPAN, ", ".join(parts))
        if width < 600:
            assert top < height - 200, (title, top)
        else:
            first = top if title in WITHIN else begins
            assert first <= 230 and bottom <= height and cut == 0, (title, begins, top, bottom, cut)
            assert title in WITHIN or bottom - top >= 0.55 * height, (title, top, bottom)
