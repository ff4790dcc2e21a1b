"""The panel "Does it hold?" in a real browser: faithfulness over many sentences, which also orders the table's rows."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from attention_atlas.model.analysis.why import faithfulness
from attention_atlas.model.analysis.why.methods import METHODS
from tests.page.browser import no_faults, plain_title
from tests.page.lab.test_lab import open_panel

pytestmark = pytest.mark.browser


@pytest.mark.long
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_results_over_many_sentences_are_drawn_and_order_the_rows(
    open_page, app_url, shipped_translators, width, dark
) -> None:
    translator = next(iter(shipped_translators.values()))
    results = faithfulness.load_faithfulness(translator.folder)
    page = open_page(app_url, width=width, dark=dark)
    panel = open_panel(page, "Why", "Does it hold?")
    expect(panel.get_by_role("img", name="How well each row agrees")).to_be_visible()
    expect(panel.get_by_role("img", name="What remains of each row")).to_be_visible()
    table = panel.locator("table").last
    names = table.locator("tbody th").all_inner_texts()
    assert names == [plain_title(METHODS[row.method].title.english) for row in results.by_agreement()]
    expect(panel.get_by_text(f"over {results.sentences} sentences").first).to_be_visible()
    no_faults(page, "#panel-why-holds", name=f"why-holds-{width}")
