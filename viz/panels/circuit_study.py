"""The circuit of a question and a second sentence, and over many like them: found on some, tested on others."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher

from attention_atlas.model.analysis import circuits
from attention_atlas.model.analysis.circuits.circuit import Circuit, Study
from attention_atlas.model.analysis.circuits.faithfulness import Curve, FaithfulnessCurves
from attention_atlas.model.analysis.circuits.graph import Edge, build_graph
from attention_atlas.model.analysis.circuits.pairs import Pair, fill_template, pair_sentences
from attention_atlas.model.analysis.circuits.passes import ScoringMethod
from attention_atlas.model.analysis.why.neighbours import fillings
from attention_atlas.model.serve.caches import cached_on_owner
from attention_atlas.model.serve.work import Parts, Work
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.translator import Translator
from attention_atlas.viz.figures.curves import plot_curves
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.matrix import two_decimals
from attention_atlas.viz.wire.question import token_text
from attention_atlas.viz.words import say

LARGE = 20_000  # edges: of more, one gradient has to do
WORDS = 8  # of a sentence that others are typed for
LEAST = 6  # pairs: fewer say nothing about others
SHOWN = 8  # sentences that are named


@dataclass(frozen=True, eq=False)
class Studied:
    """What a study found."""

    study: Study
    circuit: Circuit
    tested: FaithfulnessCurves


def circuit_of(
    scene: Scene, pair: Pair, edges: int, studied: Studied | None = None
) -> tuple[Circuit, list[tuple[Edge, float]], FaithfulnessCurves]:
    """Return all edges' scores; the largest edges with their nats for the token; and these tested in this sentence."""
    circuit = found(scene, pair, studied)
    share = circuit.candidates_for(edges) / int(circuit.cuttable.sum())
    worth = [(edge, -score) for edge, score in circuit.top_edges(edges)]  # closed, it costs the token
    return circuit, worth, circuit.measure_faithfulness([pair], shares=(share,))


def found(scene: Scene, pair: Pair, studied: Studied | None) -> Circuit:
    """The circuit of a study, else of this sentence alone."""
    return studied.circuit if studied else scored(scene.translator, pair)


def pair_of(scene: Scene, text: str) -> Pair:
    """This sentence and the second one, as the question asks. A Refusal, in words, for what cannot be compared."""
    question, trace = scene.question, scene.trace
    if question.contrast_id is None:
        raise Refusal("A circuit needs two tokens to decide between: choose a contrast above.")
    if trace.interventions:
        raise Refusal("This translation was made by a changed model: circuits are of the model as it is.")
    ids = scene.translator.encode(text, trace.direction)
    if tuple(ids) == tuple(trace.source_ids):
        raise Refusal("The two sentences are the same.")
    written = scene.case.decoder_ids[0].tolist()
    return Pair(tuple(trace.source_ids), tuple(ids), tuple(written), question.token_id, question.contrast_id)


@cached_on_owner(maxsize=16)
def scored(translator: Translator, pair: Pair) -> Circuit:
    """Its edges' scores, kept while the size is chosen."""
    return circuits.find_circuit(
        translator, [pair], ScoringMethod.EAP_IG if len(build_graph(translator.config)) < LARGE else ScoringMethod.EAP
    )


def study_of(scene: Scene, pair: Pair, second: str, typed: str) -> Work[Studied]:
    """The study of this question, changed sentence and fillings. A Refusal, in words, where too few sentences lead to
    this question's token."""

    def compute() -> Parts[Studied]:
        study = Study.split(scene.translator, _pairs(scene, pair, second, typed))
        circuit, tested = yield from study.run()
        return Studied(study, circuit, tested)

    return Work(scene.translator, ("circuit", scene.trace.direction, pair, second, typed), compute)


