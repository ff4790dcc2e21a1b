"""The panel that draws the path of a decision: the edges that carry it, and how much of it they keep alone."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from attention_atlas.model.analysis.circuits.circuit import Circuit, decode_with_edges
from attention_atlas.model.analysis.circuits.faithfulness import FaithfulnessCurves
from attention_atlas.model.analysis.circuits.graph import Edge
from attention_atlas.model.analysis.circuits.pairs import Pair
from attention_atlas.model.analysis.circuits.passes import ScoringMethod
from attention_atlas.model.serve.work import Work
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.why.evidence import to_jsonable
from attention_atlas.model.trace.words import word_groups
from attention_atlas.viz.export.explained import Explained
from attention_atlas.viz.figures.circuit import Drawn, Shape, plot_circuit, spoken
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels import circuit_study
from attention_atlas.viz.panels.circuit_study import circuit_of, pair_of, scored
from attention_atlas.viz.panels.downloads import EXPORT, about_step, exports, file, question_fields
from attention_atlas.viz.panels.menus import most_heads
from attention_atlas.viz.panels.panel import Panel, Slider, Text
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.panels.why.patch import replaced, with_words
from attention_atlas.viz.wire import blocks, fields
from attention_atlas.viz.wire.file import File
from attention_atlas.viz.wire.heads import format_effect
from attention_atlas.viz.wire.question import token_names, with_minus_sign
from attention_atlas.viz.wire.survey import work_block
from attention_atlas.viz.words import Words, say, say_plural

MOST = 80  # edges that one can still tell apart
LISTED = 12
MEASURED, ALONE = "measured", "alone"
SECONDS = 8.0  # for a translation, which then ends
MIB = "mib"
METHODS = {ScoringMethod.EAP: "EAP", ScoringMethod.EAP_IG: "EAP-IG"}
UNEQUAL = say(
    "The two sentences have different numbers of tokens: which token of one would stand for which of the other? So "
    "only what the decoder's parts write is compared, from cross-attention on."
)
KINDS = {
    ("encoder", "self"): AttentionKind.ENCODER_SELF,
    ("decoder", "self"): AttentionKind.DECODER_SELF,
    ("decoder", "cross"): AttentionKind.CROSS,
}


def shown(scene: Scene, text: str, edges: int, typed: str) -> list[dict]:
    """The sentence's words to click, and with a second sentence the circuit that tells the two apart."""
    return with_words(scene, text, lambda: _found(scene, text, edges, typed))


def _found(scene: Scene, text: str, edges: int, typed: str) -> list[dict]:
    pair = pair_of(scene, text)
    study = circuit_study.study_of(scene, pair, text, typed)
    studied = scene.result(study)
    circuit, worth, tested = circuit_of(scene, pair, edges, studied)
    own = scored(scene.translator, pair)
    token, contrast = token_names(scene.trace, scene.question)
    config = scene.translator.config
    about = f"log p({token}) − log p({contrast})"
    # Of sentences that are not aligned nothing of the encoder is drawn.
    encoder, begin = (config.num_encoder_layers, changed_words(scene, pair)) if pair.is_aligned else (0, "")
    shape = Shape(encoder, config.num_decoder_layers, most_heads(config), (begin, token))
    drawn = [Drawn(edge.sender, edge.reader, edge.letter, nats) for edge, nats in worth]
    clicks = _clicks(scene, pair, worth)
    best, random = (round(100 * float(curve.faithfulness[0])) for curve in (tested.best, tested.random))
    return [
        blocks.facts(
            (say("This sentence"), format_effect(own.metric), about),
            (say("The second sentence, after the same prefix"), format_effect(own.changed), about),
            (
                say("Kept by {n} of {total} edges", n=len(worth), total=int(circuit.cuttable.sum())),
                with_minus_sign(f"{best} %"),
                say(
                    "of the difference in this sentence, measured by running them alone; as many random edges keep "
                    "{share}",
                    share=with_minus_sign(f"{random} %"),
                ),
            ),
        ),
        *([] if pair.is_aligned else [blocks.text(UNEQUAL, tone="note")]),
        *circuit_study.parting(scene, pair, own),
        blocks.figure(plot_circuit(drawn, shape), height=400, upright=660, label=say("The circuit"), clicks=clicks),
        blocks.slot(MEASURED, blocks.note("Measuring …")),
        blocks.note(
            "Orange edges speak for {token}, blue ones against it; all others carry what the second sentence "
            "puts into them. Round: self-attention, by its head's number; diamonds: cross-attention; FF: "
            "feed-forward. Point at an edge, or go there with the arrow keys, to measure it. Choose a head to "
            "open its map.",
            token=token,
        ),
        blocks.slot(ALONE, blocks.action(say("Cut all other edges and translate"), blocks.to_act(ALONE, ALONE))),
        exports(more={MIB: say("As the Mechanistic Interpretability Benchmark writes circuits")}, picture=False),
        blocks.folded(say("The largest edges"), _table(circuit, worth, clicks)),
        *(circuit_study.curves(studied) if studied else [_invitation(study)]),
    ]


