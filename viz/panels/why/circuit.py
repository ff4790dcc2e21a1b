"""The panel "Circuit": the edges that carry a decision between two tokens, and how much of it they keep alone.

The circuit is found from this sentence and a second one. On request it is found on many pairs of sentences and tested
on others.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from attention_atlas.model.analysis import circuits
from attention_atlas.model.analysis.circuits.circuit import Circuit, Curve, FaithfulnessCurves, Study, decode_with_edges
from attention_atlas.model.analysis.circuits.graph import Edge, build_graph
from attention_atlas.model.analysis.circuits.pairs import Pair, fill_template, pair_sentences
from attention_atlas.model.analysis.circuits.passes import ScoringMethod
from attention_atlas.model.analysis.why.neighbours import find_fillings
from attention_atlas.model.serve.caches import cached_on_owner
from attention_atlas.model.serve.work import Parts, Work
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.why.evidence import Evidence, to_jsonable
from attention_atlas.model.trace.words import word_groups
from attention_atlas.model.translator import Translator
from attention_atlas.viz.figures.circuit import DrawnEdge, ModelShape, describe_node, plot_circuit
from attention_atlas.viz.figures.curves import plot_curves
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.downloads import EXPORT, about_step, exports, file, question_fields
from attention_atlas.viz.panels.menus import most_heads
from attention_atlas.viz.panels.panel import Panel, Slider, Text
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.panels.why.patch import replace_word, with_words
from attention_atlas.viz.wire import blocks, fields
from attention_atlas.viz.wire.file import File
from attention_atlas.viz.wire.question import token_names, token_text
from attention_atlas.viz.words import Words, say, say_plural

LARGE = 20_000  # number of edges from which one gradient is taken instead of integrated gradients
MAX_WORDS = 8  # words that fillers may be typed for
MIN_PAIRS = 6  # fewer pairs are not enough for a test
SHOWN = 8  # pairs in the list
MOST = 80  # largest number of edges drawn
LISTED = 12  # edges in the table
MEASURED, ALONE = "measured", "alone"
SECONDS = 8.0  # time limit of a translation by the circuit alone
MIB = "mib"
METHODS = {ScoringMethod.EAP: "EAP", ScoringMethod.EAP_IG: "EAP-IG"}
UNEQUAL = say(
    "The two sentences have different numbers of tokens, so their tokens cannot be matched. Only "
    "the decoder's parts are compared, from cross-attention on."
)


@dataclass(frozen=True, eq=False)
class StudyResult:
    """A study of many pairs, the circuit found on one part of them, and its test on the rest."""

    study: Study
    circuit: Circuit
    tested: FaithfulnessCurves


def find_top_edges(circuit: Circuit, pair: Pair, edges: int) -> tuple[list[tuple[Edge, float]], FaithfulnessCurves]:
    """Return the largest edges with their nats for the token, and their faithfulness in this sentence."""
    share = circuit.candidates_for(edges) / int(circuit.cuttable.sum())
    # A score is the effect of cutting an edge on the token.
    top_edges = [(edge, -score) for edge, score in circuit.top_edges(edges)]
    return top_edges, circuit.measure_faithfulness([pair], shares=(share,))


def open_circuit(scene: Scene, text: str, typed: str) -> tuple[Pair, StudyResult | None, Circuit]:
    """Return the pair with a second sentence, the study of pairs like it if there is one, and its circuit or the
    pair's own."""
    pair = pair_with(scene, text)
    study = scene.result(study_pairs(scene, pair, text, typed))
    return pair, study, study.circuit if study else score_edges(scene.translator, pair)


def pair_with(scene: Scene, text: str) -> Pair:
    """Return the pair of this sentence and a second one. A Refusal if the question or the text cannot be compared."""
    question, trace = scene.question, scene.trace
    if question.contrast_id is None:
        raise Refusal("A circuit needs two tokens to decide between: choose a contrast above.")
    if trace.interventions:
        raise Refusal(
            "This translation was made with a changed model; circuits are computed only for the unchanged one."
        )
    ids = scene.translator.encode(text, trace.direction)
    if tuple(ids) == tuple(trace.source_ids):
        raise Refusal("The two sentences are the same.")
    written = scene.case.decoder_ids[0].tolist()
    return Pair(tuple(trace.source_ids), tuple(ids), tuple(written), question.token_id, question.contrast_id)


