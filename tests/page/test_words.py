"""The page in languages other than English, in a real browser with that locale."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.model.translators import Translators
from attention_atlas.viz import shell
from attention_atlas.viz.export.standalone import to_html
from attention_atlas.viz.panels import registry
from attention_atlas.viz.words import FOLDER, files, read
from tests.page.browser import no_violations, open_tab, plain_title, submit
from tests.page.lab.test_lab import STRIPS, wait_for_panel

pytestmark = pytest.mark.browser

FIELD = re.compile(r"\{\w+\}")
# Every text and label of the page, visible or not, except tokens, sentences and parts marked as English.
TEXTS = """() => {
  const texts = new Set();
  const skip = ".token, .chip, bdi, math, [lang=en], #translation-text, .source, .example, script, style, text.node";
  const hidden = ".overflow-menu.hide *"; // Gradio's menu of tabs, never seen
  const walk = document.createTreeWalker(document.querySelector('.gradio-container'), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) if (!walk.currentNode.parentElement.closest(skip)) texts.add(walk.currentNode.data.trim());
  for (const node of document.querySelectorAll(`.gradio-container :not(${hidden})`))
    for (const name of ['aria-label', 'title', 'placeholder', 'aria-roledescription', 'alt'])
      if (node.hasAttribute(name)) texts.add(node.getAttribute(name).trim());
  return [...texts]; }"""


LOADED = """(names) => names.every((name) => performance.getEntriesByType("resource").some(
  (entry) => entry.name.endsWith(name) && entry.responseEnd > 0))"""


def english_in(texts: list[str], language: str) -> set[str]:
    """Return the texts that are still English: equal to an English key of this language, or containing a long part."""
    escaped = set()
    for english, text in words(language).items():
        if not re.search("[A-Za-z]{4}", FIELD.sub("", english)) or text == english:
            continue
        whole = re.compile("(.+)".join(map(re.escape, FIELD.split(english))), re.DOTALL)
        pieces = [p for p in FIELD.split(english) if len(p) > 11 and " " in p.strip() and p not in text]
        escaped |= {entry for entry in texts if whole.fullmatch(entry) or any(piece in entry for piece in pieces)}
    return escaped


def words(language: str) -> dict[str, str]:
    """Return the translations of a language by their English; of a text with plural forms, the general one."""
    texts = read(files()[language])
    return {english: text["other"] if isinstance(text, dict) else text for english, text in texts.items()}


def walk(page: Page, table: dict[str, str]) -> list[str]:
    """Open every tab and panel, and return all texts that appear. table: the translations by their English."""
    texts = set()

    def look() -> None:
        texts.update(page.evaluate(TEXTS))

    explorer = page.locator(".atlas-explorer")
    expect(explorer.locator(".detail")).to_be_visible()
    for key in "ltcmhhh":
        explorer.locator(".atlas-map button, .thumbnail").first.press(key)
        look()
    page.keyboard.press("?")
    look()
    page.keyboard.press("Escape")
    no_violations(page, ".atlas-explorer")
    open_tab(page, table["Step by step"])
    choices = page.locator("#stepper .choose-panel button")
    expect(choices.first).to_be_visible()
    for button in choices.all():
        button.click()
        look()
    page.keyboard.press("ArrowRight")
    look()
    for group in registry.TABS:
        open_tab(page, table[group.title.english])
        if group.folded:
            page.locator(f"#{group.name}-fold > summary").click()
        strip = STRIPS[str(group.title)]
        for title in page.locator(f"{strip} .strip [role=tab]:visible").all_inner_texts():
            open_tab(page, title, strip)
            if title == table["Train your own"]:
                continue
            wait_for_panel(page)
            look()
    submit(page, " ")
    expect(page.locator(".atlas-translation .notice.error")).to_be_visible()
    look()
    return sorted(texts)


@pytest.mark.long
def test_no_english_is_left_on_the_german_page(app_url, open_app) -> None:
    german = words("de")
    page = open_app(app_url, locale="de-DE")
    assert page.evaluate("document.documentElement.lang").startswith("de")
    texts = walk(page, german)
    assert len(texts) > 300
    assert english_in(texts, "de") == set()
    assert {german["Translate"], german[plain_title("Embedding")], german[plain_title("Beam search")]} <= set(texts)


def test_a_korean_browser_gets_its_language(app_url, open_app) -> None:
    korean = words("ko")
    page = open_app(app_url, locale="ko-KR")
    assert page.evaluate("document.documentElement.lang").startswith("ko")
    titles = page.locator("#tabs > .tab-wrapper").first.locator("[role=tab]").all_inner_texts()
    assert set(titles) == {korean[title.english] for title, _, _ in shell.TABS}
    expect(page.locator(".overflow-menu:visible")).to_have_count(0)  # Gradio's, which it names in English alone
    texts = page.evaluate(TEXTS)
    assert english_in(texts, "ko") == set()
    assert korean["Details"] in texts


@pytest.mark.long
def test_an_exported_page_is_translated_too(open_page, tiny_translator, tmp_path) -> None:
    path = tmp_path / "export.html"
    path.write_text(to_html(tiny_translator.translate("Der Hund schläft.")), encoding="utf-8")
    page = open_page(path.as_uri(), locale="de-DE")
    expect(page.locator(".detail .main-svg, .detail canvas").first).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "de"
    texts = page.evaluate(TEXTS.replace(".gradio-container", "body"))
    assert len(texts) > 40 and english_in(texts, "de") == set()


def open_and_record(open_page, url: str, locale: str) -> tuple[Page, list[str]]:
    """Open the app. Return the page and the names of the language files that it has requested."""
    page, urls = open_page("about:blank", locale=locale), []
    page.on("request", lambda request: urls.append(request.url))
    page.goto(url)
    page.wait_for_selector("#translation-text", state="attached")
    return page, [url.rpartition("/")[2].partition("?")[0] for url in urls if "/words/" in url]


@pytest.mark.parametrize(
    ("locale", "files_requested", "language"),
    [
        ("fr-CA", ["fr.json"], "fr"),
        ("zh-TW", ["zh.json"], "zh"),
        ("zh-HK", [], None),
        ("en-GB", [], None),
        pytest.param("it-IT", [], None, marks=pytest.mark.long),
    ],
)
def test_a_page_requests_only_its_own_language(tiny_url, open_page, locale, files_requested, language) -> None:
    page, names = open_and_record(open_page, tiny_url, locale)
    assert names == files_requested
    title = words(language)["About this model"] if language else "About this model"
    expect(page.locator(".atlas-translation .about h2")).to_have_text(title)
    assert page.evaluate("document.documentElement.lang").startswith(language or "en")


def test_a_new_file_is_a_new_language(tmp_path, monkeypatch, serve, tiny_translator, open_page) -> None:
    """It translates Gradio's labels and the page's own; texts that the file lacks stay English."""
    folder = tmp_path / "words"
    shutil.copytree(FOLDER, folder)
    (folder / "nl.json").write_text(
        json.dumps({"Translate": "Vertaal het", "About this model": "Over dit <b>model</b>"})
    )
    monkeypatch.setattr("attention_atlas.viz.words.FOLDER", folder)
    page, names = open_and_record(open_page, serve(shell.build(Translators([tiny_translator]))), "nl-BE")
    assert names == ["nl.json"]
    expect(page.locator("#translate")).to_have_text("Vertaal het")
    expect(page.locator(".atlas-translation .about h2")).to_have_text("Over dit <b>model</b>")
    expect(page.locator(".atlas-translation .more")).to_have_text("Details")


@pytest.mark.long
def test_nothing_is_drawn_before_its_translations_arrive(tiny_url, open_page) -> None:
    page, delayed = open_page("about:blank", locale="de-DE"), []
    page.route("**/words/de.json*", lambda route: delayed.append(route))
    page.goto(tiny_url)
    page.wait_for_function(LOADED, arg=["explorer/explorer.js", "page/translation.js"])
    roots = page.locator(".atlas-root")
    expect(roots.nth(2)).to_be_attached()
    assert set(roots.evaluate_all("roots => roots.map(root => root.childElementCount)")) == {0}
    delayed.pop().continue_()
    expect(page.locator(".atlas-explorer .detail")).to_be_visible()
    assert english_in(page.evaluate(TEXTS), "de") == set()


def test_the_page_is_english_if_its_translations_cannot_be_loaded(tiny_url, open_page) -> None:
    page = open_page("about:blank", locale="de-DE")
    page.route("**/words/de.json*", lambda route: route.fulfill(status=200, body="<html>not the words</html>"))
    page.goto(tiny_url)
    expect(page.locator(".atlas-translation .about h2")).to_have_text("About this model")
    assert page.evaluate("document.documentElement.lang") == "en"
