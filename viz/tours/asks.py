"""The questions that a stop of a tour or a worksheet can ask a learner: functions StopScene -> Task, by name.

Choices and answers are computed from the trace and its model, so any sentence can be asked about. A Refusal says why a
sentence cannot.
"""

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
from attention_atlas.viz.tours.scene import StopScene, clearest_head, text_of
from attention_atlas.viz.tours.tour import Pair
from attention_atlas.viz.wire.blocks import format_percent
from attention_atlas.viz.words import say

LEAST = 0.001  # smallest share that is written out
MOST = 30  # largest number of choices
CHOICES = 4  # pieces to choose from
ALIKE = 0.005  # shares that differ by less are both right
NEAR = 0.01  # losses, in nats, that differ by less are both right
BACK = (AttentionKind.CROSS, AttentionKind.ALIGNMENT)  # attention to the source, of either kind of network
SAME, TURNED, OTHER = say("It stays the same"), say("The same words in another order"), say("Other words")
ARTICLES = {*["der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer", "eines"]}
MARKS = ".,;:!?"


@dataclass(frozen=True)
class Task:
    """A question with its choices and its answer.

    right    indices of the right choices
    answer   the answer in words
    picture  bars() or grid(): a worksheet shows it empty, its key filled
    view     the fields of a link to where the page shows the answer
    hides    whether the translation must be hidden, since it shows the answer
    """

    prompt: Words
    choices: Sequence[Words | str]
    right: Sequence[int]
    answer: Words
    picture: dict | None = None
    view: Mapping[str, str] = field(default_factory=dict)
    hides: bool = False


@dataclass(frozen=True)
class Ask:
    """A question: its title in the menu, and the function that makes the Task or raises a Refusal."""

    title: Words
    make_task: Callable[..., Task]


def bars(labels: Sequence[Words | str], values: Sequence[float], unit: str = "share") -> dict:
    """Return a picture with a bar for each label. unit: "share" (of 1) or "nats"."""
    return {"type": "bars", "labels": list(labels), "values": [round(float(v), 4) for v in values], "unit": unit}


def grid(rows: Sequence[str], columns: Sequence[str], values: np.ndarray) -> dict | None:
    """Return a picture of squares shaded from 0 to 1; None if it has too many to shade by hand."""
    if len(rows) > MOST:
        return None
    return {"type": "grid", "rows": list(rows), "columns": list(columns), "values": np.round(values, 3).tolist()}


def largest(values: np.ndarray, margin: float = ALIKE) -> tuple[int, ...]:
    """Return the indices of the largest value and of all within the margin of it."""
    return tuple(int(i) for i in np.flatnonzero(values >= values.max() - margin))


def content_words(tokens: Sequence[str]) -> list[tuple[str, tuple[int, ...]]]:
    """Return the words of a side without symbols and punctuation, each with its positions.

    A Refusal for fewer than two words or more than MOST.
    """
    words = [
        (word_label([tokens[i] for i in group]), group)
        for group in word_groups(tokens)
        if not any(is_symbol(tokens[i]) for i in group) and not all(is_punctuation(tokens[i]) for i in group)
    ]
    if not 2 <= len(words) <= MOST:
        raise Refusal(
            "This cannot be asked here: there are {n} words to choose from; the question needs 2 to {limit}.",
            n=len(words),
            limit=MOST,
        )
    return words


def with_word(scene: StopScene) -> StopScene:
    """Return the scene with a word of the translation to ask about: the named one, or the longest.

    A Refusal if the named word was not written.
    """
    if scene.pair is None:
        word = max((word for word, _ in content_words(scene.trace.target_tokens)), key=len)
        scene = replace(scene, pair=Pair("", (word,)))
    if not scene.target:
        raise Refusal(
            "This cannot be asked here: the model wrote “{wrote}”, which does not contain “{word}”.",
            wrote=scene.trace.translation,
            word=scene.pair.targets[0],
        )
    return scene


def with_head(scene: StopScene) -> tuple[StopScene, list[str], np.ndarray]:
    """Return the scene with a head that reads the source, the source words, and the head's weight on each.

    The head is the named one, or the one with the largest weight on a word in the step that writes the scene's word. A
    Refusal if the network has no such attention.
    """
    kind = next((kind for kind in BACK if kind in scene.trace.kinds), None)
    if kind is None:
        raise Refusal("This cannot be asked here: this network has no attention to the source sentence.")
    scene, words = with_word(scene), content_words(scene.trace.source_tokens)
    rows = scene.trace.maps(kind).weights[:, :, scene.target[0]]  # [layers, heads, key]
    weights = np.stack([rows[..., list(group)].sum(-1) for _, group in words], -1)  # [layers, heads, word]
    if scene.head is None or scene.head[0] is not kind:
        layer, head, _ = np.unravel_index(int(weights.argmax()), weights.shape)
        scene = replace(scene, head=(kind, int(layer), int(head)))
    _, layer, head = scene.head
    return scene, [word for word, _ in words], weights[layer, head]