@cached_on_owner(maxsize=16)
def score_edges(translator: Translator, pair: Pair) -> Circuit:
    """Score all edges for one pair. Cached, since a visitor then varies the number of edges."""
    return circuits.find_circuit(
        translator, [pair], ScoringMethod.EAP_IG if len(build_graph(translator.config)) < LARGE else ScoringMethod.EAP
    )


def study_pairs(scene: Scene, pair: Pair, second: str, typed: str) -> Work[StudyResult]:
    """Return the work of studying many pairs like this one.

    second: the second sentence. typed: fillers for words of both, or "" for the nearest words. The work raises a
    Refusal if too few pairs lead to the token of the question.
    """

    def compute() -> Parts[StudyResult]:
        study = Study.split(scene.translator, _pairs(scene, pair, second, typed))
        circuit, tested = yield from study.run()
        return StudyResult(study, circuit, tested)

    return Work(scene.translator, ("circuit", scene.trace.direction, pair, second, typed), compute)


def _pairs(scene: Scene, pair: Pair, second: str, typed: str) -> list[Pair]:
    """Fill other words into both sentences, and return the pairs that lead to the question's tokens."""
    trace = scene.trace
    fillers = parse_fillers(typed) if typed else find_fillings(scene.translator, trace, changed_positions(pair))
    texts = list(zip(fill_template(trace.source_text, fillers), fill_template(second, fillers)))
    pairs = pair_sentences(scene.translator, texts, (pair.token_id, pair.contrast_id), trace.direction)
    if len(pairs) < MIN_PAIRS:
        raise Refusal(
            "Of {n} sentences with other words, only {m} lead to this token; a test needs {least}. Type "
            "your own fillers.",
            n=len(texts),
            m=len(pairs),
            least=MIN_PAIRS,
        )
    return pairs


def changed_positions(pair: Pair) -> list[int]:
    """Return the positions of the sentence's tokens that differ in the second one."""
    operations = SequenceMatcher(None, pair.source_ids, pair.changed_ids, autojunk=False).get_opcodes()
    return [i for tag, start, end, *_ in operations if tag != "equal" for i in range(start, end)]


def parse_fillers(typed: str) -> dict[str, tuple[str, ...]]:
    """Parse fillers such as "Hund = Katze, Vogel; Garten = Park". A Refusal for anything else."""
    fillers = {}
    for part in filter(str.strip, typed.split(";")):
        word, equals, values = part.partition("=")
        names = tuple(filter(None, map(str.strip, values.split(","))))
        if not (equals and word.strip() and names):
            raise Refusal("Type fillers as {example}.", example="Hund = Katze, Vogel; Garten = Park")
        fillers[word.strip()] = names
    if len(fillers) > MAX_WORDS:
        raise Refusal("Fillers are for {n} words at most.", n=MAX_WORDS)
    return fillers


def _divergence(scene: Scene, pair: Pair, own: Circuit) -> list[dict]:
    """Name the first difference of the two translations, to ask about that. Warn if the change hardly matters."""
    warning = blocks.text(
        say("The changed word hardly matters to this token, so shares of its effect mean little."), tone="bad"
    )
    warnings = [warning] if abs(own.metric - own.changed) < 1 else []
    second, question = translate_greedily(scene.translator, pair.changed_ids, scene.trace.direction), scene.question
    both = zip(scene.trace.target_ids, second)
    step, ids = next(((step, two) for step, two in enumerate(both) if two[0] != two[1]), (None, None))
    if step is None:
        return [*warnings, blocks.note("The two sentences have the same translation.")]
    if (step, ids[1]) == (question.step, question.contrast_id):
        return warnings
    token, instead = map(token_text, scene.translator.tokenizer.tokens(list(ids)))
    words = blocks.paragraph("The two translations diverge at {token} and {instead}.", token=token, instead=instead)
    ask = blocks.action(say("Ask about these"), blocks.to_question(step, ids[1]))
    return [*warnings, blocks.row(words, ask)]


