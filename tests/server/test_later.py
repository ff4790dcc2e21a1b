"""What a page costs before its tabs are opened, and that nothing is missing once they are."""

from __future__ import annotations

import json
from copy import copy

import gradio as gr
import pytest
from gradio.blocks import BlocksConfig

import app
from model.translators import Translators
from viz.ui.gradio6.lazy_tabs import postpone
from viz.ui.tabs import TABS

LARGEST = 1000  # bytes of a tab that was not opened


@pytest.fixture(scope="module")
def demo(tiny_translator) -> gr.Blocks:
    return app.build_demo(Translators([tiny_translator]))


@pytest.fixture(scope="module")
def page(demo) -> dict:
    """What Gradio sends of the description with its only page."""
    listed = demo.config["page"][""]
    return {
        "layout": listed["layout"],
        **{
            part: [one for one in demo.config[part] if one["id"] in listed[part]]
            for part in ("components", "dependencies")
        },
    }


@pytest.fixture(scope="module")
def answers(demo) -> dict[int, dict]:
    """A tab's id -> what its opening is answered with."""
    openings = [function.renderable for function in demo.fns.values() if function.renderable]
    return {opening.container_id: demo.default_config.get_config(opening) for opening in openings}


def size(value: object) -> int:
    return len(json.dumps(value, default=str))


def ids(config: dict, part: str) -> set[int]:
    return {one["id"] for one in config[part]}


def test_a_tab_that_was_not_opened_costs_a_kilobyte_at_most(page, answers) -> None:
    assert len(answers) == len(TABS) - 1
    for tab, answer in answers.items():
        parts = ids(answer, "components")
        mine = [
            *(one for one in page["components"] if one["id"] in parts),
            *(one for one in page["dependencies"] if parts & {target for target, _ in one["targets"]}),
        ]
        assert {one["id"] for one in mine if "type" in one} == {tab}
        assert size(mine) <= LARGEST < size(answer), size(mine)


def test_page_and_answers_together_are_what_gradio_describes(demo, page, answers) -> None:
    """But for what endpoints alone read."""
    whole = BlocksConfig.get_config(demo.default_config)
    unseen = {one["id"] for one in whole["components"] if one["type"] == "api"}
    assert unseen and not unseen & ids(page, "components")
    for part, left_out in (("components", unseen), ("dependencies", set())):
        told = ids(page, part).union(*(ids(answer, part) for answer in answers.values()))
        assert ids(whole, part) - left_out == told

    def described(layout: dict) -> set[int]:
        return {layout["id"]}.union(*(described(child) for child in layout.get("children", ())))

    for part in (page, *answers.values()):
        assert described(part["layout"]) - {demo._id} == ids(part, "components")


def test_no_listener_is_lost_to_those_that_come_with_a_tab(demo, answers) -> None:
    """Gradio's page forgets who listened to an event before when a listener to it comes: all of them must come."""
    for answer in answers.values():
        parts, listeners = ids(answer, "components"), ids(answer, "dependencies")
        keys = {tuple(target) for one in answer["dependencies"] for target in one["targets"]}
        for i, function in demo.fns.items():
            own = any(target in parts for target, _ in function.targets)
            if keys.intersection(function.targets) and ("load" not in dict(map(reversed, function.targets)) or own):
                assert i in listeners, function


def test_a_tab_is_asked_for_once(demo, answers) -> None:
    for tab, answer in answers.items():
        asks = [one for one in answer["dependencies"] if [tab, "select"] in list(map(list, one["targets"]))]
        assert [one["backend_fn"] for one in asks] == [False]


def test_what_a_visitor_changed_meanwhile_is_described_as_it_is_now() -> None:
    with gr.Blocks() as page:
        with gr.Tab("One") as tab:
            box = gr.Textbox("before")
        postpone([tab])
    mine = copy(page.default_config)
    mine.blocks[box._id] = gr.Textbox("after", render=False)
    for config, value in ((mine, "after"), (page.default_config, "before")):
        answer = config.get_config(config.openings[0])
        assert [one["props"]["value"] for one in answer["components"] if one["id"] == box._id] == [value]
