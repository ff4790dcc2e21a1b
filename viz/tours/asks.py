"""What a stop of a tour, or a worksheet, may ask: functions of a StopScene, by name. Answers are computed from its
trace and its model, so that any sentence can be asked about; what cannot be says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from attention_atlas.model.analysis.rerun import check_rerun, retranslate
from attention_atlas.model.analysis.why.methods import occlusion
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.trace import language
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.interventions import Interventions, positions_off
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal, Words, join
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE, is_punctuation, word_groups
from attention_atlas.viz.maps.labels import KIND_TITLES, display, word_label
from attention_atlas.viz.tours.measures import share
from attention_atlas.viz.tours.scene import StopScene, points, text_of
from attention_atlas.viz.tours.tour import Pair
from attention_atlas.viz.wire.question import format_percent
from attention_atlas.viz.words import say

LEAST = 0.001  # of a share that is written out
MOST = 30  # words to choose from
CHOICES = 4  # of pieces
ALIKE = 0.005  # values of shares nearer than this are both right
NEAR = 0.01  # nats: losses nearer than this are both right
BACK = (AttentionKind.CROSS, AttentionKind.ALIGNMENT)  # attention to what was read: a Transformer's, a recurrent one's
SAME, TURNED, OTHER = say("It stays the same"), say("The same words in another order"), say("Other words")
ARTICLES = {*["der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer", "eines"]}
MARKS = ".,;:!?"


@dataclass(frozen=True)
class Task:
    """right: which of the choices are. told: the answer in words. picture: what a sheet of paper shows empty, to be
    filled in, and the key filled (bars() or grid()). view: the fields of a link to where the page shows it. hides: the
    translation would give it away."""

    prompt: Words
    choices: Sequence[Words | str]
    right: Sequence[int]
    told: Words
    picture: dict | None = None
    view: Mapping[str, str] = field(default_factory=dict)
    hides: bool = False


@dataclass(frozen=True)
class Ask:
    """title: in a menu. find: a Refusal, in words, of what cannot be asked of this sentence or this model."""

    title: Words
    find: Callable[..., Task]


def bars(labels: Sequence[Words | str], values: Sequence[float], unit: str = "share") -> dict:
    """A bar for each label. unit: share, of 1, or nats."""
    return {"type": "bars", "labels": list(labels), "values": [round(float(v), 4) for v in values], "unit": unit}


def grid(rows: Sequence[str], columns: Sequence[str], values: np.ndarray) -> dict | None:
    """Squares, shaded from 0 to 1; None for more than anybody would shade."""
    return (
        {"type": "grid", "rows": list(rows), "columns": list(columns), "values": np.round(values, 3).tolist()}
        if len(rows) <= MOST
        else None
    )


def largest(values: np.ndarray, margin: float = ALIKE) -> tuple[int, ...]:
    """Where the largest value stands, and those that cannot be told from it."""
    return tuple(int(i) for i in np.flatnonzero(values >= values.max() - margin))


def content_words(tokens: Sequence[str]) -> list[tuple[str, tuple[int, ...]]]:
    """The words of a side as they are read, without symbols and punctuation, and their positions. A Refusal for fewer
    than two, or for more than anybody would choose from."""
    found = [
        (word_label([tokens[i] for i in group]), group)
        for group in word_groups(tokens)
        if not any(is_symbol(tokens[i]) for i in group) and not all(is_punctuation(tokens[i]) for i in group)
    ]
    if not 2 <= len(found) <= MOST:
        raise Refusal(
            "This cannot be asked here: there are {n} words to choose from, and it takes 2 to {limit}.",
            n=len(found),
            limit=MOST,
        )
    return found


def about(scene: StopScene) -> StopScene:
    """The scene with a word of the translation to ask about: the one that it names, else the longest. A Refusal for one
    that was not written."""
    if scene.pair is None:
        word = max((word for word, _ in content_words(scene.trace.target_tokens)), key=len)
        scene = replace(scene, pair=Pair("", (word,)))
    if not scene.target:
        raise Refusal(
            "This cannot be asked here: the model wrote “{wrote}”, and “{word}” is not a word of it.",
            wrote=scene.trace.translation,
            word=scene.pair.targets[0],
        )
    return scene


def reader(scene: StopScene) -> tuple[StopScene, list[str], np.ndarray]:
    """The scene with the head of attention to the source that it names, else with the one that reads one word most when
    the word asked about is due; the words of the source, and what the head gives to each. A Refusal without any."""
    kind = next((kind for kind in BACK if kind in scene.trace.kinds), None)
    if kind is None:
        raise Refusal("This cannot be asked here: this network has no attention to the sentence that it reads.")
    scene, words = about(scene), content_words(scene.trace.source_tokens)
    rows = scene.trace.maps(kind).weights[:, :, scene.target[0]]  # [layers, heads, key]
    given = np.stack([rows[..., list(group)].sum(-1) for _, group in words], -1)  # [layers, heads, word]
    if scene.head is None or scene.head[0] is not kind:
        layer, head, _ = np.unravel_index(int(given.argmax()), given.shape)
        scene = replace(scene, head=(kind, int(layer), int(head)))
    _, layer, head = scene.head
    return scene, [word for word, _ in words], given[layer, head]


def part(value: float) -> str:
    """A share as a learner reads it."""
    return share(value) if value >= LEAST else "<0.1%"


def two_largest(names: Sequence[str], shares: np.ndarray) -> dict[str, str]:
    """The values of an answer's placeholders: the names of the two largest shares, and these shares."""
    first, second, *_ = np.argsort(-shares, kind="stable")
    return {
        "first": names[first],
        "most": part(float(shares[first])),
        "second": names[second],
        "less": part(float(shares[second])),
    }


