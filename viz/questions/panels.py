"""Questions of the panels, and of the line above the panels of the tab "Why"."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping

from attention_atlas.model.analysis.why import questions
from attention_atlas.model.analysis.why.methods import occlusion
from attention_atlas.model.trace import is_integer
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.directions import language_of, parse_direction
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.attribution import Against
from attention_atlas.model.translators import Translators
from attention_atlas.viz import directions
from attention_atlas.viz.maps.labels import shorten
from attention_atlas.viz.panels import registry
from attention_atlas.viz.panels.panel import Panel, Slider, Text
from attention_atlas.viz.panels.scene import PageQuestion, Scene, Selection, read_question
from attention_atlas.viz.questions.registry import Answer, Context, question
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire import fields as field
from attention_atlas.viz.wire.address import link_fields
from attention_atlas.viz.wire.file import File
from attention_atlas.viz.wire.question import headline, headline_in_nats, losses_payload, question_payload
from attention_atlas.viz.wire.summary import INVITATION
from attention_atlas.viz.words import Words, say

EMPTY = {"blocks": [blocks.text(INVITATION)]}  # while nothing is translated


@question(lane="model")
def page_panel(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the content of a panel: {blocks, about, lacks, controls, ends, suggested}. A panel that computes in parts
    yields such an answer with "more" for each part, and {"more": False} at the end.

    The fields are panel (its name), controls (name -> value), selection, asked, and for a panel that checks the page
    drawn. A missing control gets its initial value for this sentence. "ends" are the sliders' ends for this sentence
    and its model, and "suggested" are the examples in empty texts."""
    panel = field.read_entry(fields, "panel", by_name())
    if address is None:
        return EMPTY
    scene = scene_of(context, address, fields)
    values = values_of(panel, scene, fields)
    named = dict(zip(panel.fields, panel.controls))
    missing = panel.unmet_needs(scene)
    coerced = panel.coerce(scene, values)
    frame = {
        "about": about(scene.trace),
        "lacks": bool(missing),
        "controls": dict(zip(panel.fields, coerced)),
        "ends": {
            name: control.upper_bound(scene.trace, scene.translator)
            for name, control in named.items()
            if isinstance(control, Slider)
        },
        "suggested": {
            name: control.suggest(scene, *coerced)
            for name, control in named.items()
            if isinstance(control, Text) and control.suggest
        },
    }
    if missing:
        return {"blocks": explain_missing(context.translators, panel, scene, frame["controls"]), **frame}
    content = panel.content(scene, *values)
    if isinstance(content, Iterator):
        return _in_parts(content, frame)
    return {"blocks": blocks.arrange(content), **frame}


def explain_missing(translators: Translators, panel: Panel, scene: Scene, controls: Mapping[str, object]) -> list[dict]:
    """Return why this model cannot show a panel, and a button that opens the panel with a model that can.

    The other model translates the same text, or its own first example if it reads another language.
    """
    trace = scene.trace
    model = directions.model_of(translators, trace)
    content = [
        blocks.paragraph("Not available for {model}: {panels}.", model=model, panels=panel.title),
        *(blocks.text(need.message) for need in panel.unmet_needs(scene)),
    ]
    route = registry.route_with(panel, trace, translators)
    if route is None:
        return [*content, blocks.note("No model that is served here has it.")]
    same = language_of(route.source) == language_of(parse_direction(trace.direction)[0])
    examples = directions.sentences(translators, route)
    link = blocks.to_link(
        text=trace.source_text if same or not examples else examples[0],
        direction=route.direction,
        checkpoint=route.checkpoint,
        tab=registry.tab_of(panel).name,
        panel=panel.name,
        **controls,
    )
    return [
        *content,
        blocks.action(say("Open it with {model}", model=directions.name_of(translators, route)), link),
    ]


def _in_parts(content: Iterator, frame: dict) -> Generator[dict]:
    for blocks_so_far in content:
        yield {"blocks": blocks.arrange(blocks_so_far), **frame, "more": True}
    yield {"more": False}


