"""The glossary: terms in texts, the entry beside a term, and the page with all entries."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import no_violations
from tests.page.lab.test_lab import open_panel

MARK = "text => { const p = document.createElement('p'); p.append(...atlas.markTerms(text)); return [p.textContent, \
  [...p.querySelectorAll('.term')].map((term) => [term.dataset.term, term.textContent])]; }"


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Each head has a query; heads share no queries.", [["head", "head"], ["query", "query"]]),
        ("The encoder self-attention, not self-attention", [["encoderself", "encoder self-attention"], ["self", None]]),
        ("“my head hurts”: its value", [["value", "value"]]),
        ("headless keyboards, heads-up", []),
        ("<2en> and </s> after ▁dog", [["language", "<2en>"], ["end", "</s>"], ["space", "▁"]]),
        ("Keys of √d_k numbers, d_k", [["key", "Keys"], ["dk", "√d_k"]]),
        ("by ALTI+ (or CKA)", [["alti", "ALTI+"], ["cka", "CKA"]]),
    ],
)
def test_a_text_marks_the_first_use_of_each_term_outside_quotes(open_modules, text, terms) -> None:
    page = open_modules("lab/glossary.js")
    shown, marked = page.evaluate(MARK, text)
    assert shown == text
    assert marked == [[name, word or "self-attention"] for name, word in terms]


def test_a_panel_marks_each_term_once_in_sentences_but_not_in_a_sentences_words(open_modules) -> None:
    page = open_modules("lab/glossary.js")
    page.evaluate("""() => {
      document.body.innerHTML = `<section><p data-terms>A head. <a href="#">key</a></p><p>key</p>
        <table><thead><tr><th data-terms>heads</th><th data-terms>key</th></tr></thead></table></section>`;
      atlas.markPanel(document.body.firstElementChild);
      atlas.markPanel(document.body.firstElementChild);
    }""")
    assert page.locator(".term").all_inner_texts() == ["head", "key"]
    expect(page.locator("th .term")).to_have_text("key")


def test_every_term_and_every_mark_has_one_entry(open_modules) -> None:
    page = open_modules("lab/glossary.js", "glossary/entries.js")
    terms = page.evaluate("Object.keys({ ...atlas.TERMS, ...atlas.MARKS })")
    entries = page.evaluate("Object.values(atlas.ENTRIES).flatMap((group) => Object.keys(group))")
    assert sorted(terms) == sorted(entries) == sorted(set(entries))
    assert page.evaluate("Object.keys(atlas.GROUPS).join() === Object.keys(atlas.ENTRIES).join()")
    drawn = page.evaluate("""Object.values(atlas.ENTRIES).flatMap(Object.entries).map(([name, { text, picture }]) =>
      [name, picture(atlas.EXAMPLE).outerHTML, text.say.trim().split(/\\s+/).length])""")
    for name, picture, words in drawn:
        assert not re.search("NaN|undefined|Infinity", picture), name
        assert 2 <= words <= 26, f"{name}: one sentence"


def open_term(page: Page, term: str) -> None:
    page.locator(f"[data-term={term}]:visible").first.click()
    expect(page.locator(".atlas-term .picture > *").first).to_be_visible()


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 390])
def test_a_term_shows_its_entry_and_leads_to_the_page(app_url, open_app, width) -> None:
    page, requests = open_app(app_url, width=width), []
    page.on("request", lambda request: requests.append(request.url))
    open_panel(page, "Inside", "One query")
    assert not [url for url in requests if "/glossary/" in url], "loaded only when a term is used"
    term = page.locator(".atlas-prose [data-term=query]:visible").first
    open_term(page, "query")
    expect(term).to_have_attribute("aria-expanded", "true")
    entry = page.locator(".atlas-term")
    expect(entry.get_by_role("heading")).to_have_text("Query")
    box = entry.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    no_violations(page, ".atlas-term")
    page.keyboard.press("Escape")
    expect(entry).to_have_count(0)
    expect(term).to_have_attribute("aria-expanded", "false")
    term.press("Enter")
    expect(entry.get_by_role("button", name="Glossary")).to_be_focused()
    page.keyboard.press("Escape")
    expect(term).to_be_focused()
    term.press("Enter")
    page.keyboard.press("Enter")
    expect(page.locator("dialog.atlas-glossary [data-term=query]")).to_be_focused()
    assert "glossary=query" in page.url
    page.keyboard.press("Escape")
    page.wait_for_function("!location.hash.includes('glossary')")


@pytest.mark.long
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_opens_by_a_link_searches_and_walks_by_keys(app_url, open_app, width, dark) -> None:
    page = open_app(f"{app_url}#glossary=rollout", width=width, dark=dark)
    glossary = page.locator("dialog.atlas-glossary")
    expect(glossary.locator("[data-term=rollout]")).to_be_focused()
    expect(glossary.locator("[data-term=attention] .picture svg")).to_be_visible()
    assert page.evaluate("document.querySelector('.atlas-glossary').scrollWidth <= innerWidth")
    no_violations(page, ".atlas-glossary")
    for term, word in (("probability", "In this sentence."), ("entropy", "In papers: Shannon entropy")):
        expect(glossary.locator(f"[data-term={term}]")).to_contain_text(word)
    search = glossary.get_by_role("searchbox")
    search.fill("Papineni")
    expect(glossary.get_by_role("article")).to_have_count(1)
    search.press("ArrowDown")
    expect(glossary.locator("[data-term=bleu]")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(search).to_be_focused()
    search.fill("")
    glossary.get_by_role("button", name="Measures").click()
    expect(glossary.get_by_role("heading", name="Measures")).to_be_in_viewport()
    glossary.get_by_role("button", name="Close the glossary").click()
    expect(glossary).to_be_hidden()
    page.locator(".atlas-title").get_by_role("button", name="Glossary").click()
    expect(glossary.get_by_role("heading", name="Glossary")).to_be_focused()


@pytest.mark.long
def test_the_glossary_speaks_the_visitors_language(app_url, open_app) -> None:
    page = open_app(f"{app_url}#glossary=head", locale="de-DE")
    entry = page.locator("dialog.atlas-glossary [data-term=head]")
    expect(entry.get_by_role("heading")).to_have_text("Kopf")
    expect(entry).to_contain_text("In diesem Satz.")