def seen(scene: StopScene, tab: str = "explorer", **fields: str) -> dict[str, str]:
    """A link to the scene."""
    if scene.head is None and AttentionKind.CROSS in scene.trace.kinds:
        scene = replace(scene, head=points(scene))
    return {**scene.link(), "tab": tab, **fields}


# About a translation as it stands: its maps, its probabilities, its pieces.


def read_most(scene: StopScene) -> Task:
    """Which word of the source a head reads most."""
    scene, words, given = reader(scene)
    _, layer, head = scene.head
    prompt = say(
        "“{word}” is about to be written. Which word of the sentence does head {head} of layer {layer} read most?",
        word=scene.written,
        head=head + 1,
        layer=layer + 1,
    )
    told = say(
        "It gives “{first}” {most} of what it reads, and “{second}” {less}.",
        **two_largest(words, given),
    )
    return Task(prompt, words, largest(given), told, bars(words, given), seen(scene))


def next_piece(scene: StopScene) -> Task:
    """Which piece was found most probable: where the word asked about begins, else where it was hardest to tell."""
    trace = scene.trace
    starts = scene.target[:1] or [group[0] for _, group in content_words(trace.target_tokens)]
    step = max(starts, key=lambda step: float(trace.entropy[step]))
    found = [(_piece(token), float(p)) for token, p in zip(trace.top_tokens[step], trace.top_probabilities[step])]
    found = sorted({text: p for text, p in reversed(found[:CHOICES])}.items(), key=lambda one: one[0].casefold())
    if len(found) < 2:
        raise Refusal("This cannot be asked here: no other piece was considered.")
    texts, values = [text for text, _ in found], np.array([p for _, p in found])
    before = "".join(trace.decoder_inputs[1 : step + 1]).replace(SPACE, " ").strip()
    prompt = (
        say("So far the model has written “{before}”. Which piece does it find most probable next?", before=before)
        if before
        else say("The model has written nothing yet. Which piece does it find most probable?")
    )
    told = say(
        "“{first}” has {most}, “{second}” {less}.",
        **two_largest(texts, values),
    )
    view = {**seen(scene, "stepper"), "step": str(step + 1)}
    return Task(prompt, texts, largest(values), told, bars(texts, values), view, hides=True)


def _piece(token: str) -> str:
    """A piece on its own: one that goes on with a word says so."""
    text = display(token)
    if is_symbol(token) or is_punctuation(token):
        return text.removeprefix(SPACE)
    return text.removeprefix(SPACE) or "␣" if text.startswith(SPACE) else f"…{text}"


def least_sure(scene: StopScene) -> Task:
    """Of which word of its translation the model was least sure."""
    words = content_words(scene.trace.target_tokens)
    texts = [word for word, _ in words]
    values = np.exp([float(scene.trace.log_probability[list(group)].sum()) for _, group in words])
    least, most = int(values.argmin()), int(values.argmax())
    told = say(
        "“{word}” had a probability of {least}; its surest word, “{other}”, one of {most}.",
        word=texts[least],
        least=part(float(values[least])),
        other=texts[most],
        most=part(float(values[most])),
    )
    prompt = say("Of which word of its translation was the model least sure?")
    step = str(words[least][1][0] + 1)
    view = {**seen(scene), "query": step, "step": step, "alone": "1"}
    return Task(prompt, texts, largest(-values), told, bars(texts, values), view)


