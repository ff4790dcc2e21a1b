"""The explorer's requests for parts of a translation, without a server and with a simulated clock."""

from __future__ import annotations

import pytest

from tests.page.browser import load_modules

pytestmark = pytest.mark.browser

# Run steps on the module that requests parts of maps, and return the requests that it made.
ASKING = """(steps) => {
  let now = 0;
  performance.now = () => now;
  const requests = [];
  const ask = (event, { wanted, thumbnails }) => requests.push([event, wanted ?? null, thumbnails ?? null]);
  const trace = (lacking) => ({ key: "k", lazy: true, kinds: { cross: {}, own: {} }, lacks: (kind) => lacking.has(kind),
    weights: { cross: [1, null, null], own: [null] } });
  const lacking = new Set(["own"]), shown = trace(lacking), other = trace(new Set(["cross"]));
  const state = { ...atlas.initialState(), kind: "cross" };
  const scene = { state, trace: shown, traces: [shown], overlays: [] };
  const maps = atlas.createMaps({ scene, ask });
  const acts = {
    ahead: maps.askAhead, answered: () => maps.receiveError({}), none: () => maps.lackingThumbnails.clear(),
    wait: () => maps.lackingThumbnails.add(other), came: (kind) => lacking.delete(kind),
    tiles: () => maps.tiles({}, []), layers: () => maps.mapOf(shown, { ...state, kind: "own" }),
    seconds: (count) => (now += 1000 * count),
  };
  for (const [act, argument] of steps) acts[act](argument);
  return requests;
}"""


@pytest.fixture()
def script_page(open_page):
    """Return an empty page with the script that requests parts of maps."""
    page = open_page("about:blank")
    load_modules(page, "explorer/maps.js", "explorer/state.js")
    return page


def test_one_part_is_requested_at_a_time_and_needed_parts_go_before_prefetched_ones(script_page):
    def requests(steps: str) -> list:
        return script_page.evaluate(ASKING, [[*step.split(" "), None][:2] for step in steps.split(", ")])

    small, other, layer = ["layers", [], ["own"]], ["layers", [], ["cross"]], ["layers", [["cross", 1]], []]
    assert requests("ahead, ahead, tiles, layers") == [small]
    assert requests("ahead, answered, came own, ahead, answered, ahead") == [small, layer, layer]
    assert requests("wait, ahead, answered, ahead") == [other, small], "the other translation is requested once"
    assert requests("wait, none, ahead") == [small]
    assert requests("tiles, layers, answered, layers") == [["tiles", [], None], ["layers", [["own", 0]], ["own"]]]
    assert requests("tiles, seconds 14, tiles, ahead, seconds 2, ahead") == [["tiles", [], None]]
    assert requests("tiles, seconds 16, layers") == [["tiles", [], None], ["layers", [["own", 0]], ["own"]]]


def test_an_exact_value_that_arrives_late_is_stored_with_its_translation(chromium) -> None:
    page = chromium.new_page()
    load_modules(page, "explorer/maps.js")
    requests, values = page.evaluate("""() => {
      const exact = new Map(), head = ["cross", 0, 0], requests = [];
      const trace = { key: "one", pyramid: () => ({ exact }) }, map = { pyramid: { exact }, head };
      const scene = { trace, traces: [trace], map };
      const ask = (event, { key }) => requests.push(`${event} of ${key}`);
      const maps = atlas.createMaps({ scene, ask, isPointed: () => true });
      maps.exact(map, 3, 4);
      scene.traces.push((scene.trace = { key: "two" }));
      maps.tiles({ head }, []); // waits for that answer
      maps.receiveCell("one", { head, row: 3, column: 4, value: 0.25 });
      maps.tiles({ head }, []);
      maps.receiveCell("three", { head, row: 3, column: 4, value: 0.5 }); // a translation that the page has dropped
      return [requests, [...exact]];
    }""")
    page.close()
    assert requests == ["cell of one", "tiles of two"] and values == [["3.4", 0.25]]