def format_share(value: float) -> str:
    """Format a share for a learner."""
    return share(value) if value >= LEAST else "<0.1%"


def two_largest(names: Sequence[str], shares: np.ndarray) -> dict[str, str]:
    """Return the placeholders first, most, second and less: the two largest shares and their names."""
    first, second, *_ = np.argsort(-shares, kind="stable")
    return {
        "first": names[first],
        "most": format_share(float(shares[first])),
        "second": names[second],
        "less": format_share(float(shares[second])),
    }


def view_link(scene: StopScene, tab: str = "explorer", **fields: str) -> dict[str, str]:
    """Return the fields of a link to the scene in a tab."""
    if scene.head is None and AttentionKind.CROSS in scene.trace.kinds:
        scene = replace(scene, head=clearest_head(scene))
    return {**scene.link(), "tab": tab, **fields}


# Questions about a translation: its maps, probabilities and pieces.


def read_most(scene: StopScene) -> Task:
    """Ask which source word a head reads most."""
    scene, words, weights = with_head(scene)
    _, layer, head = scene.head
    prompt = say(
        "Just before “{word}” is written, which word of the sentence does head {head} of layer {layer} attend to most?",
        word=scene.written,
        head=head + 1,
        layer=layer + 1,
    )
    answer = say(
        "It puts {most} of its attention on “{first}” and {less} on “{second}”.", **two_largest(words, weights)
    )
    return Task(prompt, words, largest(weights), answer, bars(words, weights), view_link(scene))


def next_piece(scene: StopScene) -> Task:
    """Ask for the most probable next piece: where the scene's word begins, or where the entropy is largest."""
    trace = scene.trace
    starts = scene.target[:1] or [group[0] for _, group in content_words(trace.target_tokens)]
    step = max(starts, key=lambda step: float(trace.entropy[step]))
    pieces = [(_piece(token), float(p)) for token, p in zip(trace.top_tokens[step], trace.top_probabilities[step])]
    pieces = sorted({text: p for text, p in reversed(pieces[:CHOICES])}.items(), key=lambda item: item[0].casefold())
    if len(pieces) < 2:
        raise Refusal("This cannot be asked here: no other piece was considered.")
    texts, values = [text for text, _ in pieces], np.array([p for _, p in pieces])
    before = "".join(trace.decoder_inputs[1 : step + 1]).replace(SPACE, " ").strip()
    prompt = (
        say("So far the model has written “{before}”. Which piece does it find most probable next?", before=before)
        if before
        else say("The model has written nothing yet. Which piece does it find most probable?")
    )
    answer = say("“{first}” has {most}, “{second}” {less}.", **two_largest(texts, values))
    view = {**view_link(scene, "stepper"), "step": str(step + 1)}
    return Task(prompt, texts, largest(values), answer, bars(texts, values), view, hides=True)


def _piece(token: str) -> str:
    """Return the text of a piece; one that continues a word begins with an ellipsis."""
    text = display(token)
    if is_symbol(token) or is_punctuation(token):
        return text.removeprefix(SPACE)
    return text.removeprefix(SPACE) or "␣" if text.startswith(SPACE) else f"…{text}"


def least_sure(scene: StopScene) -> Task:
    """Ask for the least probable word of the translation."""
    words = content_words(scene.trace.target_tokens)
    texts = [word for word, _ in words]
    values = np.exp([float(scene.trace.log_probability[list(group)].sum()) for _, group in words])
    least, most = int(values.argmin()), int(values.argmax())
    answer = say(
        "“{word}” had a probability of {least}; the most certain word, “{other}”, had {most}.",
        word=texts[least],
        least=format_share(float(values[least])),
        other=texts[most],
        most=format_share(float(values[most])),
    )
    prompt = say("Which word of its translation was the model least sure of?")
    step = str(words[least][1][0] + 1)
    view = {**view_link(scene), "query": step, "step": step, "alone": "1"}
    return Task(prompt, texts, largest(-values), answer, bars(texts, values), view)