def pieces(scene: StopScene) -> Task:
    """Into how many pieces a word of the source is cut: the one that the scene names, else the one of most pieces."""
    words = content_words(scene.trace.source_tokens)
    named = [(word, group) for word, group in words if set(group) & set(scene.source)]
    word, group = named[0] if named else max(words, key=lambda one: len(one[1]))
    tokens = [text for i in group if (text := text_of(scene.trace.source_tokens, (i,)))]
    choices = [str(n + 1) for n in range(max(4, len(tokens) + 1))]
    told = say("Its pieces: {pieces}", pieces=" + ".join(tokens))
    prompt = say("Into how many pieces does the model cut “{word}”?", word=word)
    return Task(prompt, choices, (len(tokens) - 1,), told, view=seen(scene))


def steps(scene: StopScene) -> Task:
    """How many pieces were written."""
    trace = scene.trace
    if not trace.finished:
        raise Refusal("This cannot be asked here: the translation was cut short.")
    n = len(trace.target_ids)
    return _number(
        say("How many pieces does the model write for this sentence, the sign that ends it included?"),
        n,
        {len(content_words(trace.target_tokens)), n + 2, 2 * n},
        say("Its pieces: {pieces}", pieces=" + ".join(map(_piece, trace.target_tokens))),
        seen(scene, "stepper"),
    )


def may_read(scene: StopScene) -> Task:
    """How many pieces the decoder's self-attention may read in one row."""
    if AttentionKind.DECODER_SELF not in scene.trace.kinds:
        raise Refusal("This cannot be asked here: this network’s decoder has no attention to what it wrote.")
    scene = about(scene)
    size, row = len(scene.trace.decoder_inputs), scene.target[0]
    masked = scene.translator.config.look_ahead_mask
    allowed = np.tril(np.ones((size, size))) if masked else np.ones((size, size))
    n = int(allowed[row].sum())
    names = [display(token).removeprefix(SPACE) for token in scene.trace.decoder_inputs]
    told = (
        say("The begin sign and what is already written. What comes later does not exist yet.")
        if masked
        else say("All of them: this network was trained without the look-ahead mask.")
    )
    prompt = say(
        "“{word}” is about to be written. How many of the {all} pieces of the decoder’s input may its row read?",
        word=scene.written,
        all=size,
    )
    view = {**seen(scene), "kind": AttentionKind.DECODER_SELF.value, "layer": "1", "head": "1"}
    view.pop("key", None)
    return _number(prompt, n, {1, n + 1, size, 2}, told, view, grid(names, names, allowed))


def maps(scene: StopScene) -> Task:
    """How many maps there are of a sentence."""
    kinds = scene.trace.kinds
    if not kinds:
        raise Refusal("This cannot be asked here: this network has no attention.")
    shapes = [scene.trace.maps(kind).weights.shape[:2] for kind in kinds]
    total = sum(layers * heads for layers, heads in shapes)
    counted = [f"{layers} × {heads}" for layers, heads in shapes]
    told = join([join([KIND_TITLES[kind], text], " ") for kind, text in zip(kinds, counted)], ", ")
    prompt = say("In how many maps of attention does this model look at one sentence?")
    return _number(prompt, total, {shapes[0][1], shapes[0][0] * shapes[0][1], 2 * total}, told, seen(scene))


def _number(prompt: Words, n: int, others: set[int], told: Words, view: dict, picture: dict | None = None) -> Task:
    """A choice of numbers, `n` the right one."""
    choices = sorted({n, *(other for other in others if other > 0)})
    return Task(prompt, [str(one) for one in choices], (choices.index(n),), told, picture, view)


# Answered by trying: something is changed, and the model runs again.


def costs_most(scene: StopScene) -> Task:
    """Which word of the source, hidden from every head, takes most from the word asked about."""
    scene = about(scene)
    case = scene.case
    found = occlusion.measure_losses(case)
    shown = content_words(scene.trace.source_tokens)
    at = [case.columns.source.index(group) for _, group in shown]
    words, lost = [word for word, _ in shown], found.of_metric[at]
    worst = int(lost.argmax())
    if lost[worst] <= NEAR:
        raise Refusal(
            "This cannot be asked here: “{word}” stays as probable whichever word is hidden.", word=scene.written
        )
    told = say(
        "Without “{hidden}”, “{word}” begins with a probability of {after} and not of {before}.",
        hidden=words[worst],
        word=scene.written,
        before=format_percent(found.metric),
        after=format_percent(found.metric - float(lost[worst])),
    )
    prompt = say(
        "One word of the sentence is hidden from every head. Hiding which one makes “{word}” least probable?",
        word=scene.written,
    )
    picture = bars(words, np.maximum(lost, 0), "nats")
    return Task(prompt, words, largest(lost, NEAR), told, picture, seen(scene, "why", panel="why-tokens"))


