"""The question of the tab "Why" as the page draws it, and its answer as a sentence of measured numbers."""

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

SPELLED = say("␣ is a piece of its own: a word begins here that is then spelled out in smaller pieces.")
COMMON = 1.0  # nats of log p(token): a word of which more is lost is told, also where the metric says little of it


def token_text(token: str, *, goes_on: bool = False) -> str:
    """A token among words: without the space mark; where a word goes on before or after it, with an ellipsis."""
    if is_symbol(token):
        return str(token)
    inside = not token.startswith(SPACE) and not is_punctuation(token)
    return (
        ("…" if inside else "")
        + (labels.display(token.removeprefix(SPACE)) if token != SPACE else "␣")
        + ("…" if goes_on else "")
    )


def token_names(trace: TranslationTrace, question: Question) -> tuple[str, str | None]:
    """What the pinned token and its contrast are called."""
    word = next(group for group in word_groups(trace.target_tokens) if question.step in group)
    first = question.step == word[0] and not question.token.startswith(SPACE)  # a script without spaces, a full stop
    token = token_text(question.token, goes_on=question.step < word[-1]).removeprefix("…" if first else "")
    return token, None if question.contrast is None else token_text(question.contrast).removeprefix(
        "…" if first else ""
    )


def question_payload(trace: TranslationTrace, question: Question, contrasts: Sequence[int]) -> dict:
    """{tokens, step, token, contrast, contrasts, metric, note}, JSON-ready. tokens: what was written, to pin another;
    contrasts: the most probable other tokens with their probabilities; metric: what is measured, in words."""
    step = question.step
    probable = {
        int(i): (token, float(p))
        for i, token, p in zip(trace.top_ids[step], trace.top_tokens[step], trace.top_probabilities[step])
    }
    token, contrast = token_names(trace, question)
    return {
        "tokens": [
            {"text": labels.display(token), "symbol": is_symbol(token), "probability": float(np.exp(value))}
            for token, value in zip(trace.target_tokens, trace.log_probability)
        ],
        "step": step,
        "token": token,
        "contrast": contrast,
        "contrast_id": question.contrast_id,
        "contrasts": [{"id": i, "text": token_text(probable[i][0]), "probability": probable[i][1]} for i in contrasts],
        "metric": metric_words(token, contrast),
        "note": question.note or (SPELLED if question.token == SPACE else ""),
    }


def metric_words(token: str, contrast: str | None) -> Words:
    """What every number of the tab is about."""
    if contrast is None:
        return say(
            "The number in question is log p({token}), in nats. What can be split exactly is the token's logit minus "
            "the mean logit of the vocabulary, which is not log p.",
            token=token,
        )
    return say(
        "The number in question is log p({token}) − log p({contrast}), in nats: + speaks for {token}, − for "
        "{contrast}.",
        token=token,
        contrast=contrast,
    )


def headline(trace: TranslationTrace, question: Question, losses: Losses, columns: Columns) -> list[Words]:
    """Two or three sentences of measured numbers alone."""
    token, contrast = token_names(trace, question)
    best, loss = largest_loss(losses.of_metric, columns)
    named = {"token": token, "contrast": contrast, "word": columns.labels[best] if len(columns) else ""}
    left, without = losses.metric - loss, None
    if loss <= 0:
        without = say("No single word speaks for it: whichever is taken away, it loses nothing.")
    if contrast is None:
        return [
            say("{token} has a probability of {p}.", token=token, p=format_percent(losses.metric)),
            without or say("Without “{word}” it would have {p}.", word=named["word"], p=format_percent(left)),
        ]
    found = [_against(named, losses.metric), without or _against_without(named, losses.metric, left)]
    other, fall = largest_loss(losses.of_log_p, columns)
    if other == best or fall < COMMON:
        return found
    values = {**named, "word": columns.labels[other]}
    return [*found, _both_without(values, losses, other)]


def losses_payload(question: Question, losses: Losses, columns: Columns, tokens: Sequence[str]) -> dict:
    """What taking away each word did, JSON-ready: {p, words}. p: the token's probability; of each word its text,
    whether it is of the source and special, the nats that the metric loses, p without it, and `instead`, the most
    probable other tokens then with their probabilities. tokens: of losses.ids, row after row."""
    width = losses.ids.shape[1]
    runs = [
        [
            [token_text(token), float(p)]
            for i, token, p in zip(ids, tokens[row * width : (row + 1) * width], probabilities)
            if i != question.token_id
        ][:2]
        for row, (ids, probabilities) in enumerate(zip(losses.ids, losses.probabilities))
    ]
    words = zip(columns.labels, columns.special, losses.of_metric, losses.of_log_p, runs[1:])
    return {
        "p": float(np.exp(losses.log_p)),
        "words": [
            {
                "text": labels.display(text),
                "source": column < len(columns.source),
                "special": bool(special),
                "loss": None if np.isnan(loss) else float(loss),
                "p": float(np.exp(losses.log_p - fall)),
                "instead": instead,
            }
            for column, (text, special, loss, fall, instead) in enumerate(words)
        ],
    }


