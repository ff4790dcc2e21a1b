"""Questions of the tab Train: the turns of a run, and the address of a toy's translation."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from attention_atlas.model.serve.limits import BatchLimits, Busy
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.recipe import ToyRecipe
from attention_atlas.model.training.toy import measure, settings, toys
from attention_atlas.model.training.toy.run import normalise
from attention_atlas.model.training.toy.toys import LargeToySlot, ToyNeeded, Toys
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.panels import registry
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene, Selection, most_telling
from attention_atlas.viz.questions import registry as questions
from attention_atlas.viz.questions import train
from attention_atlas.viz.questions.registry import Context
from attention_atlas.viz.questions.traces import Traces
from attention_atlas.viz.wire.payload import payload
from attention_atlas.viz.wire.summary import summarise
from attention_atlas.viz.words import for_page
from tests import ROOT
from tests.viz.panels.panels import block_of

SETTINGS = {"layers": 1, "heads": 2, "d_model": 16}
CORPUS = "a b | x y\nb a | y x"
RECIPE = {"corpus": CORPUS, "settings": SETTINGS, "updates": 5}


def parts(context: Context, name: str, **body: object) -> Iterator[dict]:
    """Yield the parts of an answer as the page reads them (a single answer is one part)."""
    answer = questions.ask(context, name, body)
    for part in [answer] if isinstance(answer, dict) else answer:
        yield json.loads(json.dumps(for_page(part), allow_nan=False))


def last(context: Context, name: str, **body: object) -> dict:
    *_, answer = parts(context, name, **body)
    return answer


def initial_values(panel: Panel) -> list[object]:
    """Return the values of a panel's controls before anybody moves them."""
    return [getattr(control, "start", "") for control in panel.controls]


def toy_of(**settings: object) -> Translator:
    """Return a toy before its first update."""
    recipe, toys = ToyRecipe.of(CORPUS, {**SETTINGS, **settings}, 0), Toys()
    list(toys.train(recipe))
    return toys.find(recipe)


def test_the_first_part_describes_the_corpus_and_each_turn_its_updates(context):
    first, *turns = parts(context, "page_train", fields={**RECIPE, "settings": {**SETTINGS, "positions": "none"}})
    run, frame = first["run"], first["turn"]["frames"][0]
    assert run["pairs"][0]["source"] == ["a", "b", "</s>"] and run["pairs"][1]["read"][0] == "<s>"
    assert run["floor"] > 0 and run["guess"] == pytest.approx(np.log(7))
    assert frame["update"] == 0 and first["turn"]["points"] == []
    for maps in frame["maps"][1].values():
        assert np.frombuffer(base64.b64decode(maps["data"]), np.uint8).reshape(maps["shape"]).size
    assert [point[0] for turn in turns for point in turn["turn"]["points"]] == [1, 2, 3, 4, 5]
    assert turns[-1]["turn"]["update"] == 5 and turns[-1]["turn"]["done"] is None


def test_a_run_ends_at_its_last_update_and_says_so(context, monkeypatch):
    monkeypatch.setattr(settings, "MAX_UPDATES", 8)
    turn = last(context, "page_train", fields={**RECIPE, "updates": 8, "from": 3})["turn"]
    assert turn["update"] == 8 and turn["done"]["say"] == "The run has reached its {n} updates."


@pytest.mark.parametrize("is_cached", [True, False])
def test_a_stopped_run_is_resumed_with_the_same_losses(context, tiny_translator, is_cached):
    whole = [point for part in parts(context, "page_train", fields=RECIPE) for point in part["turn"]["points"]]
    stream = parts(context, "page_train", fields={**RECIPE, "updates": 400})
    begun = [next(stream) for _ in range(2)]
    stream.close()
    update = begun[-1]["turn"]["update"]
    if not is_cached:
        context = Context(context.translators, Traces(context.translators))
    *before, after = parts(context, "page_train", fields={**RECIPE, "updates": update + 3, "from": update})
    trained = [part for part in before if "training" in part]
    assert bool(trained) != is_cached and all(part["training"]["of"] == update for part in trained)
    points = [point for part in (*begun, after) for point in part["turn"]["points"]]
    assert [point[0] for point in points] == list(range(1, update + 4)) and points[:5] == whole[: len(points[:5])]


