"""The tab "Step by step" in a real browser, with a shipped checkpoint: candidates, branches, beams, keys, errors."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.viz.maps.branches import Origin, Tree
from attention_atlas.viz.wire import steps
from tests.page.browser import no_faults, no_violations, screenshot, translate, use_modules
from tests.page.explorer.page import SHOWN

pytestmark = pytest.mark.browser

STEPPER = "document.querySelector('.atlas-stepper')"
SENTENCE = "Ein kleiner Hund rennt über die grüne Wiese."
LONG = "Ein Mann und eine Frau sitzen auf einer Bank im Park, und ein kleines Kind spielt mit einem roten Ball."


def idle(page: Page) -> None:
    page.wait_for_function(f"{STEPPER}?.dataset.opened && {STEPPER}.ariaBusy === 'false'")


@pytest.fixture()
def page(app_url, open_app) -> Page:
    """The app at the first step of a sentence."""
    page = open_app(app_url)
    open_stepper(page, SENTENCE)
    return page


def open_stepper(page: Page, text: str) -> None:
    translate(page, text)
    page.locator("#tab-stepper-button").click()
    page.wait_for_function(
        f"words => {STEPPER}?.querySelector('.sentences .line')?.textContent.replace(/\\s/g, '').includes(words)",
        arg=text.replace(" ", ""),
    )
    idle(page)


def step(page: Page) -> int:
    return int(page.evaluate(f"{STEPPER}.dataset.step"))


def length(page: Page) -> int:
    return page.locator(".atlas-stepper .sentences button.chip").count()


def written(page: Page) -> str:
    return page.locator(".atlas-stepper .sentences .line").nth(1).inner_text()


def act(page: Page, selector: str, nth: int = 0) -> None:
    """Click an element that opens a branch, and wait until the branch is shown."""
    before = page.evaluate(f"{STEPPER}.dataset.opened")
    page.locator(f".atlas-stepper {selector}").nth(nth).click()
    page.wait_for_function(f"before => {STEPPER}.dataset.opened !== before", arg=before)
    idle(page)


@pytest.mark.long
def test_every_panel_of_the_stepper_works(page, shipped_translators):
    translator = shipped_translators["de-en"]
    trace = translator.translate(SENTENCE, "de-en")
    assert step(page) == 0 and length(page) == len(trace.target_ids)

    page.locator(".atlas-stepper [data-move=last]").click()  # to the end
    expect(page.locator(".atlas-stepper")).to_have_attribute("data-step", str(len(trace.target_ids)))
    for _ in range(3):
        page.locator(".atlas-stepper [data-move=back]").click()
    at = len(trace.target_ids) - 3
    expect(page.locator(".atlas-stepper")).to_have_attribute("data-step", str(at))
    candidates = page.locator(".atlas-stepper .candidate .token").all_inner_texts()
    assert candidates[0] == trace.top_tokens[at][0] and len(candidates) == 10
    facts = page.inner_text(".atlas-stepper .next-token .facts")
    assert f"rank {trace.chosen_rank[at]}" in facts
    assert f"spread over {len(translator.tokenizer) - 1:,} tokens" in facts
    others = page.inner_text(".atlas-stepper .candidates .others")
    assert f"all {len(translator.tokenizer) - 10:,} other tokens" in others and others.rstrip().endswith("%")
    screenshot(page, "stepper")
    no_violations(page)

    act(page, ".candidate", 1)  # the second candidate
    assert step(page) == at + 1 and page.locator(".atlas-stepper .tree .branch").count() == 2
    page.keyboard.press("End")
    page.wait_for_function(f"{STEPPER}.querySelector('.counter').textContent.startsWith('Done')")

    page.locator("[data-panel=compare]").click()
    page.wait_for_selector(".atlas-stepper .compared .pair")
    pairs = page.locator(".atlas-stepper .pair")
    assert pairs.count() >= len(trace.target_ids)
    assert all(pairs.nth(i).locator(".same").count() == 2 for i in range(at))
    assert pairs.nth(at).locator(".same").count() == 0
    no_violations(page, ".atlas-stepper")

    page.locator("[data-panel=lens]").click()
    page.wait_for_selector(".atlas-stepper .lens td")
    layers = translator.config.num_decoder_layers
    assert page.locator(".atlas-stepper .lens tbody tr").count() == layers + 1
    no_violations(page, ".atlas-stepper")

    page.locator("[data-panel=beam]").click()
    page.locator(".atlas-stepper .settings [type=submit]").click()
    page.wait_for_selector(".atlas-stepper .node.finished")
    assert page.locator(".atlas-stepper .hypotheses .branch").count() == 4
    no_violations(page, ".atlas-stepper")
    node = ".node.kept:not(.best)"
    prefix = page.locator(f".atlas-stepper {node}").nth(3).get_attribute("aria-label").split(" — ")[0]
    act(page, node, 3)
    assert "".join(written(page).split()).removeprefix("writes").startswith("".join(prefix.split()))

    page.locator("[data-panel=own]").click()
    page.locator(".atlas-stepper .own textarea").fill("A tiny dog crosses the lawn.")
    act(page, ".own [type=submit]")
    assert step(page) == 0 and "Yours: log-probability" in page.inner_text(".atlas-stepper .own")
    no_violations(page, ".atlas-stepper")
    page.locator("#tab-explorer-button").click()
    options = page.locator(".atlas-explorer .field.history option")
    expect(options.filter(has_text=re.compile("tiny|grüne"))).not_to_have_count(0)
    names = options.all_text_contents()
    assert len(names) > 2 and len(set(names)) == len(names), "branches of one sentence are told apart"


def test_a_beam_node_is_marked_unfinished_in_the_explorer(page):
    page.locator("[data-panel=beam]").click()
    page.locator(".atlas-stepper .settings [type=submit]").click()
    page.wait_for_selector(".atlas-stepper .node.kept")
    act(page, ".node.kept", 6)
    page.locator("#tab-explorer-button").click()
    expect(page.locator(SHOWN)).to_contain_text("unfinished", ignore_case=True)


def test_no_key_press_is_lost(app_url, open_app):
    page = open_app(app_url)
    open_stepper(page, LONG)
    total = length(page)
    page.locator(".atlas-stepper .transport").click(position={"x": 2, "y": 2})
    for key, presses, reached in (("ArrowRight", 20, min(20, total)), ("ArrowLeft", 5, min(20, total) - 5)):
        for _ in range(presses):
            page.keyboard.press(key)
            page.wait_for_timeout(15)
        expect(page.locator(".atlas-stepper")).to_have_attribute("data-step", str(reached))
    # Keys pressed while the server decodes after a forced token count, too.
    page.keyboard.press("Home")
    page.keyboard.press("2")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    idle(page)
    expect(page.locator(".atlas-stepper")).to_have_attribute("data-step", str(min(5, length(page))))


@pytest.mark.long
def test_play_advances_and_stops_at_the_end(page):
    page.locator(".atlas-stepper [aria-label=Speed]").select_option(label="4×")
    page.locator(".atlas-stepper [data-move=play]").click()
    page.wait_for_function(f"{STEPPER}.querySelector('.counter').textContent.startsWith('Done')")
    page.wait_for_function(f"{STEPPER}.querySelector('[data-move=play]').ariaLabel === 'Play'")


def test_temperature_changes_the_shown_probabilities_but_not_the_translation(page):
    value, before = page.locator(".atlas-stepper .candidate .value").first, length(page)
    probability = value.inner_text()
    page.locator(".atlas-stepper [aria-label=Temperature]").fill("2")
    expect(value).not_to_have_text(probability)
    assert length(page) == before


def test_bad_input_is_refused_and_hostile_text_is_shown_as_text(page, shipped_translators):
    before, limit = written(page), shipped_translators["de-en"].max_tokens - 1
    page.locator("[data-panel=own]").click()
    for text, words in (("   ", "There is no text"), ("Boot " * 1100, f"the limit is {limit:,} tokens")):
        page.locator(".atlas-stepper .own textarea").fill(text)
        page.locator(".atlas-stepper .own [type=submit]").click()
        expect(page.locator(".atlas-stepper .error")).to_contain_text(words)
        assert written(page) == before
    text = '<img src=x onerror="window.hacked=1"> ${window.hacked=1} {{value}} </s>'
    page.locator(".atlas-stepper .own textarea").fill(text)
    act(page, ".own [type=submit]")
    assert page.evaluate("window.hacked") is None
    assert page.locator(".atlas-stepper .sentences .line").nth(1).locator(".symbol").count() == 1
    # The visitor's text is now the translation in every tab. No link can restore it, so there is none to copy.
    expect(page.locator("#translation-text")).to_contain_text("onerror")
    assert page.locator(".atlas-translation .chip.given").count() > 5
    page.locator(".atlas-translation button.chip").nth(1).click()
    page.locator(".atlas-translation .why").click()
    expect(page.locator("#why-question .chip[aria-pressed=true]")).to_have_count(2)
    expect(page.locator("#why-question").get_by_role("button", name="Copy link")).to_be_hidden()


def test_the_header_and_the_stepper_mark_exactly_the_forced_tokens(page):
    for count, at in enumerate((2, 5), 1):
        page.locator(".atlas-stepper .sentences button.chip").nth(at).click()
        act(page, ".candidate", 1)
        for chips in (".atlas-stepper .sentences button.chip", ".atlas-translation button.chip"):
            expect(page.locator(f"{chips}.given")).to_have_count(count)
            marked = page.locator(chips).evaluate_all("all => all.map((chip) => chip.classList.contains('given'))")
            assert [i for i, is_forced in enumerate(marked) if is_forced] == [2, 5][:count]


@pytest.mark.long
def test_two_visitors_keep_separate_trees(app_url, open_app, page):
    pages = [page, open_app(app_url)]
    open_stepper(pages[1], "Zwei Männer trinken Kaffee.")
    for page in pages:
        act(page, ".candidate", 1)
    act(pages[0], ".candidate", 2)
    for page, branches, word in zip(pages, (3, 2), ("Hund", "Kaffee")):
        assert page.locator(".atlas-stepper .tree .branch").count() == branches
        assert word in page.inner_text(".atlas-stepper .sentences .line")


def test_a_long_branch_is_assembled_from_rows_that_are_sent_late(app_url, open_page, shipped_translators):
    """A branch whose attention is sent some steps at a time equals the same branch sent whole."""
    own = shipped_translators["de-en"].translate(SENTENCE, "de-en")
    forced = shipped_translators["de-en"].trace(SENTENCE, prefix=[*own.target_ids[:3], int(own.top_ids[3, 4])])
    tree, branch = Tree.of(own).add(forced, Origin.FORCED)
    page = open_page(app_url)
    page.locator("#tab-stepper-button").click()
    idle(page)
    use_modules(page, "stepper/path.js")
    for trace, sent in ((forced, branch), (own, tree.branches[0])):
        whole = steps.path_payload(trace, sent)
        late = {"path": {**whole, "rows": None}, "rows": [steps.rows_payload(trace, 0)]}
        assert late["rows"][0]["last"] == len(sent.ids)
        paths = page.evaluate(
            """async ([whole, late]) => {
          const { Path } = atlas, last = new Path(late.path);
          if (last.firstMissing(2, 9) !== 2) throw new Error("it should lack all rows");
          late.rows.forEach((rows) => last.addRows(rows));
          if (last.firstMissing(2, 9) !== null) throw new Error("it should have all rows");
          return [new Path(whole), last].map((path) => {
            const rows = [];
            for (const [kind, { layers, heads }] of Object.entries(path.kinds)) {
              if (kind === "encoder_self") continue;
              for (let layer = 0; layer < layers; layer++) for (let head = 0; head < heads; head++)
                for (let step = 0; step < path.length; step++) rows.push(...path.row(kind, layer, head, step));
            }
            return { rows, steps: path.steps, length: path.length, read: path.read };
          });
        }""",
            [whole, late],
        )
        whole_rows, sent_late = (path.pop("rows") for path in paths)
        assert whole_rows == sent_late
        assert paths[0] == paths[1] and paths[0]["length"] == len(sent.ids)


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        (1280, False),
        (390, True),
        pytest.param(1280, True, marks=pytest.mark.endure),
        pytest.param(390, False, marks=pytest.mark.endure),
    ],
)
def test_the_page_and_the_stepper_fit_the_window(app_url, open_app, width, dark):
    page = open_app(app_url, width=width, dark=dark)
    no_faults(page, ".atlas-translation", name=f"first-{'dark' if dark else 'light'}-{width}")
    page.get_by_role("tab", name="Step by step").click()
    idle(page)
    no_faults(page, ".atlas-stepper", name=f"stepper-{'dark' if dark else 'light'}-{width}")
    assert page.evaluate("""() => {
      const frame = [...document.querySelectorAll('.atlas-stepper .mark')].find((one) => !one.hidden);
      const [inner, outer] = [frame, frame.closest('.scroll')].map((one) => one.getBoundingClientRect());
      const line = parseFloat(getComputedStyle(frame).outlineWidth);
      return outer.left <= inner.left - line && inner.right + line <= outer.right;
    }"""), "the chosen head's frame is whole"


def test_a_recurrent_network_is_stepped_through(app_url, open_app, shipped_translators):
    page = open_app(f"{app_url}#text=Der+Hund+schläft.&direction=de-en&checkpoint=gru-de-en&tab=stepper&step=2")
    expect(page.locator(".atlas-stepper")).to_have_attribute("data-step", "1")
    idle(page)
    translator = shipped_translators["de-en (gru-de-en)"]
    trace = translator.translate("Der Hund schläft.")
    assert length(page) == len(trace.target_ids)
    assert page.locator(".atlas-stepper .candidate .token").all_inner_texts() == list(trace.top_tokens[1])
    strips = page.locator(".atlas-stepper .strip")
    assert [strips.nth(i).is_visible() for i in range(strips.count())] == [False, True, False]
    expect(page.locator(".atlas-stepper .states canvas")).to_have_count(2)
    expect(page.locator(".atlas-stepper [data-panel=lens]")).to_be_hidden()
    act(page, ".candidate", 1)
    assert step(page) == 2 and page.locator(".atlas-stepper .tree .branch").count() == 2
    page.locator("[data-panel=compare]").click()
    expect(page.locator(".atlas-stepper .divergence")).to_have_count(1)
    no_violations(page, ".atlas-stepper")
    page.locator(".atlas-stepper .states").get_by_role("button", name="The stages of this attention").click()
    expect(page.locator("#panel-additive")).to_contain_text("row 3")
    page.locator("#tab-stepper-button").click()
    page.locator(".atlas-stepper .states").get_by_role("button", name="The gates of this step").click()
    expect(page.locator("#panel-gates")).to_contain_text("token 3")
