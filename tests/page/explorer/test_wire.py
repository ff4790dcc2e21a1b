"""The explorer's requests for parts of a translation, without a server and with a simulated clock."""

from __future__ import annotations

import pytest

from tests.page.browser import load_modules

pytestmark = pytest.mark.browser

# One question at a time: steps -> the events asked.
ASKING = """(steps) => {
  let now = 0;
  performance.now = () => now;
  const asked = [], ask = (event, { wanted, thumbnails }) => asked.push([event, wanted ?? null, thumbnails ?? null]);
  const trace = (lacking) => ({ key: "k", lazy: true, kinds: { cross: {}, own: {} }, lacks: (kind) => lacking.has(kind),
    weights: { cross: [1, null, null], own: [null] } });
  const lacking = new Set(["own"]), shown = trace(lacking), other = trace(new Set(["cross"]));
  const state = { ...atlas.initialState(), kind: "cross" };
  const scene = { state, trace: shown, traces: [shown], overlays: [] };
  const maps = atlas.createMaps({ scene, ask });
  const acts = {
    ahead: maps.askAhead, answered: () => maps.refuse({}), none: () => maps.lackingThumbnails.clear(),
    wait: () => maps.lackingThumbnails.add(other), came: (kind) => lacking.delete(kind),
    tiles: () => maps.tiles({}, []), layers: () => maps.mapOf(shown, { ...state, kind: "own" }),
    seconds: (count) => (now += 1000 * count),
  };
  for (const [what, given] of steps) acts[what](given);
  return asked;
}"""


@pytest.fixture()
def script_page(open_page):
    """An empty page with the script that decides what is asked for."""
    page = open_page("about:blank")
    load_modules(page, "explorer/maps.js", "explorer/state.js")
    return page


def test_one_thing_is_asked_for_at_a_time_and_what_is_needed_goes_before_what_may_be(script_page):
    def asked(steps: str) -> list:
        return script_page.evaluate(ASKING, [[*step.split(" "), None][:2] for step in steps.split(", ")])

    small, other, layer = ["layers", [], ["own"]], ["layers", [], ["cross"]], ["layers", [["cross", 1]], []]
    assert asked("ahead, ahead, tiles, layers") == [small]
    assert asked("ahead, answered, came own, ahead, answered, ahead") == [small, layer, layer]
    assert asked("wait, ahead, answered, ahead") == [other, small], "the other translation is asked about once"
    assert asked("wait, none, ahead") == [small]
    assert asked("tiles, layers, answered, layers") == [["tiles", [], None], ["layers", [["own", 0]], ["own"]]]
    assert asked("tiles, seconds 14, tiles, ahead, seconds 2, ahead") == [["tiles", [], None]]
    assert asked("tiles, seconds 16, layers") == [["tiles", [], None], ["layers", [["own", 0]], ["own"]]]


def test_the_exact_number_of_a_translation_left_behind_is_kept_with_it_and_awaited_no_longer(chromium) -> None:
    page = chromium.new_page()
    load_modules(page, "explorer/maps.js")
    asked, kept = page.evaluate("""() => {
      const exact = new Map(), head = ["cross", 0, 0], asked = [];
      const one = { key: "one", pyramid: () => ({ exact }) }, map = { pyramid: { exact }, head };
      const scene = { trace: one, traces: [one], map };
      const ask = (event, { key }) => asked.push(`${event} of ${key}`);
      const maps = atlas.createMaps({ scene, ask, isPointed: () => true });
      maps.exact(map, 3, 4);
      scene.traces.push((scene.trace = { key: "two" }));
      maps.tiles({ head }, []); // waits for that answer
      maps.takeExact("one", { head, row: 3, column: 4, value: 0.25 });
      maps.tiles({ head }, []);
      maps.takeExact("three", { head, row: 3, column: 4, value: 0.5 }); // remembered no more
      return [asked, [...exact]];
    }""")
    page.close()
    assert asked == ["cell of one", "tiles of two"] and kept == [["3.4", 0.25]]