def changed_words(scene: Scene, pair: Pair) -> str:
    """Those of the sentence in whose place the second one has others."""
    tokens, changed = scene.trace.source_tokens, {*circuit_study.changed(pair)}
    groups = [group for group in word_groups(tokens) if changed & {*group}]
    return " ".join(labels.word_label([tokens[i] for i in group]) for group in groups)


def _table(circuit: Circuit, worth: list[tuple[Edge, float]], clicks: dict[str, dict]) -> dict:
    def node(name: str) -> dict | str:
        return blocks.button(spoken(name), clicks[name]) if name in clicks else spoken(name)

    return blocks.table(
        blocks.headings("From", "into", "by", "nats", "exactly"),
        [
            [
                node(edge.sender),
                node(edge.reader),
                edge.letter,
                blocks.number(nats),
                blocks.button(say("Measure"), _to_measure(edge)),
            ]
            for edge, nats in worth[:LISTED]
        ],
        caption=say("Estimated by {method}, over {n} sentences.", method=METHODS[circuit.method], n=len(circuit.pairs)),
    )


def _clicks(scene: Scene, pair: Pair, worth: list[tuple[Edge, float]]) -> dict[str, dict]:
    """By a node's or an edge's name, where a click on it leads."""
    heads = {name for edge, _ in worth for name in (edge.sender, edge.reader) if name.count(".") == 3}
    found = {name: _to_map(scene, pair, name) for name in heads}
    return found | {Drawn(e.sender, e.reader, e.letter, 0).name: _to_measure(e) for e, _ in worth}


def _to_measure(edge: Edge) -> dict:
    return blocks.to_act(MEASURED, MEASURED, sender=edge.sender, receiver=edge.receiver)


def _to_map(scene: Scene, pair: Pair, name: str) -> dict:
    """A head's map with the cell in question: what the row that decides reads most; of the encoder, which token reads
    the changed word most."""
    side, layer, part, head = name.split(".")
    kind = KINDS[side, part]
    weights = scene.trace.maps(kind).weights[int(layer), int(head)]
    if kind is AttentionKind.ENCODER_SELF:
        key = circuit_study.changed(pair)[0]
        cell = int(weights[:, key].argmax()), key
    else:
        query = scene.question.step
        cell = query, int(weights[query].argmax())
    return blocks.to_head(kind.value, int(layer), int(head), cell)


def _invitation(study: Work) -> dict:
    return work_block(
        study.key,
        say("Test on other sentences"),
        say(
            "This circuit is of one sentence: another one may use other edges. Put other words into both sentences, "
            "and a circuit is found on some of these and tested on the rest."
        ),
    )


