"""Two checkpoints of different sizes behind one page: every panel's controls, at both their ends, serve both."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import cache
from inspect import isgenerator

import gradio as gr
import numpy as np
import pytest
import torch

import app
from model.checkpoint import Checkpoint
from model.trace.address import Address
from model.trace.kinds import AttentionKind
from model.trace.language import Refusal
from model.training.learned import read
from model.translator import Translator
from model.translators import Translators
from tests.conftest import build_tiny_model
from tests.viz.ui.lab.panels import named
from viz.questions.panels import by_name, page_panel
from viz.questions.registry import Context
from viz.questions.traces import Traces
from viz.ui.component import Component
from viz.ui.desk.scene import Scene
from viz.ui.lab.train.learned import RECORD, records
from viz.ui.session import Selection, most_telling


@pytest.fixture(scope="module")
def small_translator(tokenizer) -> Translator:
    """Narrower, shallower and shorter than the tiny one, with other layers and heads, and post-norm."""
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
    checkpoint = Checkpoint("small", model, tokenizer, ("en-de",), {}, "5" * 16)
    return Translator(checkpoint, torch.device("cpu"))


@pytest.fixture(scope="module")
def demos(tiny_translator, small_translator) -> Callable[[str], gr.Blocks]:
    """The page of both, by which of them is first."""
    orders = {"small": (small_translator, tiny_translator), "tiny": (tiny_translator, small_translator)}
    return cache(lambda first: app.build_demo(Translators(orders[first])))


def controls_of(demo: gr.Blocks) -> dict[str, list[gr.components.Component]]:
    """Of every panel, by its name: its controls."""
    read = {id_: list(one.inputs) for one in demo.fns.values() for id_, event in one.targets if event == "read"}
    return {
        block.elem_id.removeprefix("panel-"): read.get(block._id, [])
        for block in demo.blocks.values()
        if isinstance(block, Component) and block.elem_id and block.elem_id.startswith("panel-")
    }


def ends(control: gr.components.Component) -> list:
    """The values at which a control begins and ends, and what it starts with."""
    if isinstance(control, gr.Slider):
        return [control.minimum, control.maximum, control.value]
    return [value for _, value in control.choices] if hasattr(control, "choices") else [control.value, "A boat.", ""]


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
    few_sentences, tiny_translator, small_translator, demos, first, shown
) -> None:
    """The larger of the two meets the ends of its own controls in test_lab.py, too."""
    demo, asked = demos(first), 0
    trace = {"small": small_translator, "tiny": tiny_translator}[shown].translate("A red boat.")
    translators = Translators([small_translator, tiny_translator])
    context, address = Context(translators, Traces(translators)), Address.of(trace)
    for name, controls in controls_of(demo).items():
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
            except Refusal:  # words may be refused, in words; a slider or a menu never
                assert any(isinstance(control, gr.Textbox) for control in controls), (name, values)
            asked += 1
    assert asked > 60
    assert most_telling(trace).fitted(trace) == most_telling(trace)


def test_a_slider_reaches_the_end_of_the_largest_model(tiny_translator, demos) -> None:
    sliders = {
        control.label if isinstance(control.label, str) else control.label.key: control.maximum
        for controls in controls_of(demos("small")).values()
        for control in controls
        if isinstance(control, gr.Slider)
    }
    assert sliders["Pair of dimensions on the circle"] == tiny_translator.config.d_model // 2 - 1
    assert sliders["Layer"] == 3 and sliders["Head"] == 4


def test_sliders_of_a_tab_that_was_never_open_end_where_the_sentence_does(tiny_translator, demos) -> None:
    """The page sends nothing for them yet."""
    demo, trace = demos("tiny"), tiny_translator.translate("A red boat.")
    measuring = [one for one in demo.fns.values() if one.fn and one.fn.__name__ == "ends"]
    assert measuring and not any(one.preprocess for one in measuring)
    for one in measuring:
        count = len(one.inputs) - 1
        found = one.fn(trace, *[None] * count)
        for update in found if count > 1 else [found]:
            assert update["maximum"] >= 1 and "value" not in update
        beyond = one.fn(trace, *[10_000] * count)
        assert all(update["value"] == update["maximum"] for update in (beyond if count > 1 else [beyond]))


def test_sliders_of_records_end_with_the_history_of_the_model(shipped_translators, tiny_translator) -> None:
    for translator in shipped_translators.all:
        assert RECORD.until(None, translator) == len(read(translator.folder).updates)
    assert records(None, tiny_translator) == 0  # none was recorded


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
    (frames,) = (block["frames"] for block in shown if block["type"] == "frames")
    maps = found.maps(AttentionKind.CROSS, 0)[:, 2, 4]
    assert len(frames) == len(maps)
    for record in (0, -1):
        (drawn,) = (block["maps"] for block in frames[record] if block["type"] == "maps")
        for one, expected in zip(drawn, (maps[record], maps[-1])):
            values = np.frombuffer(base64.b64decode(one["data"]), "<f4").reshape(one["shape"])
            np.testing.assert_array_equal(values, expected.astype(np.float32))
    axes = [block["figure"]["layout"]["xaxis"] for block in shown if block["type"] == "figure"]
    assert [axis["type"] for axis in axes] == ["log", "log"] and axes[0]["ticktext"][0] == "0"
