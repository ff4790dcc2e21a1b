"""The question of the tab "Why" (why this token rather than that one?) as JSON, and its answer in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from attention_atlas.model.trace.language import Words, say
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.attribution import Columns, Question
from attention_atlas.model.trace.why.effects import Losses, Removal
from attention_atlas.model.trace.words import SPACE, is_punctuation, word_groups
from attention_atlas.viz.maps import labels
from attention_atlas.viz.wire import blocks

SPELLED = say("␣ is a piece of its own: it starts a word that is spelled out in smaller pieces.")
COMMON_LOSS = 1.0  # nats of log p(token); a word that costs more is mentioned even if the metric hardly changes


def token_text(token: str, *, goes_on: bool = False) -> str:
    """Return a token for use in a sentence: without the space mark, with an ellipsis where its word goes on.

    goes_on: whether the word continues after the token.
    """
    if is_symbol(token):
        return str(token)
    is_inside_word = not token.startswith(SPACE) and not is_punctuation(token)
    return (
        ("…" if is_inside_word else "")
        + (labels.display(token.removeprefix(SPACE)) if token != SPACE else "␣")
        + ("…" if goes_on else "")
    )


def token_names(trace: TranslationTrace, question: Question) -> tuple[str, str | None]:
    """Return the texts of the pinned token and of its contrast (None: no contrast) for use in sentences."""
    word = next(group for group in word_groups(trace.target_tokens) if question.step in group)
    # A word may begin without a space mark: in a script without spaces, or if it is a full stop.
    is_first = question.step == word[0] and not question.token.startswith(SPACE)
    ellipsis = "…" if is_first else ""
    token = token_text(question.token, goes_on=question.step < word[-1]).removeprefix(ellipsis)
    return token, None if question.contrast is None else token_text(question.contrast).removeprefix(ellipsis)


def question_payload(trace: TranslationTrace, question: Question, contrasts: Sequence[int]) -> dict:
    """Return the question as {tokens, step, token, contrast, contrasts, metric, note}, JSON-ready.

    tokens     the written tokens, any of which can be pinned
    contrasts  the most probable other tokens with their probabilities
    metric     what the tab's numbers measure, in words
    """
    step = question.step
    candidates = zip(trace.top_ids[step].tolist(), trace.top_tokens[step], trace.top_probabilities[step].tolist())
    token, contrast = token_names(trace, question)
    return {
        "tokens": [
            {**labels.text_of(token), "probability": float(np.exp(value))}
            for token, value in zip(trace.target_tokens, trace.log_probability)
        ],
        "step": step,
        "token": token,
        "contrast": contrast,
        "contrast_id": question.contrast_id,
        "contrasts": [
            {"id": i, "text": token_text(token), "probability": p} for i, token, p in candidates if i in contrasts
        ],
        "metric": metric_words(token, contrast),
        "note": question.note or (SPELLED if question.token == SPACE else ""),
    }


def metric_words(token: str, contrast: str | None) -> Words:
    """Describe the metric of the tab's numbers."""
    if contrast is None:
        return say(
            "The number explained here is log p({token}), in nats. Only the token's logit minus the mean "
            "logit of the vocabulary can be split exactly; that is not log p.",
            token=token,
        )
    return say(
        "The number explained here is log p({token}) − log p({contrast}), in nats: + supports "
        "{token}, − supports {contrast}.",
        token=token,
        contrast=contrast,
    )


def headline(trace: TranslationTrace, question: Question, losses: Losses, columns: Columns) -> list[Words]:
    """Return the answer as two or three sentences of measured numbers."""
    token, contrast = token_names(trace, question)
    best, loss = largest_loss(losses.of_metric, columns)
    values = {"token": token, "contrast": contrast, "word": columns.labels[best] if len(columns) else ""}
    left, without = losses.metric - loss, None
    if loss <= 0:
        without = say("No single word supports it: removing any one costs nothing.")
    if contrast is None:
        return [
            say("“{token}” has a probability of {p}.", token=token, p=blocks.format_percent(losses.metric)),
            without or say("Without “{word}” it drops to {p}.", word=values["word"], p=blocks.format_percent(left)),
        ]
    sentences = [_against(values, losses.metric), without] if without else _compare(values, losses.metric, left)
    other, fall = largest_loss(losses.of_log_p, columns)
    if other != best and fall >= COMMON_LOSS:
        sentences.append(_both_without({**values, "word": columns.labels[other]}, losses, other))
    return sentences


