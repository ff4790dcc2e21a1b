"""Questions about a translation as it stands: its maps, its probabilities, its pieces."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from model.trace.kinds import AttentionKind
from model.trace.language import Refusal, Words, join
from model.trace.tokens import is_symbol
from model.trace.translation import TranslationTrace
from model.trace.words import SPACE, is_punctuation
from viz.maps.labels import KIND_TITLES, display
from viz.ui.tours.asks.task import Ask, Task, about, bars, grid, largest, part, reader, seen, words_of
from viz.ui.tours.scene import StopScene, text_of
from viz.words import say

CHOICES = 4  # of pieces


def read_most(scene: StopScene) -> Task:
    """Which word of the source a head reads most."""
    scene, words, given = reader(scene)
    _, layer, head = scene.head
    first, second, *_ = np.argsort(-given, kind="stable")
    prompt = say(
        "“{word}” is about to be written. Which word of the sentence does head {head} of layer {layer} read most?",
        word=scene.written,
        head=head + 1,
        layer=layer + 1,
    )
    told = say(
        "It gives “{first}” {most} of what it reads, and “{second}” {less}.",
        first=words[first],
        most=part(float(given[first])),
        second=words[second],
        less=part(float(given[second])),
    )
    return Task(prompt, words, largest(given), told, bars(words, given), seen(scene))


def next_piece(scene: StopScene) -> Task:
    """Which piece was found most probable: where the word asked about begins, else where it was hardest to tell."""
    trace = scene.trace
    step = scene.target[0] if scene.target else _hardest(trace)
    found = [(_piece(token), float(p)) for token, p in zip(trace.top_tokens[step], trace.top_probabilities[step])]
    found = sorted({text: p for text, p in reversed(found[:CHOICES])}.items(), key=lambda one: one[0].casefold())
    if len(found) < 2:
        raise Refusal("This cannot be asked here: no other piece was considered.")
    texts, values = [text for text, _ in found], np.array([p for _, p in found])
    first, second, *_ = np.argsort(-values, kind="stable")
    before = text_of_all(trace.decoder_inputs[1 : step + 1])
    prompt = (
        say("So far the model has written “{before}”. Which piece does it find most probable next?", before=before)
        if before
        else say("The model has written nothing yet. Which piece does it find most probable?")
    )
    told = say(
        "“{first}” has {most}, “{second}” {less}.",
        first=texts[first],
        most=part(float(values[first])),
        second=texts[second],
        less=part(float(values[second])),
    )
    view = {**seen(scene, "stepper"), "step": str(step + 1)}
    return Task(prompt, texts, largest(values), told, bars(texts, values), view, hides=True)


def _hardest(trace: TranslationTrace) -> int:
    """The step that begins a word and was hardest to tell."""
    firsts = [group[0] for _, group in words_of(trace.target_tokens)]
    return max(firsts, key=lambda step: float(trace.entropy[step]))


def text_of_all(tokens: tuple[str, ...]) -> str:
    """Pieces as a text."""
    return "".join(tokens).replace(SPACE, " ").strip()


def _piece(token: str) -> str:
    """A piece on its own: one that goes on with a word says so."""
    text = display(token)
    if is_symbol(token) or is_punctuation(token):
        return text.removeprefix(SPACE)
    return text.removeprefix(SPACE) or "␣" if text.startswith(SPACE) else f"…{text}"


def least_sure(scene: StopScene) -> Task:
    """Of which word of its translation the model was least sure."""
    words = words_of(scene.trace.target_tokens)
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
    words = words_of(scene.trace.source_tokens)
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
        {len(words_of(trace.target_tokens)), n + 2, 2 * n},
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
    """A choice of numbers, `n` the right one. Six parameters: a task's own, and what it is drawn from."""
    choices = sorted({n, *(other for other in others if other > 0)})
    return Task(prompt, [str(one) for one in choices], (choices.index(n),), told, picture, view)


ASKS: Mapping[str, Ask] = {
    "read_most": Ask(say("Which word does a head read most?"), read_most),
    "next_piece": Ask(say("Which piece comes next?"), next_piece),
    "least_sure": Ask(say("Of which word was it least sure?"), least_sure),
    "pieces": Ask(say("Into how many pieces is a word cut?"), pieces),
    "steps": Ask(say("How many pieces does it write?"), steps),
    "may_read": Ask(say("What may a row of the decoder read?"), may_read),
    "maps": Ask(say("How many maps of attention are there?"), maps),
}
