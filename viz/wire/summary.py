"""The summary of a translation that the page's header shows, as JSON-ready data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.tokens import is_byte, is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE
from attention_atlas.viz.maps import labels
from attention_atlas.viz.words import Words, say, say_plural

BYTE_SHARE_LIMIT = 0.15  # of the source's tokens; above it a warning says that the input is unusual
UNSTATED = "not stated"  # as a licence in metrics.json
INVITATION = say("Nothing is translated yet. Type a sentence above and press Enter.")


def summarise(trace: TranslationTrace, model, lacking: Sequence[dict] = ()) -> dict:
    """Return the translation, its tokens with their probabilities, warnings, and facts about the model.

    model: the Translator, for its metrics and sizes. lacking: panels that do not apply, as {name, panel, why}.
    """
    return {
        "text": trace.translation,
        "read": in_text(trace.source_text, trace.source_tokens),
        "written": in_text(trace.translation, trace.target_tokens),
        "source": list(map(_token, trace.source_tokens)),
        "target": [_target_token(trace, step) for step in range(len(trace.target_ids))],
        "warnings": warnings(trace),
        "finished": trace.finished,
        "facts": [
            say("{ms} ms on {device}", ms=f"{trace.seconds * 1000:.0f}", device=trace.device.upper()),
            say_plural("{how}, {n} step", "{how}, {n} steps", how=trace.decoded_by, n=len(trace.target_ids)),
            *(
                [say("with a change to the model: {what}", what=trace.interventions.describe())]
                if trace.interventions
                else []
            ),
            *_facts(model),
        ],
        "about": about(model, lacking),
    }


def in_text(text: str, tokens: Sequence[str]) -> list[dict]:
    """Split a text into its words, as {gap, text, tokens, pieces}.

    The gaps and texts joined are the text. tokens are the positions of a word's tokens, and pieces the text of each,
    [] if they do not spell the word one by one (bytes). Returns [] if the tokens do not spell the text, for example
    because the tokenizer normalised it.
    """
    words, end = [], 0
    for group, label in labels.words(tokens):
        pieces = [tokens[i].replace(SPACE, "") for i in group]
        start = text.find(label, end)
        if start < 0 or text[end:start].strip():
            return []
        is_spelled = "".join(pieces) == label and all(pieces)
        words.append(
            {"gap": text[end:start], "text": label, "tokens": list(group), "pieces": pieces if is_spelled else []}
        )
        end = start + len(label)
    return words if not text[end:].strip() else []


def invitation(model) -> dict:
    """Return the header's data before anything is translated."""
    return {"invitation": INVITATION, "facts": _facts(model), "about": about(model)}


def _facts(model) -> list[Words]:
    """Describe a model's size and its longest text."""
    config = model.config
    limit = say("texts of up to {n} tokens", n=model.max_tokens)
    if AttentionKind.CROSS not in model.model.num_layers:
        return [say("recurrent, states of {n} numbers", n=config.d_model), limit]
    layers = {"encoder": config.num_encoder_layers, "decoder": config.num_decoder_layers}
    read, wrote = (config.of(side).num_heads for side in Side)
    if read == wrote:
        return [say("{encoder} + {decoder} layers × {heads} heads", **layers, heads=read), limit]
    heads = {"read": read, "wrote": wrote}
    return [say("{encoder} layers × {read} heads + {decoder} layers × {wrote} heads", **layers, **heads), limit]


def _token(token: str) -> dict:
    return {"text": token, "byte": is_byte(token), "symbol": is_symbol(token)}


def _target_token(trace: TranslationTrace, step: int) -> dict:
    given = trace.decoding.given if trace.decoding else 0
    return {
        **_token(trace.target_tokens[step]),
        "given": step < given and bool(trace.chosen_rank[step] > 1),  # the model would have written another token
        "probability": float(np.exp(trace.log_probability[step])),
        "rank": int(trace.chosen_rank[step]),
        "entropy": float(trace.entropy[step]),
        "others": [
            [token, float(p)] for token, p in zip(trace.top_tokens[step][:4], trace.top_probabilities[step][:4])
        ],
    }


def warnings(trace: TranslationTrace) -> list[Words]:
    """Return warnings about unusual input, each with its number, and about toys and unfinished translations."""
    messages = []
    content = [t for t in trace.source_tokens if not is_symbol(t)]
    share = sum(map(is_byte, content)) / max(1, len(content))
    if share > BYTE_SHARE_LIMIT:
        messages.append(
            say(
                "{share} of the input is spelled out byte by byte: the vocabulary lacks these characters, "
                "and the model has rarely seen them.",
                share=f"{share:.0%}",
            )
        )
    if trace.recipe is not None:
        messages.append(
            say(
                "This is the network you trained. It lasts as long as your visit: links name it but do not "
                "contain it, and files contain only its maps."
            )
        )
    if not trace.finished:
        messages.append(
            say("Stopped after {n} tokens without reaching the end of the sentence.", n=len(trace.target_ids))
        )
    return messages


def about(model, lacking: Sequence[dict] = ()) -> dict:
    """Return the model's name, size, training data and scores, from the checkpoint's metrics.json.

    lacking: as for summarise().
    """
    return {
        "name": model.name,
        "digest": model.digest,
        "parameters": model.metrics.get("parameters"),
        "training": model.metrics.get("training", ""),
        # Scores by a published protocol, of the same translations, are left to the model card.
        "scores": [score for score in model.metrics.get("scores", []) if "protocol" not in score],
        "origin": _origin(model.metrics.get("origin")),
        "notes": model.metrics.get("notes", []),
        "lacking": list(lacking),
    }


def _origin(origin: dict | None) -> Words | None:
    """Describe where another family's model comes from; None for this project's own models."""
    if not origin:
        return None
    licence = say("not stated") if origin["licence"] == UNSTATED else origin["licence"]
    return say(
        "Third-party model: {name}. Licence according to its model card: {licence}.",
        name=origin["name"],
        licence=licence,
    )