@question(lane="model")
def page_panel_act(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the blocks for a slot of a panel, or a file.

    The fields are those of page_panel, act (the name of the action), and data from the block.
    """
    panel = field.read_entry(fields, "panel", by_name())
    if address is None:
        return EMPTY
    scene = scene_of(context, address, fields)
    data = {**_read_object(fields, "data"), "act": fields.get("act")}
    answer = panel.act(scene, data, *values_of(panel, scene, fields))
    return answer if isinstance(answer, File) else {"blocks": answer, "about": about(scene.trace)}


@question(lane="model")
def page_panel_fill(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return {fill}, the new text of a panel's text field. The fields are those of page_panel, and data from the
    block."""
    panel = field.read_entry(fields, "panel", {name: panel for name, panel in by_name().items() if panel.fill_text})
    scene = scene_of(context, address, fields)
    return {"fill": panel.call(panel.fill_text, scene, _read_object(fields, "data"), *values_of(panel, scene, fields))}


@question(lane="translate")
def page_panel_translate(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return {opens, asks}: the address of the translation that a panel opens in all tabs, and the {step, token} that
    the tab "Why" is then to explain, if any. The fields are those of page_panel, and data from the block."""
    panel = field.read_entry(fields, "panel", {name: panel for name, panel in by_name().items() if panel.translate})
    scene, data = scene_of(context, address, fields), _read_object(fields, "data")
    panel.require(scene)
    trace = panel.translate(scene, data)
    context.traces.add(trace)
    asks = {name: value for name in ("step", "token") if is_integer(value := data.get(name))}
    return {"opens": Address.of(trace).to_plain(), "asks": asks}


@question(lane="model")
def page_why(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the pinned token, its contrast, and the measured headline (answer_why). fields: asked, selection."""
    return {"invitation": INVITATION} if address is None else answer_why(scene_of(context, address, fields))


def answer_why(scene: Scene) -> dict:
    """Return what stands above the panels of the tab "Why": the tokens, the question and its headline.

    most     how many tokens, from the first, can be asked about; 0 if the network cannot be asked
    refused  in place of the headline: why this question cannot be answered
    """
    trace, question = scene.trace, scene.question
    most = scene.num_askable
    frame = {
        "asked": scene.page_question.for_trace(trace).to_plain(),
        "about": trace.key,
        **link_fields(trace, trace.decoding),
        **question_payload(trace, question, questions.list_contrasts(trace, question.step)),
        "most": most,
        "limit": len(trace.source_ids) + most,
    }
    try:
        case = scene.words_case
    except Refusal as error:
        return {**frame, "refused": error.words, "most": most if question.step >= most else 0}
    losses = occlusion.measure_losses(case)
    tokens = scene.translator.tokenizer.tokens(losses.ids.ravel().tolist())
    return {
        **frame,
        "headline": headline(trace, question, losses, case.columns),
        "exact": headline_in_nats(losses, case.columns),
        "picture": losses_payload(question, losses, case.columns, tokens),
    }


@question(lane="model")
def page_removals(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return {removals}: the probability of a written token as it is and without each word, see losses_payload().

    The field is step. The numbers are those of the tab "Why"; all words are removed in one batch."""
    if not is_integer(step := fields.get("step"), 0):
        raise Refusal("The page asked for something unknown: {what}", what=f"step {step!r:.40}")
    trace = context.trace(address)
    page_question = PageQuestion.of(trace, min(step, len(trace.target_ids) - 1), Against.NOTHING)
    scene = Scene(trace, made_by=context.translators.by_digest(trace.digest), page_question=page_question)
    case = scene.words_case
    losses = occlusion.measure_losses(case)
    tokens = scene.translator.tokenizer.tokens(losses.ids.ravel().tolist())
    return {"removals": {"step": scene.question.step, **losses_payload(scene.question, losses, case.columns, tokens)}}


@question(lane="translate")
def page_ask(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return {asked}: the pinned token and its contrast, which the page keeps. Raises Refusal if it cannot be asked.

    The fields are step, the contrast (token, an id; or text; or alone), and asked, the question before.
    """
    scene = scene_of(context, address, fields)
    question = read_question(fields, scene.trace, scene.page_question)
    question.question(scene.translator, scene.trace)  # raises a Refusal if it cannot be asked
    return {"asked": question.to_plain()}


def scene_of(context: Context, address: Address | None, fields: Mapping) -> Scene:
    """Return the scene of a question. The fields are selection, asked and begun, as the page keeps them, and drawn."""
    trace = context.trace(address)
    return Scene(
        trace,
        Selection.from_plain(fields.get("selection")).clamp(trace),
        context.translators.by_digest(trace.digest),
        PageQuestion.from_plain(fields.get("asked")),
        context.translators,
        fields.get("drawn"),
        context.traces.recorded,
        frozenset(field.read_list({"begun": [], **fields}, "begun", str)),
    )


def by_name() -> dict[str, Panel]:
    """Return all panels by their names."""
    return {panel.name: panel for panels in registry.PANELS.values() for panel in panels}


def _read_object(fields: Mapping, name: str) -> Mapping:
    """Return a field that holds an object; {} if it is missing or something else."""
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def values_of(panel: Panel, scene: Scene, fields: Mapping) -> list[object]:
    """Return the values of a panel's controls; for a missing one its initial value."""
    values = _read_object(fields, "controls")
    return [
        values[name] if name in values else control.initial(scene.trace, scene.translator)
        for name, control in zip(panel.fields, panel.controls)
    ]


def about(trace: TranslationTrace) -> Words:
    """Say which translation a panel is about, and how it was decoded."""
    return say(
        "{source} → {target} · decoding: {how}",
        source=shorten(trace.source_text, 60),
        target=shorten(trace.translation, 60) or say("(nothing)"),
        how=trace.decoded_by,
    )
