"""A question that somebody answers before the page does: what is asked, what may be chosen, what is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from model.trace.kinds import AttentionKind
from model.trace.language import Refusal, Words
from model.trace.tokens import is_symbol
from model.trace.words import is_punctuation, word_groups
from viz.maps.labels import word_label
from viz.ui.tours.heads import points
from viz.ui.tours.measures.measured import share
from viz.ui.tours.scene import StopScene
from viz.ui.tours.tour import Pair

LEAST = 0.001  # of a share that is written out
MOST = 30  # words to choose from
ALIKE = 0.005  # values of shares nearer than this are both right
BACK = (
    AttentionKind.CROSS,
    AttentionKind.ALIGNMENT,
)  # attention to what was read: a Transformer's, a recurrent network's


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


def words_of(tokens: Sequence[str]) -> list[tuple[str, tuple[int, ...]]]:
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
        word = max((word for word, _ in words_of(scene.trace.target_tokens)), key=len)
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
    scene, words = about(scene), words_of(scene.trace.source_tokens)
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


def seen(scene: StopScene, tab: str = "explorer", **fields: str) -> dict[str, str]:
    """A link to the scene."""
    if scene.head is None and AttentionKind.CROSS in scene.trace.kinds:
        scene = replace(scene, head=points(scene))
    return {**scene.link(), "tab": tab, **fields}