def measured(scene: Scene, data: Mapping[str, object], text: str, edges: int, typed: str) -> list[dict]:
    """An edge's exact effect, its two nodes', and the direct one of what writes."""
    pair = pair_of(scene, text)
    sender, receiver = fields.text(data, "sender"), fields.text(data, "receiver")
    edge = Edge(sender, receiver)
    circuit = scored(scene.translator, pair)
    if edge not in circuit.graph.edge_numbers:
        raise Refusal("There is no such edge: {edge}", edge=str(edge))
    ways: list[tuple[Words, str]] = [(say("this edge alone"), receiver)]
    if edge.letter:
        ways.append((say("queries, keys and values together"), edge.reader))
    if receiver != "logits" and Edge(sender, "logits") in circuit.graph.edge_numbers:
        ways.append((say("{node} directly into the logits", node=spoken(sender)), "logits"))
    ways.append((say("{node}, all of its edges: its total effect", node=spoken(sender)), ""))
    losses = circuit.path_effects(sender, [reader for _, reader in ways])
    return [
        blocks.paragraph(
            "{edge}: what the token loses, in nats, with all that follows, if it carries what the second sentence "
            "puts there.",
            edge=Drawn(sender, edge.reader, edge.letter, 0.0).spoken,
        ),
        blocks.facts(*((name, format_effect(lost), say("measured")) for (name, _), lost in zip(ways, losses))),
    ]


def alone(scene: Scene, data: Mapping[str, object], text: str, edges: int, typed: str) -> list[dict]:
    """The translation with every other edge cut, as far as it comes in seconds."""
    pair = pair_of(scene, text)
    circuit = circuit_study.found(scene, pair, scene.result(circuit_study.study_of(scene, pair, text, typed)))
    until, ids, ended = time.monotonic() + SECONDS, [], False
    for written in decode_with_edges(
        circuit, circuit.select_edges(circuit.candidates_for(edges)), pair, scene.trace.direction
    ):
        ids = written
        if ended := time.monotonic() > until:
            break
    tokenizer, direction = scene.translator.tokenizer, scene.trace.direction
    other = circuit_study.written(scene.translator, pair.changed_ids, direction)
    return [
        blocks.cards(
            (say("As it is"), scene.trace.translation, scene.trace.source_text),
            (
                say_plural("By {n} edge alone", "By {n} edges alone", n=edges),
                tokenizer.decode(ids) + (" …" if ended else ""),
                say("Measured: all other edges carry what the second sentence puts into them."),
            ),
            (say("The second sentence"), tokenizer.decode(other), text),
        )
    ]


def as_file(scene: Scene, data: Mapping[str, object], text: str, edges: int, typed: str) -> File:
    """The circuit as a file: its edges, or as MIB writes circuits."""
    pair = pair_of(scene, text)
    studied = scene.result(circuit_study.study_of(scene, pair, text, typed))
    circuit, worth, tested = circuit_of(scene, pair, edges, studied)
    if data.get("format") == MIB:
        written = json.dumps(circuit.to_mib(edges)).encode()
        return File(f"{about_step('circuit', scene)}.{MIB}.json", "application/json", written)
    return file(data, Explained(as_plain(scene, text, circuit, worth, tested)), about_step("circuit", scene))


def as_plain(
    scene: Scene, text: str, circuit: Circuit, worth: list[tuple[Edge, float]], tested: FaithfulnessCurves
) -> dict:
    """The question and its circuit, for files and the API."""
    return to_jsonable(
        {
            **question_fields(scene),
            "second": text,
            "other": circuit.changed,
            "edges": [{"sender": e.sender, "receiver": e.receiver, "nats": nats} for e, nats in worth],
            "total": int(circuit.cuttable.sum()),
            "kept": float(tested.best.faithfulness[0]),
            "random": float(tested.random.faithfulness[0]),
        }
    )


PANEL = Panel(
    "why-circuit",
    say("Circuit"),
    say(
        "Change one word: along which edges, from head to head, does the difference reach this token? Look at how few "
        "of them keep the decision."
    ),
    say("Hanna et al. 2024; Mueller et al. 2025"),
    shown,
    controls=(
        Text(say("Second sentence"), scale=4),
        Slider(say("Edges"), 3, MOST, 25),
        Text(
            say("Other words, for a test on other sentences (empty: the nearest)"),
            placeholder="Hund = Katze, Vogel; Garten = Park",
            scale=4,
        ),
    ),
    actions={MEASURED: measured, ALONE: alone, EXPORT: as_file},
    fill_text=replaced,
    paper="https://arxiv.org/abs/2403.17806",
)
