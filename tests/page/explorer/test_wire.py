"""The explorer's requests for parts of a translation."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser

# Run steps on the module that requests parts of maps, and return the requests that it made.
ASKING = """async (steps) => {
  const requests = [];
  let answer = () => {};
  const ask = (name, trace, { wanted, thumbnails }) => {
    requests.push([name, wanted ?? null, thumbnails ?? null]);
    return new Promise((resolve) => (answer = resolve));
  };
  const trace = (lacking) => ({ address: {}, lazy: true, kinds: { cross: {}, own: {} }, add: () => {},
    lacks: (kind) => lacking.has(kind), weights: { cross: [1, null, null], own: [null] } });
  const lacking = new Set(["own"]), shown = trace(lacking), other = trace(new Set(["cross"]));
  const state = { ...atlas.initialState(), kind: "cross", layer: 0, head: 0 };
  const scene = { state, trace: shown, traces: [shown], overlays: [] };
  const maps = atlas.createMaps({ scene, ask, show: () => {}, tell: () => {} });
  const acts = {
    ahead: maps.askAhead, none: () => maps.lackingThumbnails.clear(),
    answered: async () => { answer({}); await new Promise((resolve) => setTimeout(resolve)); },
    wait: () => maps.lackingThumbnails.add(other), came: (kind) => lacking.delete(kind),
    tiles: () => maps.tiles({}, []), layers: () => maps.mapOf(shown, { ...state, kind: "own" }),
  };
  for (const [act, argument] of steps) {
    const result = acts[act](argument);
    if (act === "answered") await result; // a request ends with its answer
  }
  return requests;
}"""


def test_one_part_is_requested_at_a_time_and_needed_parts_go_before_prefetched_ones(open_modules):
    page = open_modules("explorer/maps.js", "explorer/state.js")

    def requests(steps: str) -> list:
        return page.evaluate(ASKING, [[*step.split(" "), None][:2] for step in steps.split(", ")])

    small, other, layer = ["layers", [], ["own"]], ["layers", [], ["cross"]], ["layers", [["cross", 1]], []]
    assert requests("ahead, ahead, tiles, layers") == [small]
    assert requests("ahead, answered, came own, ahead, answered, ahead") == [small, layer, layer]
    assert requests("wait, ahead, answered, ahead") == [other, small], "the other translation is requested once"
    assert requests("wait, none, ahead") == [small]
    assert requests("tiles, layers, answered, layers") == [["tiles", [], None], ["layers", [["own", 0]], ["own"]]]


def test_an_exact_value_that_arrives_late_is_stored_with_its_translation(open_modules) -> None:
    page = open_modules("explorer/maps.js")
    requests, values = page.evaluate("""async () => {
      const exact = new Map(), head = ["cross", 0, 0], requests = [], answers = [];
      const trace = (key) => ({ key, address: {}, add: () => {} }), map = { pyramid: { exact }, head };
      const scene = { trace: trace("one"), map };
      const ask = (name, { key }) => new Promise((resolve) => {
        requests.push(`${name} of ${key}`);
        answers.push(resolve);
      });
      const maps = atlas.createMaps({ scene, ask, isPointed: () => true, show: () => {} });
      maps.exact(map, 3, 4);
      scene.trace = trace("two");
      maps.tiles({ head }, []); // waits for that answer
      answers[0]({ cell: { head, row: 3, column: 4, value: 0.25 } });
      await new Promise((resolve) => setTimeout(resolve));
      maps.tiles({ head }, []);
      return [requests, [...exact]];
    }""")
    assert requests == ["cell of one", "tiles of two"] and values == [["3.4", 0.25]]