def head_off(scene: StopScene) -> Task:
    """What becomes of the translation without the head that reads most."""
    check_transformer(scene.translator.model)
    scene, words, given = reader(scene)
    _, layer, head = scene.head
    changed = _again(scene, Interventions(heads_off=frozenset({scene.head})))
    prompt = say(
        "Head {head} of layer {layer} reads “{source}” when “{word}” is about to be written. It is switched off. "
        "What becomes of the translation?",
        head=head + 1,
        layer=layer + 1,
        source=words[int(given.argmax())],
        word=scene.written,
    )
    return _outcome(scene, changed, prompt, seen(scene))


def unordered(scene: StopScene) -> Task:
    """What becomes of the translation where nobody says which position a word has."""
    check_transformer(scene.translator.model)
    changed = _again(scene, positions_off())
    prompt = say("The model is no longer told at which position a word stands. What becomes of the translation?")
    return _outcome(scene, changed, prompt, seen(scene, "positions", panel="break"))


def reordered(scene: StopScene) -> Task:
    """What becomes of the translation of the same words in another order: the one that the scene names, else with two
    nouns exchanged."""
    trace = scene.trace
    if not scene.other and parse_direction(trace.direction)[0] != "de":
        raise Refusal("This cannot be asked here: its words have no other order that could be written down.")
    other = scene.other or exchanged(trace.source_text)
    changed = scene.translator.translate(other, trace.direction, interventions=trace.interventions)
    prompt = say("The words change places: “{other}”. What becomes of the translation?", other=other.rstrip(MARKS))
    return _outcome(scene, changed, prompt, {**seen(scene), "text": other})


def exchanged(text: str) -> str:
    """A German sentence with its first two nouns, and what stands between each and its article, in each other's place.

    Nouns are known by their capital letters. A Refusal where there are not two with articles.
    """
    words = text.split()
    spans, start = [], None
    for at, word in enumerate(words):
        if word.lower() in ARTICLES:
            start = at
        elif start is not None and word[0].isupper():
            spans.append((start, at + 1))
            start = None
    if len(spans) < 2 or len(words) > MOST:
        raise Refusal("This cannot be asked here: its words have no other order that could be written down.")
    (a, b), (c, d) = spans[:2]
    first, second = words[a:b], words[c:d]
    marks = [phrase[-1][len(phrase[-1].rstrip(MARKS)) :] for phrase in (first, second)]
    for phrase, mark in ((first, marks[0]), (second, marks[1])):
        phrase[-1] = phrase[-1].removesuffix(mark)
    if a == 0:
        first[0], second[0] = first[0].lower(), second[0].capitalize()
    first[-1], second[-1] = first[-1] + marks[1], second[-1] + marks[0]
    return " ".join([*words[:a], *second, *words[b:c], *first, *words[d:]])


def _again(scene: StopScene, changes: Interventions) -> TranslationTrace:
    check_rerun(scene.translator, scene.trace)
    return retranslate(scene.translator, scene.trace, scene.trace.interventions | changes)


def _outcome(scene: StopScene, changed: TranslationTrace, prompt: Words, view: Mapping[str, str]) -> Task:
    before, after = (_plain(one.translation) for one in (scene.trace, changed))
    right = 0 if before == after else 1 if sorted(before) == sorted(after) else 2
    told = say(
        "“{before}” becomes “{after}”.",
        before=scene.trace.translation,
        after=changed.translation if len(changed.translation) <= 160 else changed.translation[:159] + "…",
    )
    return Task(prompt, (SAME, TURNED, OTHER), (right,), told if right else say("Nothing changes."), view=view)


def _plain(text: str) -> list[str]:
    """Its words, without capitals and punctuation."""
    return "".join(" " if is_punctuation(c) else c for c in text.casefold()).split()


ASKS: Mapping[str, Ask] = {
    "read_most": Ask(say("Which word does a head read most?"), read_most),
    "next_piece": Ask(say("Which piece comes next?"), next_piece),
    "least_sure": Ask(say("Of which word was it least sure?"), least_sure),
    "pieces": Ask(say("Into how many pieces is a word cut?"), pieces),
    "steps": Ask(say("How many pieces does it write?"), steps),
    "may_read": Ask(say("What may a row of the decoder read?"), may_read),
    "maps": Ask(say("How many maps of attention are there?"), maps),
    "costs_most": Ask(say("Which word does another one depend on?"), costs_most),
    "reordered": Ask(say("What if the words change places?"), reordered),
    "unordered": Ask(say("What if no positions are told?"), unordered),
    "head_off": Ask(say("What if a head is switched off?"), head_off),
}


def asked(scene: StopScene, name: str) -> dict:
    """A question as the page gets it: a Task's fields, or why it cannot be asked."""
    try:
        return asdict(ASKS[name].find(scene))
    except ValueError as error:
        return {"missing": language.error_message(error)}