def _pairs(scene: Scene, pair: Pair, second: str, typed: str) -> list[Pair]:
    trace = scene.trace
    others = parsed(typed) if typed else fillings(scene.translator, trace, changed(pair))
    texts = list(zip(fill_template(trace.source_text, others), fill_template(second, others)))
    found = pair_sentences(scene.translator, texts, (pair.token_id, pair.contrast_id), trace.direction)
    if len(found) < LEAST:
        raise Refusal(
            "Of {n} sentences with other words, {m} lead to this token: a test needs {least}. Type fillers of your "
            "own.",
            n=len(texts),
            m=len(found),
            least=LEAST,
        )
    return found


def changed(pair: Pair) -> list[int]:
    """Positions of the sentence at which the second one has something else."""
    found = SequenceMatcher(None, pair.source_ids, pair.changed_ids, autojunk=False).get_opcodes()
    return [i for what, start, end, *_ in found if what != "equal" for i in range(start, end)]


def parsed(typed: str) -> dict[str, tuple[str, ...]]:
    """Fillings as people type them: "Hund = Katze, Vogel; Garten = Park". A Refusal for anything else."""
    found = {}
    for part in filter(str.strip, typed.split(";")):
        word, equals, others = part.partition("=")
        names = tuple(filter(None, map(str.strip, others.split(","))))
        if not (equals and word.strip() and names):
            raise Refusal("Type fillers as {example}.", example="Hund = Katze, Vogel; Garten = Park")
        found[word.strip()] = names
    if len(found) > WORDS:
        raise Refusal("Fillers are for {n} words at most.", n=WORDS)
    return found


def parting(scene: Scene, pair: Pair, own: Circuit) -> list[dict]:
    """Show where the two translations part, to ask about that. Warn if the changed word hardly matters."""
    warning = blocks.text(
        say("The changed word hardly matters to this token: shares of that are shares of next to nothing."), tone="bad"
    )
    near = [warning] if abs(own.metric - own.changed) < 1 else []
    other, question = written(scene.translator, pair.changed_ids, scene.trace.direction), scene.question
    both = zip(scene.trace.target_ids, other)
    step, ids = next(((step, two) for step, two in enumerate(both) if two[0] != two[1]), (None, None))
    if step is None:
        return [*near, blocks.text(say("The two sentences have the same translation."), tone="note")]
    if (step, ids[1]) == (question.step, question.contrast_id):
        return near
    token, instead = map(token_text, scene.translator.tokenizer.tokens(list(ids)))
    words = say("The two translations part at {token} and {instead}.", token=token, instead=instead)
    ask = blocks.action(say("Ask about these"), blocks.to_question(step, ids[1]))
    return [*near, blocks.row(blocks.text(words), ask)]


@cached_on_owner(maxsize=64)
def written(translator: Translator, ids: tuple[int, ...], direction: str) -> list[int]:
    """A greedy translation, kept while the size is chosen."""
    (found,) = translator.generate([list(ids)], direction)
    return found


def curves(studied: Studied) -> list[dict]:
    """Show how much circuits of each size keep, beside whole nodes and random edges, and on which sentences."""
    study, tested = studied.study, studied.tested
    kinds = {say("best edges"): tested.best, say("whole nodes"): tested.nodes, say("at random"): tested.random}
    rows = [
        [f"{100 * share:.3g} %", blocks.number(edges), *(_kept(curve, i) for curve in kinds.values())]
        for i, (share, edges) in enumerate(zip(tested.shares, tested.best.edges))
    ]
    areas = [
        [name, "", *(two_decimals(getattr(curve, field)) for curve in kinds.values())]
        for name, field in (
            (say("CPR (area, large is good)"), "cpr"),
            (say("CMD (distance from 1, small is good)"), "cmd"),
        )
    ]
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
        blocks.table(
            (say("share"), say("edges"), *kinds),
            [*rows, *areas],
            caption=say(
                "Faithfulness, measured on {n} sentences that the circuit was not found with; in brackets 95% "
                "bootstrap intervals. Found with {m} others by EAP-IG.",
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


def _kept(curve: Curve, at: int) -> str:
    low, high = curve.interval[at]
    return "{} [{}, {}]".format(*(two_decimals(value) for value in (curve.faithfulness[at], low, high)))