def pieces(scene: StopScene) -> Task:
    """Ask for the number of pieces of a source word: the named one, or the one with most pieces."""
    words = content_words(scene.trace.source_tokens)
    named = [(word, group) for word, group in words if set(group) & set(scene.source)]
    word, group = named[0] if named else max(words, key=lambda item: len(item[1]))
    tokens = [text for i in group if (text := text_of(scene.trace.source_tokens, (i,)))]
    choices = [str(n + 1) for n in range(max(4, len(tokens) + 1))]
    answer = say("Its pieces: {pieces}", pieces=" + ".join(tokens))
    prompt = say("Into how many pieces does the model cut “{word}”?", word=word)
    return Task(prompt, choices, (len(tokens) - 1,), answer, view=view_link(scene))


def steps(scene: StopScene) -> Task:
    """Ask for the number of pieces of the translation."""
    trace = scene.trace
    if not trace.finished:
        raise Refusal("This cannot be asked here: the translation was cut short.")
    n = len(trace.target_ids)
    return _number(
        say("How many pieces does the model write for this sentence, including the end symbol?"),
        n,
        {len(content_words(trace.target_tokens)), n + 2, 2 * n},
        say("Its pieces: {pieces}", pieces=" + ".join(map(_piece, trace.target_tokens))),
        view_link(scene, "stepper"),
    )


def may_read(scene: StopScene) -> Task:
    """Ask how many pieces a row of the decoder's self-attention may read."""
    if AttentionKind.DECODER_SELF not in scene.trace.kinds:
        raise Refusal("This cannot be asked here: this network’s decoder has no attention to its own words.")
    scene = with_word(scene)
    size, row = len(scene.trace.decoder_inputs), scene.target[0]
    masked = scene.translator.config.look_ahead_mask
    allowed = np.tril(np.ones((size, size))) if masked else np.ones((size, size))
    n = int(allowed[row].sum())
    names = [display(token).removeprefix(SPACE) for token in scene.trace.decoder_inputs]
    answer = (
        say("The start symbol and what is already written. What comes later does not exist yet.")
        if masked
        else say("All of them: this network was trained without the look-ahead mask.")
    )
    prompt = say(
        "Just before “{word}” is written, how many of the {all} pieces of the decoder’s input may its row attend to?",
        word=scene.written,
        all=size,
    )
    view = {**view_link(scene), "kind": AttentionKind.DECODER_SELF.value, "layer": "1", "head": "1"}
    view.pop("key", None)
    return _number(prompt, n, {1, n + 1, size, 2}, answer, view, grid(names, names, allowed))


def maps(scene: StopScene) -> Task:
    """Ask for the number of attention maps of one sentence."""
    shapes = {kind: scene.trace.maps(kind).weights.shape[:2] for kind in scene.trace.kinds}
    if not shapes:
        raise Refusal("This cannot be asked here: this network has no attention.")
    total = sum(layers * heads for layers, heads in shapes.values())
    answer = join(
        [join([KIND_TITLES[kind], f"{layers} × {heads}"], " ") for kind, (layers, heads) in shapes.items()], ", "
    )
    layers, heads = next(iter(shapes.values()))
    prompt = say("How many attention maps does this model compute for one sentence?")
    return _number(prompt, total, {heads, layers * heads, 2 * total}, answer, view_link(scene))


def _number(prompt: Words, n: int, wrong: set[int], answer: Words, view: dict, picture: dict | None = None) -> Task:
    """Return a task with numbers to choose from. n: the right one."""
    choices = sorted({n, *(number for number in wrong if number > 0)})
    return Task(prompt, [str(number) for number in choices], (choices.index(n),), answer, picture, view)


# Questions whose answer takes another run of the model.


def costs_most(scene: StopScene) -> Task:
    """Ask which source word, if hidden from every head, lowers the probability of the scene's word most."""
    scene = with_word(scene)
    case = scene.case
    effects = occlusion.measure_losses(case)
    groups = content_words(scene.trace.source_tokens)
    at = [case.columns.source.index(group) for _, group in groups]
    words, losses = [word for word, _ in groups], effects.of_metric[at]
    worst = int(losses.argmax())
    if losses[worst] <= NEAR:
        raise Refusal(
            "This cannot be asked here: “{word}” stays as probable whichever word is hidden.", word=scene.written
        )
    answer = say(
        "Without “{hidden}”, “{word}” starts at {after} instead of {before}.",
        hidden=words[worst],
        word=scene.written,
        before=format_percent(effects.metric),
        after=format_percent(effects.metric - float(losses[worst])),
    )
    prompt = say(
        "Each word of the sentence in turn is hidden from every head. Which word, when hidden, makes "
        "“{word}” least probable?",
        word=scene.written,
    )
    picture = bars(words, np.maximum(losses, 0), "nats")
    return Task(prompt, words, largest(losses, NEAR), answer, picture, view_link(scene, "why", panel="why-tokens"))


