"""What a visitor asks of the tab "Why": which written token, and against which other one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from model.analysis.why import pinned
from model.trace import is_whole
from model.trace.tokens import is_symbol
from model.trace.translation import TranslationTrace
from model.trace.why.question import Against, Question
from model.translator import Translator

MAX_TOKENS = 128  # of source and prefix: a method runs the model once or twice for each
Contrast = str | int | Against  # text as typed, a token's id, or one that is not named


@dataclass(frozen=True)
class Asked:
    """step: the pinned row of the decoder; None: that of the least certain content word. about: the ids that were read
    and written up to there: of another sentence, or another beginning of it, nothing has been asked yet."""

    step: int | None = None
    contrast: Contrast = Against.RUNNER_UP
    about: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, trace: TranslationTrace, step: int | None, contrast: Contrast = Against.RUNNER_UP) -> Asked:
        """A question about a trace."""
        step = pinned.default_step(trace, MAX_TOKENS) if step is None else step
        return cls(step, contrast, _about(trace, step))

    @classmethod
    def from_plain(cls, data: object) -> Asked:
        """Read the result of to_plain(), which the page sends back. Anything else is no question yet: Asked()."""
        if not isinstance(data, dict) or not is_whole(data.get("step"), 0) or not _is_ids(data.get("about")):
            return cls()
        contrast, about = data.get("contrast"), tuple(map(tuple, data["about"]))
        if isinstance(contrast, dict):
            against = contrast.get("against")
            found = next((one for one in Against if one.value == against), Against.RUNNER_UP)
            return cls(data["step"], found, about)
        if not isinstance(contrast, str) and not is_whole(contrast):
            return cls()
        return cls(data["step"], contrast, about)

    def to_plain(self) -> dict:
        """JSON-ready."""
        contrast = {"against": self.contrast.value} if isinstance(self.contrast, Against) else self.contrast
        return {"step": self.step, "contrast": contrast, "about": [list(ids) for ids in self.about]}

    def fitted(self, trace: TranslationTrace) -> Asked:
        """The same about this trace; where it was asked about another one, what is asked of itself."""
        same = self.step is not None and self.about == _about(trace, self.step)
        return self if same else Asked.of(trace, None)

    def question(self, translator: Translator, trace: TranslationTrace) -> Question:
        """What it means for this trace. A Refusal says in words what cannot be asked."""
        found = self.fitted(trace)
        question = pinned.ask(translator, trace, found.step, found.contrast)
        if found.contrast is Against.RUNNER_UP:
            return pinned.ask(translator, trace, question.step, _runner_up(trace, question.step))
        return question


def _runner_up(trace: TranslationTrace, step: int) -> int:
    """The most probable other token; of a word's piece, the most probable that has letters: that an apostrophe might
    have followed explains no word."""
    others = pinned.contrasts(trace, step)
    texts = dict(zip(trace.top_ids[step].tolist(), trace.top_tokens[step]))
    lettered = [other for other in others if _has_letters(texts[other])]
    return (lettered if lettered and _has_letters(trace.target_tokens[step]) else others)[0]


def _has_letters(token: str) -> bool:
    return not is_symbol(token) and any(map(str.isalnum, token))


def _is_ids(value: object) -> bool:
    """Whether it is a list of lists of whole numbers."""
    return isinstance(value, list) and all(isinstance(ids, list) and all(map(is_whole, ids)) for ids in value)


def _about(trace: TranslationTrace, step: int) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, (trace.source_ids, trace.target_ids[: step + 1])))


def wanted_by(data: Mapping[str, object], trace: TranslationTrace, asked: Asked) -> Asked:
    """What the page asks with {step, and token (an id), text, or alone: true}. Another step is compared with its own
    runner-up, or with nothing where nothing was compared before; a step that there is not is the one asked before."""
    before, step = asked.fitted(trace), data.get("step")
    if not is_whole(step, 0, len(trace.target_ids) - 1):
        step = before.step
    contrast: Contrast = Against.NOTHING if before.contrast is Against.NOTHING else Against.RUNNER_UP
    if data.get("alone"):
        contrast = Against.NOTHING
    elif isinstance(data.get("text"), str):
        contrast = data["text"]
    elif is_whole(data.get("token")):
        contrast = data["token"]
    return Asked.of(trace, step, contrast)