def losses_payload(question: Question, losses: Losses, columns: Columns, tokens: Sequence[str]) -> dict:
    """Return the measured effect of removing each word as {p, words}, JSON-ready.

    p is the token's probability. Each word has its text, the positions of its tokens, whether it is in the source and
    special, the loss of the metric in nats, p without it, and `instead`: the most probable other tokens without it,
    with their probabilities.

    tokens: the tokens of losses.ids, row after row.
    """
    width = losses.ids.shape[1]
    runs = [
        [
            [token_text(token), float(p)]
            for i, token, p in zip(ids, tokens[row * width : (row + 1) * width], probabilities)
            if i != question.token_id
        ][:2]
        for row, (ids, probabilities) in enumerate(zip(losses.ids, losses.probabilities))
    ]
    groups = (*columns.source, *columns.prefix)
    words = zip(columns.labels, groups, columns.special, losses.of_metric, losses.of_log_p, runs[1:])
    return {
        "p": float(np.exp(losses.log_p)),
        "words": [
            {
                "text": labels.display(text),
                "positions": list(group),
                "source": column < len(columns.source),
                "special": bool(special),
                "loss": None if np.isnan(loss) else float(loss),
                "p": float(np.exp(losses.log_p - fall)),
                "instead": instead,
            }
            for column, (text, group, special, loss, fall, instead) in enumerate(words)
        ],
    }


def largest_loss(losses: np.ndarray, columns: Columns) -> tuple[int, float]:
    """Return the position and the value of the largest loss, float64 [column], among columns that are not special.

    Returns 0 and -inf if there are none.
    """
    ordinary = np.where(columns.special | np.isnan(losses), -np.inf, losses)
    best = int(ordinary.argmax()) if len(ordinary) else 0
    return best, float(ordinary[best]) if len(ordinary) else -np.inf


def _against(texts: dict, metric: float) -> Words:
    values = {"token": texts["token"], "contrast": texts["contrast"], "n": format_ratio(metric)}
    if values["n"] == EVEN:
        return say("“{token}” and “{contrast}” are equally likely.", token=texts["token"], contrast=texts["contrast"])
    if metric >= 0:
        return say("“{token}” is {n} times as likely as “{contrast}”.", **values)
    return say("“{contrast}” is {n} times as likely as “{token}”.", **values)


def _compare(texts: dict, metric: float, left: float) -> list[Words]:
    """Return one or two sentences: the metric as a factor, and what is left of it without the word."""
    if format_ratio(left) == EVEN:
        return [_against(texts, metric), say("Without “{word}”, both are equally likely.", word=texts["word"])]
    if format_ratio(metric) == EVEN or left < 0 <= metric:
        without = say(
            "Without “{word}”, “{contrast}” is {n} times as likely as “{token}”.", **texts, n=format_ratio(left)
        )
        return [_against(texts, metric), without]
    values = {**texts, "n": format_ratio(metric), "m": format_ratio(left)}
    if metric >= 0:
        return [say("“{token}” is {n} times as likely as “{contrast}”; without “{word}”, only {m} times.", **values)]
    return [say("“{contrast}” is {n} times as likely as “{token}”; without “{word}”, {m} times.", **values)]


def headline_in_nats(losses: Losses, columns: Columns) -> Words:
    """Return the numbers of the headline in nats."""
    best, loss = largest_loss(losses.of_metric, columns)
    if loss <= 0:
        return say("{n} nats", n=blocks.format_nats(losses.metric))
    return say(
        "{n} nats; without “{word}” {m}",
        n=blocks.format_nats(losses.metric),
        word=columns.labels[best],
        m=blocks.format_nats(losses.metric - loss),
    )


def format_ratio(value: float) -> str:
    """Format the factor of likelihood that a difference in nats means: "3.3"."""
    ratio = math.exp(min(abs(value), 300.0))
    return f"{ratio:.1f}" if ratio < 9.95 else blocks.compact(int(float(f"{ratio:.2g}"))) if ratio < 1e6 else "> 10⁶"


EVEN = format_ratio(0.0)


def _both_without(texts: dict, losses: Losses, column: int) -> Words:
    """Describe a word that makes both tokens likelier, which the metric hardly shows."""
    left, against = losses.log_p - losses.of_log_p[column], losses.metric - losses.of_metric[column]
    return say(
        "Without “{word}”, “{token}” itself falls from {p} to {q}, and “{contrast}” from {r} to {s}.",
        **texts,
        p=blocks.format_percent(losses.log_p),
        q=blocks.format_percent(left),
        r=blocks.format_percent(losses.log_p - losses.metric),
        s=blocks.format_percent(left - against),
    )


def candidates_table(removal: Removal, tokens: Sequence[str], question: Question, before: Words, after: Words) -> dict:
    """Return a table of the most probable next tokens before and after a change, with both probabilities.

    tokens: the tokens of removal.ids; before, after: headings.
    """
    compared = (question.token_id, question.contrast_id)
    rows = [
        [blocks.token(labels.display(token)), blocks.bar(float(p)), blocks.bar(float(q))]
        for token, p, q in zip(tokens, *removal.probabilities)
    ]
    return blocks.table(
        (say("Next token"), before, after),
        rows,
        marked=[i for i, token_id in enumerate(removal.ids) if token_id in compared],
        caption=say("Probabilities, measured: the most probable tokens of either run; those compared are marked."),
    )
