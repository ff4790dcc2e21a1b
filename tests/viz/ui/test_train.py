"""What the Train tab asks of the server: runs by visit, turns one at a time, and a toy that only its visitor opens."""

from __future__ import annotations

import base64
import gc
import json
import subprocess
import sys
import threading

import numpy as np
import pytest
from model.training.toy.store import ToyStore, Visit

from model.serve.limits import BatchLimits, Busy
from model.trace.kinds import AttentionKind
from model.training.toy import measure
from model.translators import Translators
from tests import ROOT
from viz.ui import train
from viz.ui.desk.scene import Scene
from viz.ui.lab import registry
from viz.ui.session import Selection, most_telling, serving
from viz.wire.payload import payload
from viz.wire.summary import summarise

SETTINGS = {"layers": 1, "heads": 2, "d_model": 16}
CORPUS = "a b | x y\nb a | y x"


def asked(store: ToyStore, visit: Visit, **data) -> dict:
    return json.loads(json.dumps(train.ACTIONS[data["action"]](store, visit, data), allow_nan=False))


def begun(store: ToyStore | None = None, **settings) -> tuple[ToyStore, Visit]:
    store, visit = store or ToyStore(), Visit()
    asked(store, visit, action="start", side="a", corpus=CORPUS, settings={**SETTINGS, **settings})
    return store, visit


def test_a_start_tells_the_corpus_and_each_turn_what_it_brought():
    store, visit = ToyStore(), Visit()
    said = asked(store, visit, action="start", side="a", corpus=CORPUS, settings={**SETTINGS, "positions": "none"})
    assert said["run"]["pairs"][0]["source"] == ["a", "b", "</s>"] and said["run"]["pairs"][1]["read"][0] == "<s>"
    assert said["run"]["floor"] > 0 and said["run"]["guess"] == pytest.approx(np.log(7))
    (first,) = said["turn"]["frames"]
    assert first["update"] == 0 and said["turn"]["points"] == []
    frame = visit.runs["a"].frames[0]
    for kind, maps in first["maps"][1].items():
        found = np.frombuffer(base64.b64decode(maps["data"]), np.uint8).reshape(maps["shape"])
        assert np.array_equal(found, frame.maps[1][kind])
    turn = asked(store, visit, action="go", side="a")["turn"]
    assert [point[0] for point in turn["points"]] == list(range(1, turn["update"] + 1)) and turn["done"] is None
    visit.runs["a"].update = 2000
    assert asked(store, visit, action="go", side="a")["turn"]["done"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": "go", "side": "b"},
        {"action": "go", "side": None},
        {"action": "start", "side": "c"},
        {"action": "start", "side": "b", "corpus": "x"},
        {"action": "start", "side": "b", "corpus": CORPUS, "settings": []},
        {"action": "start", "side": "b", "corpus": CORPUS, "settings": {"layers": 9}},
    ],
)
def test_what_cannot_be_asked_is_refused_and_changes_nothing(wrong):
    store, visit = begun()
    with pytest.raises(ValueError):
        train.ACTIONS[wrong["action"]](store, visit, {"settings": SETTINGS, **wrong})
    assert set(visit.runs) == {"a"}


