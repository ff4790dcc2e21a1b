"""Two checkpoints of different sizes on one page: every panel works for both at both ends of its controls."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isgenerator

import numpy as np
import pytest

from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.training.learned import read
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.panels import registry
from attention_atlas.viz.panels.scene import Scene, Selection, most_telling
from attention_atlas.viz.panels.train.learned import RECORD, count_records
from attention_atlas.viz.questions.panels import by_name, page_panel
from attention_atlas.viz.questions.registry import Context
from attention_atlas.viz.questions.traces import Traces
from attention_atlas.viz.words import for_page, join
from tests.conftest import build_tiny_model, make_translator
from tests.viz.panels.panels import block_of, blocks_of, named, numbers_of


@pytest.fixture(scope="module")
def small_translator(tokenizer) -> Translator:
    """Return a post-norm translator that is narrower, shallower and shorter than the tiny one."""
    model = build_tiny_model(
        tokenizer,
        d_model=12,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=2,
        d_feedforward=10,
        max_length=24,
        norm_first=False,
    )
    return make_translator(model, tokenizer, directions=("en-de",))


@pytest.fixture(scope="module")
def controls_of(tiny_translator, small_translator) -> Callable[[str], dict[str, list[dict]]]:
    """Return a function: which model is served first -> panel name -> descriptions of its controls."""
    orders = {"small": (small_translator, tiny_translator), "tiny": (tiny_translator, small_translator)}

    def controls(first: str) -> dict[str, list[dict]]:
        configs = [translator.config for translator in orders[first]]
        tabs = [registry.describe_tab(tab, configs) for tab in registry.TABS]
        panels = [panel for tab in tabs for group in tab["groups"] for panel in group["panels"]]
        return {panel["name"]: list(panel["controls"].values()) for panel in panels}

    return controls


def ends(control: dict) -> list:
    """Return the lowest, the highest and the initial value of a control, or all of its options."""
    if control["type"] == "slider":
        return [control["low"], control["high"], control["start"]]
    return list(dict(control["options"])) if control["type"] == "choice" else [control["start"], "A boat.", ""]


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "shown"),
    [
        ("tiny", "small"),
        *(
            pytest.param(*case, marks=pytest.mark.endure)
            for case in (("tiny", "tiny"), ("small", "tiny"), ("small", "small"))
        ),
    ],
)
def test_every_panel_serves_models_of_every_size(
    few_sentences, tiny_translator, small_translator, controls_of, first, shown
) -> None:
    """test_lab.py also tries the ends of the controls of the larger model alone."""
    count = 0
    trace = {"small": small_translator, "tiny": tiny_translator}[shown].translate("A red boat.")
    translators = Translators([small_translator, tiny_translator])
    context, address = Context(translators, Traces(translators)), Address.of(trace)
    for name, controls in controls_of(first).items():
        if name == "verify":
            continue  # it has no controls, and takes seconds
        choices = [ends(control) for control in controls]
        for i in range(max(map(len, choices), default=1)):
            values = [options[i % len(options)] for options in choices]
            fields = {
                "panel": name,
                "controls": dict(zip(by_name()[name].fields, values)),
                "selection": {"kind": "cross", "layer": 9, "head": 9, "query": 99},
            }
            try:
                answer = page_panel(context, address, fields)
                assert all("blocks" in part for part in list(answer)[:-1]) if isgenerator(answer) else answer["blocks"]
            except Refusal:  # only a typed text may be refused
                assert any(control["type"] == "text" for control in controls), (name, values)
            count += 1
    assert count > 60
    assert most_telling(trace).clamp(trace) == most_telling(trace)


def test_a_slider_reaches_the_end_of_the_largest_model_until_one_answers(
    tiny_translator, small_translator, controls_of
) -> None:
    sliders = {
        str(control["label"]): control["high"]
        for controls in controls_of("small").values()
        for control in controls
        if control["type"] == "slider"
    }
    assert sliders["Pair of dimensions on the circle"] == tiny_translator.config.d_model // 2 - 1
    assert sliders["Layer"] == 3 and sliders["Head"] == 4
    translators = Translators([small_translator, tiny_translator])
    context, trace = Context(translators, Traces(translators)), small_translator.translate("A red boat.")
    answer = page_panel(context, Address.of(trace), {"panel": "position-rotation"})
    assert answer["ends"]["set2"] == small_translator.config.d_model // 2 - 1


def test_sliders_of_records_end_with_the_history_of_the_model(shipped_translators, tiny_translator) -> None:
    for translator in shipped_translators.all:
        assert RECORD.upper_bound(None, translator) == len(read(translator.folder).updates)
    assert count_records(None, tiny_translator) == 0  # none was recorded


@pytest.mark.parametrize("direction", ["en-de", "en-fr"])
def test_a_history_opens_with_a_sentence_of_the_direction(shipped_translators, direction) -> None:
    translator = shipped_translators[direction]
    scene = Scene(translator.translate("A dog sleeps.", direction), Selection(), translator)
    first = next(probe for probe in read(translator.folder).probes if probe["direction"] == direction)
    assert first["source"] in str(named("learned").content(scene, 0, "", 0, 0)[0])


def test_a_history_opens_with_its_first_record_beside_its_last(shipped_translators) -> None:
    translator = shipped_translators["de-en"]
    scene = Scene(translator.translate("Ein Hund schläft.", "de-en"), Selection(), translator)
    shown, found = named("learned").content(scene, 0, "cross", 3, 5), read(translator.folder)
    frames = block_of(shown, "frames")["frames"]
    maps = found.maps(AttentionKind.CROSS, 0)[:, 2, 4]
    assert len(frames) == len(maps)
    for record in (0, -1):
        for one, expected in zip(block_of(frames[record], "maps")["maps"], (maps[record], maps[-1])):
            np.testing.assert_array_equal(numbers_of(one), expected.astype(np.float32))
    axes = [block["figure"]["layout"]["xaxis"] for block in blocks_of(shown, "figure")]
    assert [axis["type"] for axis in axes] == ["log", "log"] and axes[0]["ticktext"][0] == for_page(join([0]))
