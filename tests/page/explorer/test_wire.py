"""What the explorer takes on of what the server says, and what it asks for: without a server, and by a given clock."""

from __future__ import annotations

import pytest

from tests.page.browser import load_modules

pytestmark = pytest.mark.browser

# A page that shows a head, and tells the server a moment after a choice: steps -> what it shows after each; all told.
PAGE = """(steps) => {
  let now = 0, shown = null, choosing = false;
  const echo = atlas.createEcho(() => now), told = [];
  const page = {
    choose(head) { shown = head; choosing = true; },
    tell() { choosing = false; if (echo.tell(shown)) told.push(shown); },
    said(head) { if (echo.said(head, choosing)) shown = head; },
    brought(head) { if (echo.brought(head, choosing)) shown = head; },
    seconds(count) { now += 1000 * Number(count); },
  };
  return [steps.map(([what, given]) => { page[what](given); return shown; }), told];
}"""

# Steps, and what is shown after each. The page opens with a; "said": by the server, whatever made it say so.
CHOICES = {
    "a head that comes back leaves the next one": ("choose b, tell, choose c, said b, tell, said c", "b b c c c c"),
    "several under way": ("choose b, tell, choose c, tell, said b, said c, choose d, tell", "b b c c c c d d"),
    "told twice before the third is told": (
        "choose b, tell, choose c, tell, said c, choose d, said c, tell, said d",
        "b b c c c d d d d",
    ),
    "told twice after it": (
        "choose b, tell, choose c, tell, said c, choose d, tell, said c, said d",
        "b b c c c d d d d",
    ),
    "there and back": (
        "choose d, tell, choose a, tell, choose c, tell, choose a, tell, "
        "said a, choose d, tell, said a, said c, said a, said d",
        "d d a a c c a a a d d d d d d",
    ),
    "two answers that came as one": (
        "choose b, tell, choose c, tell, choose d, tell, said d, said d, said b",
        "b b c c d d d d b",
    ),
    "a sentence before the server knows": ("choose b, brought a, tell, brought a, said b, brought b", "b b b b b b"),
    "a sentence asked for before": ("choose b, tell, said b, brought a, brought c, said d, brought c", "b b b b c d d"),
    "a sentence long after": ("choose b, tell, said b, seconds 14, brought a, seconds 2, brought a", "b b b b b b a"),
    "what changed nothing never comes back": (
        "choose b, tell, seconds 14, brought c, seconds 2, brought c",
        "b b b b b c",
    ),
    "chosen elsewhere": ("said b, said b, said a", "b b a"),
    "elsewhere after ours": ("choose b, tell, said c, said c", "b b c c"),
    "elsewhere before ours": ("choose b, tell, said c, said b, choose c, tell", "b b c b c c"),
    "elsewhere what was chosen before": ("choose b, tell, said a, said a, choose b, tell, said b", "b b a a b b b"),
}

# A server that hears, answers and is told elsewhere in any order: seeds -> how often what is shown in the end is not
# what it has, and how often what a person had chosen was taken away. merges: Gradio may answer the last of several
# changes only, and may pass on the last of several answers only.
SERVER = """([seeds, { elsewhere, merges }]) => {
  const found = { apart: 0, taken: 0 };
  for (let seed = 1; seed <= seeds; seed++) {
    let state = seed, shown = "a", server = "a", choosing = false, changes = 0, left = elsewhere;
    const echo = atlas.createEcho(() => 0), asked = [], answers = [];
    const random = (n) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * n);
    };
    const set = (head) => {
      if (head !== server) changes += 1;
      server = head;
    };
    const merge = () => merges && random(3) === 0;
    const acts = [
      [(step) => step < 15, () => ((shown = "abcd"[random(4)]), (choosing = true))],
      [() => choosing, () => ((choosing = false), echo.tell(shown) && asked.push(shown))],
      [() => asked.length, () => set(asked.shift())],
      [(step) => step < 15 && left > 0, () => ((left -= 1), set("axyz"[random(4)]))],
      [() => changes, () => ((changes = merge() ? 0 : changes - 1), answers.push(server))],
      [() => answers.length, () => {
        const said = answers.splice(0, merge() ? answers.length : 1).at(-1);
        if (!echo.said(said, choosing)) return;
        if (said !== shown) found.taken += 1;
        shown = said;
      }],
    ];
    echo.brought("a", false);
    for (let step = 0; ; step++) {
      const open = acts.filter(([may]) => may(step));
      if (!open.length) break;
      open[random(open.length)][1]();
    }
    if (shown !== server) found.apart += 1;
  }
  return found;
}"""

