"""Questions of the part above the tabs: translate a sentence, warn about a translation, describe a direction."""

from __future__ import annotations

from collections.abc import Mapping

from attention_atlas.model.trace import interventions_file
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.directions import Route
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.language import Refusal, error_message
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.trust import PROVOKED, SIGNALS, SignalScore
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz import directions
from attention_atlas.viz.explorer.explorer import explorer_payload
from attention_atlas.viz.maps.labels import word_label
from attention_atlas.viz.panels import registry
from attention_atlas.viz.panels.panel import TRANSFORMER
from attention_atlas.viz.panels.scene import Scene, not_served
from attention_atlas.viz.questions.registry import Answer, Context, question
from attention_atlas.viz.wire.summary import summarise
from attention_atlas.viz.words import Words, say

SEARCHES = {"1": say("greedy"), "5": say("beam 5")}  # the width of the beam, as in the page's links -> its label
MAX_TOKENS = 128  # of source and target together: for longer texts the warnings would take too long
WARNINGS = {  # signal -> the warning about these words; other: what the model might have written in their place
    "unsure": lambda words, other: say("unsure between “{words}” and “{other}” here", words=words, other=other),
    "unmoved": lambda words, _: say("“{words}” would be just as probable without your sentence", words=words),
    "detached": lambda words, _: say("“{words}” is not based on your sentence", words=words),
    "unread": lambda words, _: say("the model hardly used “{words}”", words=words),
    "repeated": lambda words, _: say("“{words}” is repeated", words=words),
}
LINKS = {  # where the page shows the reason, as the fields of a link
    "unsure": {"tab": "stepper"},
    "unmoved": {"tab": "why", "panel": "why-tokens"},
    "detached": {"tab": "more", "panel": "trust"},
    "unread": {"tab": "more", "panel": "trust"},
    "repeated": {"tab": "explorer", "kind": "cross"},
}


