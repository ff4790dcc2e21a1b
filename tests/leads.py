"""Count the words between a panel's title and its picture: python -m tests.leads. Part of make lint.

The lead and all texts, sources of formulas and remarks on numbers above the first picture count; labels of controls,
symbols and numbers do not. Tables, and cards with translations, are pictures. Each panel is computed for a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attention_atlas.model.program import run_program
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.translators import Translators
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.registry import PANELS
from attention_atlas.viz.panels.scene import PageQuestion, Scene, Selection
from attention_atlas.viz.wire import blocks
from tests import ROOT

MOST = 25
SENTENCE = "Der kleine Hund schläft."
WORD = re.compile(r"[^\W\d_]{2,}|\b[aI]\b")
CONTAINERS = ("row", "stack", "slot")
TEXTS = {  # the visible words of a block that is no picture
    "text": lambda block: [block["text"]],
    "formula": lambda block: [block["source"]],
    "facts": lambda block: [part for name, _, remark in block["items"] for part in (name, remark)],
    "take": lambda block: [block["about"]],
    "folded": lambda block: [block["title"]],
    "words": lambda block: [block.get("about", "")],
    **dict.fromkeys(("pick", "exports", "action", "link"), lambda block: []),  # controls
}


def words_above_picture(panel: Panel, scene: Scene) -> list[str]:
    """Return the words between the title of a panel and its first picture or table."""
    texts = [panel.look]
    for block in _flat(_content(panel, scene)):
        if block["type"] not in TEXTS:
            break
        texts += TEXTS[block["type"]](block)
    return [word for text in texts for word in WORD.findall(str(text))]


def _content(panel: Panel, scene: Scene) -> list[dict]:
    """Return the content of a panel, or its first part; [] if the panel does not apply to the scene."""
    try:
        panel.require(scene)
        values = [control.initial(scene.trace, scene.translator) for control in panel.controls]
        content = panel.content(scene, *values)
        return blocks.arrange(content if isinstance(content, list) else next(content))
    except Refusal:
        return []


def _flat(content: list[dict]) -> Iterator[dict]:
    for block in content:
        if block["type"] in CONTAINERS:
            yield from _flat(block["blocks"])
        else:
            yield block


def main() -> None:
    """List the panels with too many words, and fail if there are any."""
    translators = Translators.load(ROOT / "checkpoints", device="cpu")
    translator = next(translator for translator in translators.all if translator.name == "de-en")
    trace = translator.translate(SENTENCE, "de-en")
    scene = Scene(trace, Selection(), translator, PageQuestion.of(trace, 2), translators)
    panels = [panel for panels in PANELS.values() for panel in panels]
    counts = {panel.name: words_above_picture(panel, scene) for panel in panels}
    long = {name: words for name, words in counts.items() if len(words) > MOST}
    for name, words in long.items():
        print(f"{name}: {len(words)} words above the picture, at most {MOST} are allowed: {' '.join(words)}")
    if long:
        raise SystemExit(1)


if __name__ == "__main__":
    run_program(main)
