"""The panel "Logits": how the last vector becomes probabilities of the next token."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis import stations
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels import formulas
from attention_atlas.viz.panels.panel import Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say


def logits(scene: Scene, step: int) -> list[dict]:
    """Draw the best tokens of a step (from 1) with their logits and probabilities."""
    trace = scene.trace
    at = min(step, len(trace.target_ids)) - 1
    candidates = stations.next_token(scene.translator, scene.output, at)
    prefix = " ".join(labels.display(token) for token in trace.decoder_inputs[: at + 1])
    config = scene.translator.config
    banned = ", ".join(labels.display(token) for token in scene.translator.tokenizer.tokens(config.banned_ids[:6]))
    never = blocks.note(
        "Decoding never chooses {n} of the tokens, however probable they are: {tokens}",
        n=len(config.banned_ids),
        tokens=banned + " …" * (len(config.banned_ids) > 6),
    )
    over_tokens = say("over {n} tokens", n=config.num_target_tokens)
    return [
        blocks.formula(formulas.logits(config)),
        *([never] if banned else []),
        blocks.stack(
            blocks.paragraph(
                "Step {n} of {total}, after {prefix}", n=at + 1, total=len(trace.target_ids), prefix=prefix
            ),
            blocks.row(
                blocks.columns(
                    (say("Next token"), [blocks.token(labels.display(token)) for token in candidates.tokens]),
                    ("logit", map(blocks.number, candidates.logits)),
                    ("exp(logit − log Σ)", map(blocks.number, np.exp(candidates.logits - candidates.log_sum))),
                    (say("probability"), [blocks.bar(p, blocks.compact(p)) for p in candidates.probabilities]),
                    marked=np.flatnonzero(candidates.ids == trace.target_ids[at]).tolist(),
                    caption=say("The 20 most probable tokens of the whole vocabulary; the chosen one is marked."),
                ),
                blocks.facts(
                    ("log Σ exp(logits)", blocks.compact(candidates.log_sum), over_tokens),
                    blocks.fact(
                        "Entropy",
                        say("{bits} bits", bits=f"{candidates.entropy:.2f}"),
                        "the {rest} besides the most probable token is spread over {n} tokens",
                        rest=f"{1 - candidates.probabilities[0]:.1%}",
                        n=config.num_target_tokens - 1,
                    ),
                    blocks.fact("All other tokens", candidates.rest, "probability together"),
                ),
            ),
        ),
    ]


PANEL = Panel(
    "logits",
    "Logits",
    "The last vector is scored against every token. The softmax makes a small lead in logits "
    "become a large one in probability.",
    say("Paper, section {n}", n="3.4"),
    logits,
    of_any_network=True,
    controls=(
        Slider(
            say("Step"), 1, lambda config: min(64, config.max_length), 1, of=lambda trace, _: len(trace.target_tokens)
        ),
    ),
)