@question(lane="translate")
def page_translate(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the translation at an address, or of a text: the fields of the translation line, and the maps.

    Without an address the fields are text, beam, interventions, and what names the model. The first of these counts:

    recipe                 the network that the visitor trained (also if entry is directions.TOY)
    digest                 of a workshop link: the beginning of the digest of a model that has to be served
    direction, checkpoint  of a link
    entry, pair            the entry of the menu of directions, and the pair of languages if its model has many

    Where a link named the model, or "fills" is set, "fill" in the answer holds the entries that the menus are to show;
    otherwise it is None. A refused text is answered with {"error", "fill"}.
    """
    if address is not None:
        return describe(context, context.trace(address))
    if fields.get("entry") == directions.TOY or fields.get("recipe") is not None:
        recipe = directions.read_recipe(fields)
        translator, code = context.traces.translator_of(Address("", recipe=recipe))
        menus, fills = directions.describe_toy(recipe), fields.get("direction")
    else:
        route = route_of(context.translators, fields)
        translator, code = context.translators[route.label], route.direction
        menus = directions.describe_route(context.translators, route)
        fills = fields.get("direction") or not fields.get("entry")
    beam = beam_of(fields)
    fill = {"beam": beam, **menus} if fills or fields.get("fills") else None
    text, interventions = (str(fields.get(name) or "") for name in ("text", "interventions"))
    if "text" not in fields and fill:  # a workshop link
        text = fill["text"] = next(iter(fill["offer"]["sentences"]), "")
    try:
        trace = translator.translate(text, code, beam=int(beam), interventions=_read_interventions(interventions))
    except ValueError as error:
        return {"error": error_message(error), "fill": fill}
    return {**describe(context, trace), "fill": fill}


def route_of(translators: Translators, fields: Mapping) -> Route:
    """Return the model and direction that the fields name, see page_translate(); the app's first ones for a link to a
    model that is not served."""
    code, checkpoint, entry, pair = (
        str(fields.get(name) or "") for name in ("direction", "checkpoint", "entry", "pair")
    )
    if model := directions.with_digest(translators, fields.get("digest")):
        routes = [route for route in translators.routes if translators[route.label] is model]
        return next((route for route in routes if route.direction == code), routes[0])
    if code or not entry:
        return translators.find(code, checkpoint) or translators.routes[0]
    return directions.route_of(translators, entry, pair)


def beam_of(fields: Mapping) -> str:
    """Return the width of the beam; "1" (greedy) unless it is one of the menu's."""
    beam = str(fields.get("beam") or "")
    return beam if beam in SEARCHES else "1"


def _read_interventions(text: str) -> Interventions:
    try:
        return interventions_file.from_text(text)
    except ValueError as error:
        raise Refusal("The change to the model in this link cannot be read: {why}.", why=str(error)) from error


def describe(context: Context, trace: TranslationTrace) -> dict:
    """Return the translation line and the explorer's maps, and cache the trace for later questions."""
    context.traces.add(trace)
    return {**line(context.translators, trace), "map": explorer_payload(context.translators, trace)}


def line(translators: Translators, trace: TranslationTrace) -> dict:
    """Return the fields of the translation line above the tabs."""
    translator = translators.by_digest(trace.digest)
    if translator is None:
        raise not_served(trace.checkpoint)
    return {
        **summarise(trace, translator, registry.lacking(trace, translator)),
        "model": directions.model_of(translators, trace),
        "doubtful": can_warn(trace, translator),
        "mismatch": directions.mismatch(translators, trace),
    }


@question(lane="translate")
def page_doubts(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the warnings about a translation. They take a pass of the model, so the page asks for them after it has
    painted the map."""
    trace = context.trace(address)
    return {"doubts": warnings_about(trace, context.translators.by_digest(trace.digest))}


def can_warn(trace: TranslationTrace, translator: Translator | None) -> bool:
    """Return whether there can be warnings: the translation is short, the model itself chose it, without interventions,
    the model is a Transformer, and at least one signal proved reliable when it was measured with this model."""
    scene = Scene(trace, made_by=translator)
    is_forced = trace.interventions or (trace.decoding and trace.decoding.given)
    is_long = len(trace.source_ids) + len(trace.target_ids) > MAX_TOKENS
    if translator is None or is_forced or is_long or not TRANSFORMER.is_met(scene):
        return False
    return bool(scene.trust.shown_signals)


def warnings_about(trace: TranslationTrace, translator: Translator | None) -> list[dict]:
    """Return the warnings about a translation; each needs `Scene.reading`, one pass of the model.

    text   which words it is about; right: the share of such warnings that were right; about: how that was measured
    step   the step at which the word was written, None if the words are of the source
    link   the tab that shows the reason
    """
    if not can_warn(trace, translator):
        return []
    scene, answers = Scene(trace, made_by=translator), []
    for name in scene.trust.alarms(scene.reading):
        signal, measurement = SIGNALS[name], scene.trust.best_score(name)
        place = signal.place(scene.reading)
        tokens = trace.source_tokens if signal.in_source else trace.target_tokens
        step = None if signal.in_source or not place else place[0]
        candidates = () if step is None else trace.top_tokens[step]
        other = next((token for token in candidates if token != trace.target_tokens[step]), "")
        answers.append(
            {
                "text": WARNINGS[name](word_label([tokens[i] for i in place]), word_label([other])),
                "right": say("such warnings are right {share} of the time", share=share(measurement)),
                "about": describe_measurement(measurement),
                "step": step,
                "link": LINKS[name],
            }
        )
    return answers


def share(measurement: SignalScore) -> str:
    """Return the share of a signal's alarms that were right, as a percentage."""
    return f"{measurement.right / measurement.alarms:.0%}" if measurement.alarms else "–"


def describe_measurement(measurement: SignalScore) -> Words:
    """Say how often a signal was right: about translations of sources made to lead the model astray, or about
    translations that people labelled. The last number is the AUROC of a baseline that needs no model."""
    numbers = {
        "share": share(measurement),
        "n": measurement.alarms,
        "auroc": f"{measurement.auroc:.2f}",
        "other": f"{measurement.baseline_auroc:.2f}",
    }
    if measurement.on == PROVOKED:
        return say(
            "Right in {share} of {n} alarms on this model's translations of misleading sources; AUROC "
            "{auroc}, best without a model {other}.",
            **numbers,
        )
    return say(
        "Right in {share} of {n} alarms on human-labelled translations; AUROC {auroc}, best without a model {other}.",
        **numbers,
    )


@question(lane="page")
def page_direction(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the menus of languages and the example sentences of a direction.

    fields: entry, of the menu of directions; pair, of a model of many languages; recipe, of the visitor's own network.
    """
    if fields.get("entry") == directions.TOY:
        return directions.describe_toy(directions.read_recipe(fields))
    entry, pair = (str(fields.get(name) or "") for name in ("entry", "pair"))
    route = directions.route_of(context.translators, entry, pair)
    return directions.describe_route(context.translators, route)
