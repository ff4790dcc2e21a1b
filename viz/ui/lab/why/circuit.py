"""The panel that draws the path of a decision: the edges that carry it, and how much of it they keep alone."""

from __future__ import annotations

from functools import lru_cache

from model.analysis import circuits
from model.analysis.circuits.graph import Edge, writer
from model.analysis.circuits.pairs import Pair
from model.analysis.circuits.scores import Circuit
from model.analysis.circuits.tested import Tested
from model.trace.language import Refusal
from model.translator import Translator
from viz.figures.circuit import Drawn, plot_circuit
from viz.ui.desk.scene import Scene
from viz.ui.lab.controls import Slider, Text
from viz.ui.lab.panel import Panel
from viz.ui.lab.why.patch import replaced, second_sentence
from viz.wire import blocks
from viz.wire.experiments.heads import signed
from viz.wire.question import names
from viz.words import say

MOST = 80  # edges that one can still tell apart
LISTED = 12


def shown(scene: Scene, text: str, edges: int) -> list[dict]:
    """The sentence's words to click, and with a second sentence the circuit that tells the two apart."""
    words = second_sentence(scene, text)
    if not text:
        return [words]
    try:
        return [words, *_found(scene, text, edges)]
    except Refusal as error:  # the words stay, so that another one can be clicked
        return [words, blocks.text(error.words, tone="bad")]


def _found(scene: Scene, text: str, edges: int) -> list[dict]:
    circuit, worth, tested = circuit_of(scene, text, edges)
    token, contrast = names(scene.trace, scene.question)
    config = scene.translator.config
    about = f"log p({token}) − log p({contrast})"
    facts = blocks.facts(
        (say("This sentence"), signed(circuit.metric), about),
        (say("The second sentence, after the same prefix"), signed(circuit.changed), about),
        _kept(tested, len(worth), len(circuit.scores)),
    )
    return [
        facts,
        blocks.figure(
            plot_circuit(
                [Drawn(edge.sender, writer(edge.receiver), edge.letter, nats) for edge, nats in worth],
                (config.num_encoder_layers, config.num_decoder_layers),
            ),
            height=380,
            label=say("The circuit"),
        ),
        blocks.text(
            say(
                "Nodes are heads, by number, and feed-forwards (FF). Orange edges speak for {token}, blue ones against "
                "it. All other edges carry what the second sentence puts into them.",
                token=token,
            ),
            tone="note",
        ),
        blocks.table(
            (say("From"), say("into"), say("nats")),
            [
                [blocks.token(edge.sender), blocks.token(edge.receiver), blocks.number(nats)]
                for edge, nats in worth[:LISTED]
            ],
            caption=say(
                "The largest, estimated by EAP-IG (Hanna et al. 2024). Found and tested on this one sentence: another "
                "one may use other edges."
            ),
        ),
    ]


def circuit_of(scene: Scene, text: str, edges: int) -> tuple[Circuit, list[tuple[Edge, float]], Tested]:
    """All edges' scores; the largest, with what each is worth in nats, positive: it speaks for the token; and these
    tested. A Refusal as in pair_of()."""
    pair = pair_of(scene, text)
    circuit = scored(scene.translator, pair)
    tested = circuits.tested(scene.translator, circuit, [pair], shares=(circuit.tried(edges) / len(circuit.scores),))
    return circuit, [(edge, -score) for edge, score in circuit.edges(edges)], tested  # closed, it costs the token


def _kept(tested: Tested, count: int, total: int) -> tuple:
    return (
        say("Kept by {n} of {total} edges", n=count, total=total),
        f"{tested.faithfulness[0]:.0%}",
        say(
            "of the difference, measured by running them alone; as many edges drawn by lot keep {share}",
            share=f"{tested.random[0]:.0%}",
        ),
    )


def pair_of(scene: Scene, text: str) -> Pair:
    """This sentence and the second one, as the question asks. A Refusal, in words, for what cannot be compared."""
    question, trace = scene.question, scene.trace
    if question.contrast_id is None:
        raise Refusal("A circuit needs two tokens to decide between: choose a contrast above.")
    if trace.interventions:
        raise Refusal("This translation was made by a changed model: circuits are of the model as it is.")
    ids = scene.translator.encode(text, trace.direction)
    if len(ids) != len(trace.source_ids):
        raise Refusal(
            "The two sentences have {n} and {m} tokens: a circuit needs as many in both.",
            n=len(trace.source_ids),
            m=len(ids),
        )
    if tuple(ids) == tuple(trace.source_ids):
        raise Refusal("The two sentences are the same.")
    written = scene.case.decoder_ids[0].tolist()
    return Pair(tuple(trace.source_ids), tuple(ids), tuple(written), question.token_id, question.contrast_id)


@lru_cache(maxsize=16)
def scored(translator: Translator, pair: Pair) -> Circuit:
    """Its edges' scores, kept while the size is chosen."""
    return circuits.find(translator, [pair])


PANEL = Panel(
    "why-circuit",
    say("Circuit"),
    say(
        "Change one word: along which edges, from head to head, does the difference reach this token? Look at how few "
        "of them keep the decision."
    ),
    say("Hanna et al. 2024; Mueller et al. 2025"),
    shown,
    controls=(Text(say("Second sentence"), scale=4), Slider(say("Edges"), 3, MOST, 25)),
    fills=replaced,
    paper="https://arxiv.org/abs/2403.17806",
)