@cached_on_owner(maxsize=64)
def translate_greedily(translator: Translator, ids: tuple[int, ...], direction: str) -> list[int]:
    """Return the ids of a greedy translation. Cached as score_edges()."""
    (target_ids,) = translator.generate([list(ids)], direction)
    return target_ids


def _study_blocks(result: StudyResult) -> list[dict]:
    """Draw the faithfulness of circuits of each size, of whole nodes and of random edges, on held-out pairs."""
    study, tested = result.study, result.tested
    kinds = {say("best edges"): tested.best, say("whole nodes"): tested.nodes, say("at random"): tested.random}
    areas = (say("CPR (area, large is good)"), say("CMD (distance from 1, small is good)"))
    figure = plot_curves(
        {name: curve.faithfulness for name, curve in kinds.items()},
        x=[100 * share for share in tested.shares],
        x_title=say("edges kept, in %"),
        y_title=say("share of the decision kept"),
        limits=(-0.1, 1.15),
    )
    figure.update_xaxes(type="log")
    return [
        blocks.figure(figure, height=280, width=640, label=say("How much circuits of each size keep")),
        blocks.columns(
            (say("share"), [*(f"{100 * share:.3g} %" for share in tested.shares), *areas]),
            (say("edges"), [*map(blocks.number, tested.best.edges), "", ""]),
            *((name, _kept(curve)) for name, curve in kinds.items()),
            caption=say(
                "Faithfulness on {n} held-out sentences, with 95% bootstrap intervals in brackets. The "
                "circuit was found on {m} others by EAP-IG.",
                n=tested.num_pairs,
                m=len(study.discovery),
            ),
        ),
        blocks.folded(
            say("Some of the sentences"),
            blocks.table(
                (say("sentence"), say("Second sentence")), [list(pair.sentences) for pair in study.held_out[:SHOWN]]
            ),
        ),
    ]


def _kept(curve: Curve) -> list[str]:
    """Return the faithfulness at each size with its interval, and the two areas."""
    shares = [blocks.with_interval(share, *ends) for share, ends in zip(curve.faithfulness, curve.interval)]
    return [*shares, *map(blocks.two_decimals, (curve.cpr, curve.cmd))]


def circuit(scene: Scene, text: str, edges: int, typed: str) -> list[dict]:
    """Draw the sentence's words to click and, given a second sentence, the circuit between the two."""
    return with_words(scene, text, lambda: _circuit_blocks(scene, text, edges, typed))


def _circuit_blocks(scene: Scene, text: str, edges: int, typed: str) -> list[dict]:
    pair, study, circuit = open_circuit(scene, text, typed)
    top_edges, tested = find_top_edges(circuit, pair, edges)
    own = score_edges(scene.translator, pair)
    token, contrast = token_names(scene.trace, scene.question)
    config = scene.translator.config
    about = f"log p({token}) − log p({contrast})"
    # The encoder is drawn only if the tokens of the two sentences are aligned.
    encoder, begin = (config.num_encoder_layers, changed_words(scene, pair)) if pair.is_aligned else (0, "")
    shape = ModelShape(encoder, config.num_decoder_layers, most_heads(config), (begin, token))
    drawn = [DrawnEdge(edge.sender, edge.reader, edge.letter, nats) for edge, nats in top_edges]
    clicks = _clicks(scene, pair, top_edges)
    invitation = blocks.work(
        study_pairs(scene, pair, text, typed).key,
        say("Test on other sentences"),
        "This circuit is based on one sentence; another may use other edges. Put other words into "
        "both sentences to find a circuit on some and test it on the rest.",
    )
    best, random = (round(100 * float(curve.faithfulness[0])) for curve in (tested.best, tested.random))
    return [
        blocks.facts(
            (say("This sentence"), blocks.format_effect(own.metric), about),
            (say("The second sentence, after the same words"), blocks.format_effect(own.changed), about),
            (
                say("Kept by {n} of {total} edges", n=len(top_edges), total=int(circuit.cuttable.sum())),
                blocks.with_minus_sign(f"{best} %"),
                say(
                    "of the difference in this sentence, measured by running only these edges; as many random "
                    "edges keep {share}",
                    share=blocks.with_minus_sign(f"{random} %"),
                ),
            ),
        ),
        *([] if pair.is_aligned else [blocks.text(UNEQUAL, tone="note")]),
        *_divergence(scene, pair, own),
        blocks.figure(plot_circuit(drawn, shape), height=400, upright=660, label=say("The circuit"), clicks=clicks),
        blocks.slot(MEASURED, blocks.note("Measuring …")),
        blocks.note(
            "Orange edges support {token}, dashed blue ones count against it; all others carry the second "
            "sentence's activations. Round: self-attention, numbered by head; diamonds: cross-attention; "
            "FF: feed-forward. Point at an edge, or move there with the arrow keys, to measure it. Click "
            "a head to open its map.",
            token=token,
        ),
        blocks.slot(ALONE, blocks.action(say("Cut all other edges and translate"), blocks.to_act(ALONE, ALONE))),
        exports(more={MIB: say("In the format of the Mechanistic Interpretability Benchmark")}, picture=False),
        blocks.folded(say("The largest edges"), _table(circuit, top_edges, clicks)),
        *(_study_blocks(study) if study else [invitation]),
    ]


