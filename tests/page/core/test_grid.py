"""The page's grid of cells alone: its roles and names for a screen reader, its keys, and the cell below the pointer."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.page.browser import no_violations

pytestmark = pytest.mark.browser

DRAW = """({ act, quiet }) => {
  window.heard = [];
  const hooks = { quiet, point: (...place) => heard.push(["point", ...place]) };
  if (act) Object.assign(hooks, { act: (row, column) => heard.push(["act", row, column]), pressed: (r, c) => r === c });
  const cells = [0, 1].map((r) => [0, 1, 2].map((c) => (
    { ...atlas.shareStyle((r - c) / 2), name: `cell ${r} ${c}`, content: String(r - c) })));
  const columns = ["one", { text: "two", title: "the second", act: act && (() => heard.push(["column"])) }, "three"];
  window.grid = atlas.createGrid({ name: "a grid", columns, rows: ["first", "second"], cells }, hooks);
  document.documentElement.lang = "en"; document.title = "a grid";
  document.body.replaceChildren(Object.assign(document.createElement("main"), {}), grid.root);
}"""


@pytest.fixture()
def page(open_modules):
    return open_modules("core/grid.js", "core/keys.js")


def test_arrow_keys_move_between_cells_and_stop_at_the_edges(page) -> None:
    page.evaluate(DRAW, {"act": True})
    cells = page.get_by_role("button", name="cell")
    assert [cell.get_attribute("tabindex") for cell in cells.all()] == ["0", "-1", "-1", "-1", "-1", "-1"]
    cells.first.focus()
    for key, reached in (("Right", "0 1"), ("Down", "1 1"), ("Down", "1 1"), ("Right", "1 2"), ("Up", "0 2")):
        page.keyboard.press(f"Arrow{key}")
        expect(page.locator(":focus")).to_have_attribute("data-at", reached)
    page.keyboard.press("Control+ArrowLeft")
    expect(page.locator(":focus")).to_have_attribute("data-at", "0 2")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="two").click()
    assert [event for event in page.evaluate("heard") if event[0] != "point"] == [["act", 0, 2], ["column"]]
    assert page.locator("[aria-pressed=true]").count() == 2
    page.evaluate("grid.focus([1, 0])")
    assert page.evaluate("grid.focused()") == [1, 0] and page.evaluate("heard.at(-1)") == ["point", 1, 0]


def test_a_grid_without_actions_has_headings_and_a_quiet_one_is_a_group(page) -> None:
    page.evaluate(DRAW, {"act": False})
    expect(page.get_by_role("grid", name="a grid").get_by_role("columnheader")).to_have_text(["one", "two", "three"])
    expect(page.get_by_role("rowheader")).to_have_text(["first", "second"])
    expect(page.get_by_role("gridcell", name="cell 1 0")).to_have_class("cell plus")
    no_violations(page, ".atlas-grid")
    page.evaluate(DRAW, {"act": True, "quiet": True})
    expect(page.get_by_role("group", name="a grid").get_by_role("button")).to_have_count(6)
    no_violations(page, ".atlas-grid")


def test_the_cell_below_the_pointer_is_computed_within_bounds(page) -> None:
    cells = page.evaluate("""() => {
      const box = { getBoundingClientRect: () => ({ left: 10, top: 20, width: 30, height: 40 }) };
      return [[10, 20], [39.9, 59.9], [24, 45], [-5, 900]].map(([clientX, clientY]) =>
        atlas.cellAt({ clientX, clientY }, box, 4, 3));
    }""")
    assert cells == [[0, 0], [3, 2], [2, 1], [3, 0]]