@pytest.mark.long
def test_what_is_prepared_the_first_run_of_a_process_does_not_load():
    program = """if True:
        import sys
        from model.training.toy.settings import ToySettings
        from model.training.toy.store import ToyStore, Visit
        store, before = ToyStore(), set(sys.modules)
        store.prepare()
        prepared = set(sys.modules)
        store.start(Visit(), "a", [("a b", "x y"), ("b a", "y x")], ToySettings())
        print(len(prepared - before), len(set(sys.modules) - prepared))"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    prepared, later = map(int, done.stdout.split())
    assert prepared > 100 and later < 10, "modules that came with the first optimiser, and with the run"


def test_turns_go_one_at_a_time_and_who_comes_ninth_is_told_so():
    store, visit = begun(ToyStore(line=BatchLimits(at_once=1, waiting=2, seconds=5)))
    answers = []

    def go() -> None:
        try:
            answers.append(store.go(visit, "a"))
        except Busy as busy:
            answers.append(busy)

    with store.line.one():  # somebody else's turn
        waiting = [threading.Thread(target=go) for _ in range(3)]
        for thread in waiting:
            thread.start()
        waiting_for = threading.Event()
        waiting_for.wait(0.3)
        assert sum(isinstance(answer, Busy) for answer in answers) == len(answers) == 1
    for thread in waiting:
        thread.join()
    points = [point.update for answer in answers if not isinstance(answer, Busy) for point in answer.points]
    assert len(answers) == 3 and sorted(points) == list(range(1, visit.runs["a"].update + 1))
    assert train.ToyStore().line.limits == BatchLimits(at_once=1, waiting=8, seconds=20.0)


def test_the_longest_idle_runs_go_when_all_take_too_much_and_a_visits_with_its_session():
    store, first = begun()
    _, second = begun(store)
    store.max_bytes = first.size + second.size - 1
    store.go(second, "a")
    assert not first.runs and second.runs
    with pytest.raises(ValueError, match="no longer kept"):
        store.go(first, "a")
    del first, second
    gc.collect()
    assert store.size == 0


def test_a_toy_is_served_to_who_holds_it_and_stands_in_no_list(tiny_translator):
    translators, (_, visit) = Translators([tiny_translator]), begun()
    name = train.opened(translators, visit, visit.run("a"))
    (trace,) = translators[name].trace_batch(
        ["a b"], translators.route(name).direction
    )  # no thread of a batch holds it
    assert serving(translators, trace) is visit.opened and name not in list(translators)
    assert name not in {route.label for route in translators.routes}
    _, other = begun()
    assert train.opened(translators, other, other.run("a")) != name, "equal weights, one name"
    visit.opened = None
    gc.collect()
    with pytest.raises(ValueError, match="not loaded"):
        serving(translators, trace)
    with pytest.raises(ValueError, match="Unknown direction"):
        translators[name]


def test_a_recurrent_network_shows_its_alignment_and_panels_say_that_it_is_no_transformer(tiny_translator):
    translators, (_, visit) = Translators([tiny_translator]), begun(network="gru")
    toy = translators[train.opened(translators, visit, visit.run("a"))]
    (trace,) = toy.trace_batch(["a b"])
    selection = most_telling(trace)
    assert selection.kind is AttentionKind.ALIGNMENT and Selection().fitted(trace).kind is AttentionKind.ALIGNMENT
    assert set(payload(trace, selection)["kinds"]) == {"alignment"}
    assert any("recurrent" in fact for fact in summarise(trace, toy)["facts"])
    acting = [
        panel for panels in registry.PANELS.values() for panel in panels if panel.acts and not panel.of_any_network
    ]
    for panel in acting:  # what a page may still ask of what it showed before
        with pytest.raises(ValueError, match="recurrent network"):
            panel.act(
                Scene(trace, Selection().fitted(trace), toy),
                {"act": next(iter(panel.acts))},
                *(getattr(control, "start", "") for control in panel.controls),
            )
    assert len(acting) > 3
    lacking = {entry["why"] for entry in registry.lacking(trace, toy)}
    assert len(lacking) == 1 and "recurrent network" in lacking.pop()
    scene = Scene(trace, Selection().fitted(trace), toy)
    (verify,) = (panel for panel in registry.PANELS["verify"] if panel.name == "verify")
    *_, last = verify.content(scene)
    failed = [row[0] for row in last[1]["rows"] if row[1]["passed"] is False]
    assert failed == ["Drawn on the page = trace"], "no page has drawn it here"


@pytest.mark.parametrize(
    ("switch", "silent"),
    [
        ({"look_ahead_mask": False}, {"attention", "scoring", "masks"}),
        ({"scale_scores": False}, {"attention", "scoring"}),
        ({"residual": False}, {"residual", "add-norm"}),
        ({"positions": "learned"}, {"position-rotation"}),
        ({"positions": "none"}, {"position-table", "position-curves", "position-rotation", "position-similarity"}),
    ],
)
def test_panels_show_a_toy_or_say_which_part_it_lacks(tiny_translator, switch, silent):
    translators, (_, visit) = Translators([tiny_translator]), begun(**switch)
    toy = translators[train.opened(translators, visit, visit.run("a"))]
    trace = toy.translate("a b")
    scene = Scene(trace, Selection().fitted(trace), toy)
    found = set()
    for tab in ("positions", "inside"):
        for panel in registry.PANELS[tab]:
            if panel.missing(scene):
                found.add(panel.name)
            else:
                assert list(
                    panel.content(
                        scene, *(control.start if hasattr(control, "start") else "" for control in panel.controls)
                    )
                ), panel.name
    assert silent <= found < {panel.name for tab in ("positions", "inside") for panel in registry.PANELS[tab]}


def test_what_is_drawn_of_a_switch_is_what_its_sentence_says():
    for switch, lines in train.options()["measured"].items():
        assert [line["about"] for line in lines] == train.measured()[switch]
        for line in lines:
            said = line["about"].values.get("found", line["about"]).values
            numbers = [f"{value:.3g}" for value in (*line["changed"], *line["default"])]
            assert [line["update"], *numbers] == [said[name] for name in ("n", "low", "high", "from_", "to")], switch


def test_each_sentence_says_what_was_measured():
    shipped = measure.read()
    for switch, sentences in train.measured().items():
        cases = [(switch, update, words) for update, words in zip(train.COMPARED, sentences)]
        if len(sentences) > len(cases):
            cases.append((f"{measure.ORDER} {switch}", train.COMPARED[-1], sentences[-1].values["found"]))
        for name, update, words in cases:
            default, changed = shipped[measure.default_of(name)][update], shipped[name][update]
            verdict = (
                "no reliable difference"
                if changed[0] <= default[1] and default[0] <= changed[1]
                else "reliably lower"
                if changed[1] < default[0]
                else "reliably higher"
            )
            assert verdict in words and [words.values["low"], words.values["high"]] == [f"{v:.3g}" for v in changed]
    assert {f"positions_{code}" for code in measure.CODES} | {"heads_1", "look_ahead_mask"} <= train.measured().keys()