@pytest.mark.parametrize(
    "wrong",
    [
        {"corpus": "x"},
        {"corpus": None},
        {"settings": []},
        {"settings": {"layers": 9}},
        {"settings": {"layers": [[1]]}},
        {"updates": 2001},
        {"updates": -1},
        {"updates": True},
        {"from": 6},
        {"from": "1"},
    ],
)
def test_invalid_training_requests_are_refused(context, wrong):
    with pytest.raises(ValueError):
        list(parts(context, "page_train", fields={**RECIPE, **wrong}))
    assert context.traces.toys.bytes == 0


@pytest.mark.long
def test_prepare_imports_the_modules_of_the_first_run():
    program = """if True:
        import sys
        from attention_atlas.model.trace.recipe import ToyRecipe
        from attention_atlas.model.training.toy.toys import Toys
        toys, before = Toys(), set(sys.modules)
        toys.prepare()
        prepared = set(sys.modules)
        list(toys.watch(ToyRecipe.of("a b | x y", {}, 1)))
        print(len(prepared - before), len(set(sys.modules) - prepared))"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    prepared, later = map(int, done.stdout.split())
    assert prepared > 100 and later < 10, "modules that came with the first optimiser, and with the run"


def test_turns_run_one_at_a_time_and_a_full_queue_is_busy():
    toys = Toys(line=BatchLimits(at_once=1, waiting=2, seconds=5))
    recipe, answers = ToyRecipe.of(CORPUS, SETTINGS, 5), []

    def go() -> None:
        try:
            answers.append([run.update for run, _ in toys.watch(recipe)][-1])
        except Busy as busy:
            answers.append(busy)

    with toys.line.turn():
        waiting = [threading.Thread(target=go) for _ in range(3)]
        for thread in waiting:
            thread.start()
        threading.Event().wait(0.3)
        assert sum(isinstance(answer, Busy) for answer in answers) == len(answers) == 1
    for thread in waiting:
        thread.join()
    assert [answer for answer in answers if not isinstance(answer, Busy)] == [5, 5]
    assert Toys().line.limits == BatchLimits(at_once=1, waiting=8, seconds=20.0)


def test_the_least_recently_used_toy_is_dropped_when_memory_is_full():
    first, second = (normalise(ToyRecipe.of(CORPUS, {**SETTINGS, "seed": seed}, 1)) for seed in (1, 2))
    toys = Toys()
    list(toys.train(first))
    toys = Toys(most=int(4.5 * toys.find(first).weight_bytes))
    for recipe in (first, second):
        list(toys.train(recipe))
        toys.find(recipe)
    with pytest.raises(ToyNeeded):
        toys.find(first)
    assert toys.bytes <= 4.5 * toys.find(second).weight_bytes


@pytest.mark.parametrize("network", ["encoder", "decoder", "transformer"])
def test_tokens_of_a_run_are_those_of_its_maps(context, network):
    corpus = "a b c d e | x\nb a | y"  # more words in the source than in the target
    settings = {**SETTINGS, "network": network, "separate": True}
    first = next(parts(context, "page_train", fields={"corpus": corpus, "settings": settings, "updates": 0}))
    pair, frame = first["run"]["pairs"][0], first["turn"]["frames"][0]
    lengths = {name: len(pair[name]) for name in ("source", "read", "written")}
    assert lengths["read"] == lengths["written"]
    for kind, maps in frame["maps"][0].items():
        rows = lengths["source" if kind == "encoder_self" else "read"]
        columns = lengths["read" if kind == "decoder_self" else "source"]
        assert maps["shape"][2:] == [rows, columns]
    expected = {
        "encoder": ["<s>", "a", "b", "c", "d", "e", "</s>"],
        "decoder": ["<s>", "a", "b", "c", "d", "e", "x"],
        "transformer": ["a", "b", "c", "d", "e", "</s>"],
    }[network]
    assert pair["read" if network == "decoder" else "source"] == expected
    if network == "encoder":
        assert frame["outputs"][0]["text"] in ("x", "y") and frame["outputs"][0]["finished"]


@pytest.fixture()
def large(monkeypatch) -> ToyRecipe:
    """A recipe of ten updates whose toy counts as large."""
    monkeypatch.setattr(settings, "LARGE", SETTINGS["d_model"])
    monkeypatch.setattr(toys, "TURN_SECONDS", 0.0)
    return normalise(ToyRecipe.of(CORPUS, SETTINGS, 10))


def wait_until(condition) -> None:
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


def test_a_large_toy_is_kept_outside_of_the_cache_and_continues_where_it_stopped(large):
    kept = Toys()
    stream = kept.watch(large)
    first, second = next(stream), next(stream)
    stream.close()
    assert kept.bytes == 0 and kept.large.value is first[0] is second[0], "no run is copied"
    update = first[0].update
    assert update >= 1
    stream = kept.watch(large, since=0)
    run, missed = next(stream)
    stream.close()
    assert run is first[0] and len(missed.points) == update and missed.frames[0].update == 0
    (run, turn), *_, last = kept.watch(large, since=update)
    assert not turn.points and last[0].update == 10 and run is first[0]


def test_there_is_one_large_toy_and_the_next_one_takes_its_place(large):
    kept, other = Toys(), normalise(ToyRecipe.of(CORPUS, {**SETTINGS, "seed": 2}, 10))
    first = kept.watch(large)
    next(first)
    second = kept.watch(other)
    assert [next(second) for _ in range(3)] == [(None, None)] * 3, "it waits, and is told so"
    first.close()
    run, _ = next(step for step in second if step[0] is not None)
    assert kept.large.value is run and run.settings.seed == 2
    second.close()
    list(kept.train(large))
    assert kept.find(large).recipe == large and not isinstance(kept.large.value, type(run)), "its run is gone"
    with pytest.raises(ToyNeeded):
        kept.find(other)


def test_too_many_callers_wait_for_the_large_toy(large):
    place = LargeToySlot(60, BatchLimits(at_once=1, waiting=1, seconds=3.0))
    assert not list(place.hold())
    waiting = place.hold()
    next(waiting)
    with pytest.raises(Busy):
        next(place.hold())
    with pytest.raises(Busy):
        list(waiting)
    place.release()
    assert not list(place.hold())


def test_the_large_toy_is_dropped_after_its_last_use(large):
    toys = Toys(idle_seconds=0.2)
    stream = toys.watch(large)
    next(stream)
    time.sleep(0.5)
    assert toys.large.value is not None, "it is in use"
    stream.close()
    wait_until(lambda: toys.large.value is None)
    toys = Toys(idle_seconds=5)
    list(toys.train(large))
    dropped = weakref.ref(toys.find(large).model)
    wait_until(lambda: dropped() is None)  # its memory is free
    assert toys.large.value is None
    assert Toys().large._idle_seconds == 300


def test_who_waits_for_a_large_toy_is_told(context, large):
    kept = context.traces.toys
    assert not list(kept.large.hold())
    stream = parts(context, "page_train", fields=large.to_plain())
    assert next(stream) == {"training": {"update": 0, "of": 0, "waits": True}}
    kept.large.release()
    assert next(part for part in stream if "run" in part)["turn"]["update"] == 0
    stream.close()


def test_a_large_toy_opens_in_the_other_tabs(context, large):
    answer = last(context, "page_toy", fields={"recipe": large.to_plain()})
    assert answer["opens"]["recipe"]["updates"] == 10
    translated = last(context, "page_translate", address=answer["opens"])
    assert translated["target"] and context.traces.toys.bytes == 0


def test_a_large_toy_that_is_a_turn_ahead_of_the_page_opens_as_it_is(context, large):
    kept, stream = context.traces.toys, context.traces.toys.watch(large)
    update = [next(stream) for _ in range(4)][-1][0].update
    stream.close()
    for behind, opened in ((1, update), (0, update)):
        recipe = {**large.to_plain(), "updates": update - behind}
        assert kept.latest(ToyRecipe.from_plain(recipe)).updates == opened
    assert kept.latest(replace(large, updates=0)).updates == 0 and update > 2
    run = kept.large.value
    opens = last(context, "page_toy", fields={"recipe": {**large.to_plain(), "updates": update - 1}})["opens"]
    assert opens["recipe"]["updates"] == update and kept.find(ToyRecipe.from_plain(opens["recipe"])).model is run.model


def test_a_toy_requested_several_times_at_once_is_trained_once(monkeypatch):
    toys, recipe, begun = Toys(), ToyRecipe.of(CORPUS, SETTINGS, 30), []
    monkeypatch.setattr(
        Toys, "_advance", lambda *arguments, _advance=Toys._advance: begun.append(1) or _advance(*arguments)
    )
    threads = [threading.Thread(target=lambda: list(toys.train(recipe))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(begun) == 1 and toys.find(recipe)


def test_an_opened_toy_has_an_address_by_which_another_process_trains_it(context, tiny_translator):
    answer = last(context, "page_toy", fields={"recipe": RECIPE, "pair": 1})
    assert answer["fill"]["text"] == "b a" and answer["fill"]["entry"] == "toy"
    assert answer["fill"]["offer"]["sentences"] == ["a b", "b a"]
    address = answer["opens"]
    assert address["recipe"]["updates"] == 5 and Address.from_plain(address).to_plain() == address
    here = last(context, "page_translate", address=address)
    elsewhere = Context(context.translators, Traces(Translators([tiny_translator])))
    *training, there = parts(elsewhere, "page_translate", address=address)
    assert training[-1] == {"training": {"update": 5, "of": 5}} and all(
        first["training"]["update"] <= second["training"]["update"] for first, second in pairwise(training)
    )
    assert there["map"]["key"] == here["map"]["key"] and there["target"] == here["target"]
    assert last(elsewhere, "page_translate", address=address) == there, "the toy is cached from then on"


def test_a_toy_with_other_weights_has_another_address(context):
    address = last(context, "page_toy", fields={"recipe": RECIPE})["opens"]
    other = {**address, "digest": "0" * 16}
    for name in ("page_translate", "page_doubts", "page_panel"):
        answer = last(context, name, address=other, fields={"panel": "logits"})["retrained"]
        assert answer == {**address, "target_ids": None, "source_ids": address["source_ids"]}
    assert last(context, "page_translate", address=answer)["map"]["address"] == address


def test_another_sentence_is_translated_by_the_toy_whose_recipe_is_sent(context):
    fields = {"entry": "toy", "recipe": RECIPE, "text": "b b a", "beam": "1"}
    answer = last(context, "page_translate", fields=fields)
    assert answer["about"]["name"] == "toy" and answer["fill"] is None
    assert last(context, "page_translate", fields={**fields, "fills": True})["fill"]["entry"] == "toy"
    assert "is not one of them" in json.dumps(last(context, "page_translate", fields={**fields, "text": "c"})["error"])
    assert last(context, "page_direction", fields=fields)["offer"]["sentences"] == ["a b", "b a"]
    for name in ("page_translate", "page_direction", "page_toy"):
        with pytest.raises(ValueError, match="You have not opened one yet"):
            last(context, name, fields={"entry": "toy", "text": "a"})


def test_equal_recipes_train_one_toy():
    first, second = (
        normalise(ToyRecipe.of(corpus, {**SETTINGS, "dropout": dropout}, 3))
        for corpus, dropout in ((CORPUS, 0), (f"  {CORPUS}\n\n", 0.0))
    )
    assert first == second and hash(first) == hash(second)


JUNK = (None, True, -1, 3, 10**30, 1.5, float("nan"), "", "b", "1", [], [None], [1, "a"], {}, {"a": 1}, [[1]])


@pytest.mark.parametrize("name", ["page_train", "page_toy", "page_translate", "page_direction"])
def test_random_requests_are_answered_or_refused(context, name):
    pick = random.Random(3)
    for _ in range(60):
        setting = pick.choice(("layers", "heads", "positions", "dropout", "seed", "x"))
        recipe = {
            "corpus": pick.choice(JUNK),
            "settings": pick.choice((*JUNK, {setting: pick.choice(JUNK)})),
            "updates": pick.choice(JUNK),
        }
        data = {**recipe, "from": pick.choice(JUNK), "recipe": pick.choice((*JUNK, recipe)), "entry": "toy"}
        try:
            assert list(parts(context, name, fields=data)) or name == "page_train"
        except ValueError:
            pass
        except Exception as error:
            pytest.fail(f"{name} {data}: {error!r}")


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {},
        {"corpus": "a | b"},
        {**RECIPE, "more": 1},
        {**RECIPE, "settings": {"layers": None}},
        {**RECIPE, "updates": 1e9},
    ],
)
def test_invalid_recipes_are_refused(context, wrong):
    for body in ({"address": {"text": "a", "recipe": wrong or 1}}, {"fields": {"entry": "toy", "recipe": wrong or 1}}):
        with pytest.raises(ValueError):
            last(context, "page_translate", **body)


def test_a_recurrent_toy_shows_its_alignment_and_panels_refuse_it():
    toy = toy_of(network="gru")
    (trace,) = toy.trace_batch(["a b"])
    selection = most_telling(trace)
    assert selection.kind is AttentionKind.ALIGNMENT and Selection().clamp(trace).kind is AttentionKind.ALIGNMENT
    assert set(payload(trace, selection)["kinds"]) == {"alignment"}
    assert any("recurrent" in fact for fact in summarise(trace, toy)["facts"])
    scene = Scene(trace, Selection().clamp(trace), toy)
    acting = [
        panel for panels in registry.PANELS.values() for panel in panels if panel.actions and not panel.of_any_network
    ]
    for panel in acting:  # the page may still send actions of panels that it showed before
        with pytest.raises(ValueError, match="recurrent network"):
            panel.act(scene, {"act": next(iter(panel.actions))}, *initial_values(panel))
    assert len(acting) > 3
    lacking = {entry["why"] for entry in registry.lacking(trace, toy)}
    assert len(lacking) == 1 and "recurrent network" in lacking.pop()
    (verify,) = (panel for panel in registry.PANELS["verify"] if panel.name == "verify")
    *_, last = verify.content(scene)
    failed = [row[0] for row in block_of(last, "table")["rows"] if row[1]["passed"] is False]
    assert failed == ["Drawn on the page = trace"], "no page has drawn the maps in this test"


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
def test_panels_show_a_toy_or_say_which_part_it_lacks(switch, silent):
    toy = toy_of(**switch)
    trace = toy.translate("a b")
    scene = Scene(trace, Selection().clamp(trace), toy)
    panels = [*registry.PANELS["positions"], *registry.PANELS["inside"]]
    unavailable = {panel.name for panel in panels if panel.unmet_needs(scene)}
    for panel in panels:
        if panel.name not in unavailable:
            assert list(panel.content(scene, *initial_values(panel))), panel.name
    assert silent <= unavailable < {panel.name for panel in panels}


def test_the_chart_of_a_switch_agrees_with_its_sentence():
    for switch, lines in train.options()["measured"].items():
        for line in lines:
            values = line["about"].values.get("found", line["about"]).values
            numbers = [f"{value:.3g}" for value in (*line["changed"], *line["default"])]
            assert numbers == [values[name] for name in ("low", "high", "from_", "to")], switch
            assert line["where"].values.get("n") in (None, values["n"], 128), switch


def test_the_sentence_of_a_switch_agrees_with_the_measurements():
    shipped = measure.read()
    for switch, lines in train.switch_effects().items():
        sentences = [line["about"] for line in lines]
        cases = [(switch, update, words) for update, words in zip(train.COMPARED_UPDATES, sentences)]
        elsewhere = [place for place in train.PLACES if f"{place} {switch}" in shipped]
        cases += [
            (f"{place} {switch}", train.PLACES[place][0], words.values["found"])
            for place, words in zip(elsewhere, sentences[len(cases) :], strict=True)
        ]
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
    assert {f"positions_{code}" for code in measure.CODES} | {
        "heads_1",
        "look_ahead_mask",
    } <= train.switch_effects().keys()