# One question at a time: steps -> the events asked.
ASKING = """(steps) => {
  let now = 0;
  const asked = [], requests = atlas.createRequests((event, { wanted, thumbnails }) =>
    asked.push([event, wanted ?? null, thumbnails ?? null]), () => now);
  const trace = (lacking) => ({ key: "k", lazy: true, kinds: { cross: {}, own: {} }, lacks: (kind) => lacking.has(kind),
    weights: { cross: [1, null, null], own: [null] } });
  const lacking = new Set(["own"]), shown = trace(lacking), other = trace(new Set(["cross"]));
  const acts = {
    ahead: () => requests.ahead(shown, "cross"), answered: requests.answered, none: requests.waitForNone,
    wait: () => requests.waitFor(other), came: (kind) => lacking.delete(kind),
    overlay: () => requests.request("overlay", {}), layers: () => requests.layers(shown, [["own", 0]], "own"),
    seconds: (count) => (now += 1000 * count),
  };
  for (const [what, given] of steps) acts[what](given);
  return asked;
}"""


@pytest.fixture()
def script_page(open_page):
    """An empty page with the scripts that speak with the server."""
    page = open_page("about:blank")
    load_modules(page, "explorer/wire/echo.js", "explorer/wire/requests.js")
    return page


def test_what_a_person_chose_stays_and_what_is_chosen_elsewhere_comes(script_page):
    for name, (steps, expected) in CHOICES.items():
        shown, _ = script_page.evaluate(PAGE, [["brought", "a"], *(step.split(" ") for step in steps.split(", "))])
        assert " ".join(shown[1:]) == expected, name


def test_what_the_server_has_is_not_told(script_page):
    for story, expected in (
        ("tell", []),
        ("choose b, tell, tell", ["b"]),
        ("choose b, tell, said b, tell", ["b"]),
        ("choose b, tell, choose a, tell, said a, tell", ["b", "a"]),
        ("said b, tell", []),
        ("choose b, tell, said a, said a, choose b, tell", ["b", "b"]),
        ("choose b, tell, said c, choose b, tell", ["b"]),
        ("brought b, tell", []),
    ):
        steps = [step.split(" ") for step in ("brought a", *story.split(", "))]
        assert script_page.evaluate(PAGE, steps)[1] == expected, story


@pytest.mark.parametrize(("elsewhere", "merges"), [(0, False), (0, True), (1, False)])
def test_in_the_end_the_page_shows_what_the_server_has(script_page, elsewhere, merges):
    found = script_page.evaluate(SERVER, [20_000, {"elsewhere": elsewhere, "merges": merges}])
    assert found["apart"] == 0
    assert (found["taken"] > 0) == (elsewhere > 0), "only a choice elsewhere takes the place of what a person chose"


def test_one_thing_is_asked_for_at_a_time_and_what_is_needed_goes_before_what_may_be(script_page):
    def asked(steps: str) -> list:
        return script_page.evaluate(ASKING, [[*step.split(" "), None][:2] for step in steps.split(", ")])

    small, other, layer = ["layers", [], ["own"]], ["layers", [], ["cross"]], ["layers", [["cross", 1]], []]
    assert asked("ahead, ahead, overlay, layers") == [small]
    assert asked("ahead, answered, came own, ahead, answered, ahead") == [small, layer, layer]
    assert asked("wait, ahead, answered, ahead") == [other, small], "the other translation is asked about once"
    assert asked("wait, none, ahead") == [small]
    assert asked("overlay, layers, answered, layers") == [["overlay", None, None], ["layers", [["own", 0]], ["own"]]]
    assert asked("overlay, seconds 14, overlay, ahead, seconds 2, ahead") == [["overlay", None, None]]
    assert asked("overlay, seconds 16, layers") == [["overlay", None, None], ["layers", [["own", 0]], ["own"]]]


def test_the_exact_number_of_a_translation_left_behind_is_kept_with_it_and_awaited_no_longer(chromium) -> None:
    page = chromium.new_page()
    load_modules(page, "explorer/wire/maps.js")
    asked, kept = page.evaluate("""() => {
      const exact = new Map(), head = ["cross", 0, 0], asked = [];
      const one = { key: "one", pyramid: () => ({ exact }) }, map = { pyramid: { exact }, head };
      const scene = { trace: one, traces: [one], map };
      const ask = (event, { key }) => asked.push(`${event} of ${key}`);
      const maps = atlas.createMaps({ scene, overlays: {}, ask, isPointed: () => true });
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