def largest_loss(losses: np.ndarray, columns: Columns) -> tuple[int, float]:
    """The ordinary column without which most is lost, and how much: losses float64 [column]. Of none, 0 and -inf."""
    ordinary = np.where(columns.special | np.isnan(losses), -np.inf, losses)
    best = int(ordinary.argmax()) if len(ordinary) else 0
    return best, float(ordinary[best]) if len(ordinary) else -np.inf


def _against(named: dict, metric: float) -> Words:
    values = {"token": named["token"], "contrast": named["contrast"], "n": format_ratio(metric)}
    if values["n"] == EVEN:
        return say("{token} and {contrast} are equally likely.", token=named["token"], contrast=named["contrast"])
    if metric >= 0:
        return say("{token} is {n} as likely as {contrast}.", **values)
    return say("{contrast} is {n} as likely as {token}.", **values)


def _against_without(named: dict, metric: float, left: float) -> Words:
    values = {"word": named["word"], "n": format_ratio(left)}
    if values["n"] == EVEN:
        return say("Without “{word}”, they would be equally likely.", word=named["word"])
    if left < 0 and (metric >= 0 or format_ratio(metric) == EVEN):
        return say("Without “{word}”, {contrast} would be {n} as likely as {token}.", **named, n=values["n"])
    if metric >= 0:
        return say("Without “{word}”, only {n}.", **values)
    return say("Without “{word}”: {n}.", **values)


def headline_in_nats(losses: Losses, columns: Columns) -> Words:
    """The headline's numbers in nats."""
    best, loss = largest_loss(losses.of_metric, columns)
    if loss <= 0:
        return say("{n} nats", n=format_nats(losses.metric))
    return say(
        "{n} nats; without “{word}” {m}",
        n=format_nats(losses.metric),
        word=columns.labels[best],
        m=format_nats(losses.metric - loss),
    )


def format_ratio(value: float) -> str:
    """How many times as likely that many nats make something: "3.3 ×"."""
    ratio = math.exp(min(abs(value), 300.0))
    written = f"{ratio:.1f}" if ratio < 9.95 else blocks.compact(int(float(f"{ratio:.2g}"))) if ratio < 1e6 else "> 10⁶"
    return f"{written} ×"


EVEN = format_ratio(0.0)


def _both_without(named: dict, losses: Losses, column: int) -> Words:
    """A word that speaks for both: of what it does the metric says next to nothing."""
    left, against = losses.log_p - losses.of_log_p[column], losses.metric - losses.of_metric[column]
    return say(
        "Without “{word}”, {token} itself falls from {p} to {q}, and {contrast} goes from {r} to {s}.",
        **named,
        p=format_percent(losses.log_p),
        q=format_percent(left),
        r=format_percent(losses.log_p - losses.metric),
        s=format_percent(left - against),
    )


def format_nats(value: float) -> str:
    """A number of nats to one decimal, to two below one."""
    return with_minus_sign(f"{value:.{1 if abs(value) >= 1 else 2}f}")


def with_minus_sign(written: str) -> str:
    """A number as people write it: with a minus sign, but for 0."""
    return written.replace("-", "−" if written.strip("-0.%") else "")


def format_percent(log_p: float) -> str:
    """A log-probability as a percentage."""
    p = float(np.exp(log_p))
    return f"{p:.0%}" if p >= 0.1 else f"{p:.1%}" if p >= 0.001 else "<0.1%"


def candidates_table(found: Removal, tokens: Sequence[str], question: Question, before: Words, after: Words) -> dict:
    """A table of what the model would write before and after a change: the most probable tokens of either run with both
    probabilities. tokens: of found.ids; before, after: headings."""
    asked = (question.token_id, question.contrast_id)
    rows = [
        [blocks.token(labels.display(token)), blocks.bar(float(p)), blocks.bar(float(q))]
        for token, p, q in zip(tokens, *found.probabilities)
    ]
    return blocks.table(
        (say("Next token"), before, after),
        rows,
        marked=[i for i, one in enumerate(found.ids) if one in asked],
        caption=say("Probabilities, measured: the most probable tokens of either run; those compared are marked."),
    )