def changed_words(scene: Scene, pair: Pair) -> str:
    """Return the words of the sentence that differ in the second one."""
    tokens, changed = scene.trace.source_tokens, {*changed_positions(pair)}
    groups = [group for group in word_groups(tokens) if changed & {*group}]
    return " ".join(labels.word_label([tokens[i] for i in group]) for group in groups)


def _table(circuit: Circuit, top_edges: list[tuple[Edge, float]], clicks: dict[str, dict]) -> dict:
    """Return a table of the largest edges."""

    def node(name: str) -> dict | str:
        return blocks.button(describe_node(name), clicks[name]) if name in clicks else describe_node(name)

    listed = top_edges[:LISTED]
    return blocks.columns(
        (say("From"), [node(edge.sender) for edge, _ in listed]),
        (say("into"), [node(edge.reader) for edge, _ in listed]),
        (say("by"), [edge.letter for edge, _ in listed]),
        (say("nats"), [blocks.number(nats) for _, nats in listed]),
        (say("exactly"), [blocks.button(say("Measure"), _to_measure(edge)) for edge, _ in listed]),
        caption=say("Estimated by {method}, over {n} sentences.", method=METHODS[circuit.method], n=len(circuit.pairs)),
    )


def _clicks(scene: Scene, pair: Pair, top_edges: list[tuple[Edge, float]]) -> dict[str, dict]:
    """Return what a click on a head or an edge of the drawing does, by its name."""
    heads = {name for edge, _ in top_edges for name in (edge.sender, edge.reader) if name.count(".") == 3}
    maps = {name: _to_map(scene, pair, name) for name in heads}
    return maps | {DrawnEdge(e.sender, e.reader, e.letter, 0).name: _to_measure(e) for e, _ in top_edges}


def _to_measure(edge: Edge) -> dict:
    return blocks.to_act(MEASURED, MEASURED, sender=edge.sender, receiver=edge.receiver)


def _to_map(scene: Scene, pair: Pair, name: str) -> dict:
    """Return a link to a head's map and a cell: the key that the pinned row reads most, or in the encoder the query
    that reads the changed word most."""
    side, layer, part, head = name.split(".")
    kind = AttentionKind.CROSS if part == "cross" else AttentionKind(f"{side}_self")
    weights = scene.trace.maps(kind).weights[int(layer), int(head)]
    if kind is AttentionKind.ENCODER_SELF:
        key = changed_positions(pair)[0]
        query = int(weights[:, key].argmax())
    else:
        query = scene.question.step
        key = int(weights[query].argmax())
    return blocks.to_head(kind.value, int(layer), int(head), query=query, key=key)