def head_off(scene: StopScene) -> Task:
    """Ask for the effect of switching off a head on the translation."""
    check_transformer(scene.translator.model)
    scene, words, weights = with_head(scene)
    _, layer, head = scene.head
    changed = _again(scene, Interventions(heads_off=frozenset({scene.head})))
    prompt = say(
        "Just before “{word}” is written, head {head} of layer {layer} looks at “{source}”. It is "
        "switched off. What happens to the translation?",
        head=head + 1,
        layer=layer + 1,
        source=words[int(weights.argmax())],
        word=scene.written,
    )
    return _outcome(scene, changed, prompt, view_link(scene))


def unordered(scene: StopScene) -> Task:
    """Ask for the effect of removing the positions on the translation."""
    check_transformer(scene.translator.model)
    changed = _again(scene, positions_off())
    prompt = say("The model no longer knows the position of each word. What happens to the translation?")
    return _outcome(scene, changed, prompt, view_link(scene, "more", panel="break"))


def reordered(scene: StopScene) -> Task:
    """Ask for the effect of another word order: the named one, or two nouns exchanged."""
    trace = scene.trace
    if not scene.other and parse_direction(trace.direction)[0] != "de":
        raise Refusal("This cannot be asked here: its words have no other order to ask about.")
    other = scene.other or exchange_nouns(trace.source_text)
    changed = scene.translator.translate(other, trace.direction, interventions=trace.interventions)
    prompt = say("The words change places: “{other}”. What happens to the translation?", other=other.rstrip(MARKS))
    return _outcome(scene, changed, prompt, {**view_link(scene), "text": other})


def exchange_nouns(text: str) -> str:
    """Return a German sentence with its first two noun phrases exchanged, each from its article to its noun.

    Nouns are recognised by their capital letters. A Refusal without two nouns with articles.
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
        raise Refusal("This cannot be asked here: its words have no other order to ask about.")
    (a, b), (c, d) = spans[:2]
    first, second = words[a:b], words[c:d]
    nouns = [phrase[-1].rstrip(MARKS) for phrase in (first, second)]
    marks = [phrase[-1][len(noun) :] for phrase, noun in zip((first, second), nouns)]
    first[-1], second[-1] = nouns[0] + marks[1], nouns[1] + marks[0]
    if a == 0:
        first[0], second[0] = first[0].lower(), second[0].capitalize()
    return " ".join([*words[:a], *second, *words[b:c], *first, *words[d:]])


def _again(scene: StopScene, changes: Interventions) -> TranslationTrace:
    check_rerun(scene.translator, scene.trace)
    return retranslate(scene.translator, scene.trace, scene.trace.interventions | changes)


def _outcome(scene: StopScene, changed: TranslationTrace, prompt: Words, view: Mapping[str, str]) -> Task:
    """Return a task about how a translation changes: not at all, in its order, or in its words."""
    before, after = (_plain(trace.translation) for trace in (scene.trace, changed))
    right = 0 if before == after else 1 if sorted(before) == sorted(after) else 2
    answer = say(
        "“{before}” becomes “{after}”.",
        before=scene.trace.translation,
        after=changed.translation if len(changed.translation) <= 160 else changed.translation[:159] + "…",
    )
    return Task(prompt, (SAME, TURNED, OTHER), (right,), answer if right else say("Nothing changes."), view=view)


def _plain(text: str) -> list[str]:
    """Return the words of a text in lower case without punctuation."""
    return "".join(" " if is_punctuation(c) else c for c in text.casefold()).split()


ASKS: Mapping[str, Ask] = {
    "read_most": Ask(say("Which word does a head attend to most?"), read_most),
    "next_piece": Ask(say("Which piece comes next?"), next_piece),
    "least_sure": Ask(say("Which word was it least sure of?"), least_sure),
    "pieces": Ask(say("Into how many pieces is a word cut?"), pieces),
    "steps": Ask(say("How many pieces does it write?"), steps),
    "may_read": Ask(say("What may a row of the decoder attend to?"), may_read),
    "maps": Ask(say("How many attention maps are there?"), maps),
    "costs_most": Ask(say("Which word does another one depend on?"), costs_most),
    "reordered": Ask(say("What if the words change places?"), reordered),
    "unordered": Ask(say("What if there are no positions?"), unordered),
    "head_off": Ask(say("What if a head is switched off?"), head_off),
}


def task_payload(scene: StopScene, name: str) -> dict:
    """Return the fields of a Task for the page, or {missing}: why it cannot be asked."""
    try:
        return asdict(ASKS[name].make_task(scene))
    except ValueError as error:
        return {"missing": language.error_message(error)}