def measure_edge(scene: Scene, data: Mapping[str, object], text: str, edges: int, typed: str) -> list[dict]:
    """Measure the exact effect of an edge, of its sender, and of the sender's direct edge to the logits."""
    pair = pair_with(scene, text)
    sender, receiver = fields.read_text(data, "sender"), fields.read_text(data, "receiver")
    edge = Edge(sender, receiver)
    circuit = score_edges(scene.translator, pair)
    if edge not in circuit.graph.edge_numbers:
        raise Refusal("There is no such edge: {edge}", edge=str(edge))
    readers: list[tuple[Words, str]] = [(say("this edge alone"), receiver)]
    if edge.letter:
        readers.append((say("queries, keys and values together"), edge.reader))
    if receiver != "logits" and Edge(sender, "logits") in circuit.graph.edge_numbers:
        readers.append((say("{node} directly into the logits", node=describe_node(sender)), "logits"))
    readers.append((say("{node}, all of its edges: its total effect", node=describe_node(sender)), ""))
    effects = map(blocks.format_effect, circuit.path_effects(sender, [reader for _, reader in readers]))
    return [
        blocks.paragraph(
            "{edge}: nats the token loses, including all later effects, if the edge carries the second "
            "sentence's activation.",
            edge=DrawnEdge(sender, edge.reader, edge.letter, 0.0).description,
        ),
        blocks.facts(*((name, effect, say("measured")) for (name, _), effect in zip(readers, effects))),
    ]


def translate_alone(scene: Scene, data: Mapping[str, object], text: str, edges: int, typed: str) -> list[dict]:
    """Translate with every other edge cut, for at most SECONDS."""
    pair, _, circuit = open_circuit(scene, text, typed)
    until, ids, ended = time.monotonic() + SECONDS, [], False
    tokenizer, direction = scene.translator.tokenizer, scene.trace.direction
    selected = circuit.select_edges(circuit.candidates_for(edges))
    for written in decode_with_edges(circuit, selected, pair, direction):
        ids = written
        if ended := time.monotonic() > until:
            break
    second = translate_greedily(scene.translator, pair.changed_ids, direction)
    return [
        blocks.cards(
            (say("As it is"), scene.trace.translation, scene.trace.source_text),
            (
                say_plural("By {n} edge alone", "By {n} edges alone", n=edges),
                tokenizer.decode(ids) + (" …" if ended else ""),
                say("Measured: all other edges carry the second sentence's activations."),
            ),
            (say("The second sentence"), tokenizer.decode(second), text),
        )
    ]


def as_file(scene: Scene, data: Mapping[str, object], text: str, edges: int, typed: str) -> File:
    """Return the circuit as a file, in a format of the project or of the MIB benchmark."""
    pair, _, circuit = open_circuit(scene, text, typed)
    if data.get("format") == MIB:
        written = json.dumps(circuit.to_mib(edges)).encode()
        return File(f"{about_step('circuit', scene)}.{MIB}.json", "application/json", written)
    answer = as_plain(scene, text, circuit, pair, edges)
    about = {"evidence": Evidence.PROXY, "unit": answer["unit"]}
    rows = [
        {"sender": edge["sender"], "receiver": edge["receiver"], **about, "values": [edge["nats"]]}
        for edge in answer["edges"]
    ]
    return file(data, {**answer, "columns": ["effect"], "rows": rows}, about_step("circuit", scene))


def as_plain(scene: Scene, text: str, circuit: Circuit, pair: Pair, edges: int) -> dict:
    """Return the question and its circuit of so many edges, JSON-ready, for files and the API."""
    top_edges, tested = find_top_edges(circuit, pair, edges)
    return to_jsonable(
        {
            **question_fields(scene),
            "second": text,
            "other": circuit.changed,
            "edges": [{"sender": e.sender, "receiver": e.receiver, "nats": nats} for e, nats in top_edges],
            "total": int(circuit.cuttable.sum()),
            "kept": float(tested.best.faithfulness[0]),
            "random": float(tested.random.faithfulness[0]),
        }
    )


PANEL = Panel(
    "why-circuit",
    "Circuit",
    "Change one word: along which edges does the difference reach this token, and how few suffice?",
    say("Hanna et al. 2024; Mueller et al. 2025"),
    circuit,
    controls=(
        Text(say("Second sentence"), scale=4),
        Slider(say("Edges"), 3, MOST, 25),
        Text(
            say("Other words, for a test on other sentences (empty: the most similar)"),
            placeholder="Hund = Katze, Vogel; Garten = Park",
            scale=4,
        ),
    ),
    actions={MEASURED: measure_edge, ALONE: translate_alone, EXPORT: as_file},
    fill_text=replace_word,
    paper="https://arxiv.org/abs/2403.17806",
)
