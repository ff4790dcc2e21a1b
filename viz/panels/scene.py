"""The scene that every panel computes from: a translation, its model, the selection and the question of the tab "Why".

Selection and PageQuestion are the parts that the page keeps and sends with each request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from attention_atlas.model.analysis.lenses.fit import find_lenses, lens_work
from attention_atlas.model.analysis.lenses.storage import Lenses
from attention_atlas.model.analysis.rerun import record_pass
from attention_atlas.model.analysis.survey import run as surveys
from attention_atlas.model.analysis.trust import load_trust, read_trace
from attention_atlas.model.analysis.why import questions
from attention_atlas.model.analysis.why.case import Case, open_case
from attention_atlas.model.analysis.why.means import load_stored_means
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.serve.work import Result, Work
from attention_atlas.model.trace import is_integer
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.survey.survey import DirectionSurvey
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.trust import Reading, Trust
from attention_atlas.model.trace.why.attribution import Against, Question
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.maps import patterns
from attention_atlas.viz.wire.fields import read_entry

MAX_TOKENS = 128  # of source and prefix together: attribution methods run the model once or twice per token
Contrast = str | int | Against  # typed text, a token id, the runner-up, or nothing


@dataclass(frozen=True)
class Selection:
    """The selected kind, layer and head of attention (from 0), and positions of the pinned query and key, if any."""

    kind: AttentionKind = AttentionKind.CROSS
    layer: int = 0
    head: int = 0
    query: int | None = None
    key: int | None = None

    @classmethod
    def from_plain(cls, data: object) -> Selection:
        """Read the selection that the page sends. Malformed numbers are ignored; a Refusal for an unknown kind."""
        if not isinstance(data, dict):
            return cls()
        kind = read_entry(data, "kind", {kind.value: kind for kind in AttentionKind})
        numbers = {name: data.get(name) for name in ("layer", "head", "query", "key")}
        return cls(kind, **{name: number for name, number in numbers.items() if is_integer(number, 0)})

    def clamp(self, trace: TranslationTrace) -> Selection:
        """Return the selection limited to the kinds, layers, heads and tokens of a trace."""
        if not trace.kinds:  # of a recurrent network without attention
            return Selection()
        kind = self.kind if self.kind in trace.kinds else trace.kinds[-1]
        maps = trace.maps(kind)
        queries, keys = maps.weights.shape[2:]
        return Selection(
            kind,
            min(self.layer, maps.num_layers - 1),
            min(self.head, maps.num_heads - 1),
            self.query if self.query is not None and self.query < queries else None,
            self.key if self.key is not None and self.key < keys else None,
        )


def most_telling(trace: TranslationTrace) -> Selection:
    """Return the head to open with (viz.maps.patterns.most_telling)."""
    view = patterns.most_telling(trace)
    return Selection(view.kind, view.layer, view.head)


@dataclass(frozen=True)
class PageQuestion:
    """The question of the tab "Why" as the page keeps it.

    step      the pinned row of the decoder; None until a visitor pins one
    contrast  what the pinned token is compared with
    about     the ids read, and those written up to the pinned token. The question holds for these alone
    """

    step: int | None = None
    contrast: Contrast = Against.RUNNER_UP
    about: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, trace: TranslationTrace, step: int | None, contrast: Contrast = Against.RUNNER_UP) -> PageQuestion:
        """Return a question about a trace. step None: the least certain content word."""
        step = questions.default_step(trace, MAX_TOKENS) if step is None else step
        return cls(step, contrast, _about(trace, step))

    @classmethod
    def from_plain(cls, data: object) -> PageQuestion:
        """Read what to_plain() returned and the page sends back. Anything malformed gives the empty question."""
        if not isinstance(data, dict) or not is_integer(data.get("step"), 0) or not _is_ids(data.get("about")):
            return cls()
        contrast = data.get("contrast")
        if isinstance(contrast, dict):
            against = contrast.get("against")
            contrast = next((member for member in Against if member.value == against), Against.RUNNER_UP)
        elif not isinstance(contrast, str) and not is_integer(contrast):
            return cls()
        return cls(data["step"], contrast, tuple(map(tuple, data["about"])))

    def to_plain(self) -> dict:
        """Return JSON-ready values."""
        contrast = {"against": self.contrast.value} if isinstance(self.contrast, Against) else self.contrast
        return {"step": self.step, "contrast": contrast, "about": [list(ids) for ids in self.about]}

    def for_trace(self, trace: TranslationTrace) -> PageQuestion:
        """Return this question if it is about the trace, else the default question about it."""
        same = self.step is not None and self.about == _about(trace, self.step)
        return self if same else PageQuestion.of(trace, None)

    def question(self, translator: Translator, trace: TranslationTrace) -> Question:
        """Resolve the step and the contrast to token ids. A Refusal if this trace has no such question."""
        current = self.for_trace(trace)
        question = questions.make_question(translator, trace, current.step, current.contrast)
        if current.contrast is Against.RUNNER_UP:
            return questions.make_question(translator, trace, question.step, _runner_up(trace, question.step))
        return question


def _runner_up(trace: TranslationTrace, step: int) -> int:
    """Return the most probable alternative to the token; for a token with letters, the best one with letters."""
    alternatives = questions.list_contrasts(trace, step)
    texts = dict(zip(trace.top_ids[step].tolist(), trace.top_tokens[step]))
    lettered = [token_id for token_id in alternatives if _has_letters(texts[token_id])]
    return (lettered if lettered and _has_letters(trace.target_tokens[step]) else alternatives)[0]


def _has_letters(token: str) -> bool:
    return not is_symbol(token) and any(map(str.isalnum, token))


def _is_ids(value: object) -> bool:
    """Return whether a value is a list of lists of integers."""
    return isinstance(value, list) and all(isinstance(ids, list) and all(map(is_integer, ids)) for ids in value)


def _about(trace: TranslationTrace, step: int) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, (trace.source_ids, trace.target_ids[: step + 1])))


def read_question(data: Mapping[str, object], trace: TranslationTrace, previous: PageQuestion) -> PageQuestion:
    """Read a new question of the page: {step} and one of {token: an id}, {text} and {alone: true}.

    An invalid step keeps the previous one. Without a contrast the token is compared with its runner-up, or with nothing
    if the previous question compared with nothing.
    """
    before, step = previous.for_trace(trace), data.get("step")
    if not is_integer(step, 0, len(trace.target_ids) - 1):
        step = before.step
    contrast: Contrast = Against.NOTHING if before.contrast is Against.NOTHING else Against.RUNNER_UP
    if data.get("alone"):
        contrast = Against.NOTHING
    elif isinstance(data.get("text"), str):
        contrast = data["text"]
    elif is_integer(data.get("token")):
        contrast = data["token"]
    return PageQuestion.of(trace, step, contrast)


@dataclass(frozen=True, eq=False)
class Scene:
    """A translation with everything that a panel may ask about it. Expensive parts are computed on first use.

    selection      the explorer's, within the trace's limits
    made_by        the model that made the trace; None if it is not, or no longer, served
    page_question  the question of the tab "Why"
    served         all models of the page, for panels that compare two
    drawn          what the page reports that it draws, not validated, for the panel that checks it
    record         computes the recorded pass of a trace
    begun          keys of the Work that the page has started
    """

    trace: TranslationTrace
    selection: Selection = Selection()
    made_by: Translator | None = None
    page_question: PageQuestion = PageQuestion()
    served: Translators | None = None
    drawn: object = None
    record: Callable[[Translator, TranslationTrace], ForwardOutput] = record_pass
    begun: Collection[str] = ()

    @property
    def translator(self) -> Translator:
        """The model that made the trace. A Refusal if it is not served."""
        if self.made_by is None:
            raise not_served(self.trace.checkpoint)
        return self.made_by

    @cached_property
    def output(self) -> ForwardOutput:
        """The recorded pass under the trace's interventions. A Refusal if these cannot be run again."""
        return self.record(self.translator, self.trace)

    @cached_property
    def question(self) -> Question:
        """The pinned token and its contrast. A Refusal if the trace has no such question."""
        return self.page_question.question(self.translator, self.trace)

    @property
    def num_askable(self) -> int:
        """How many tokens of the translation, from the first, can be asked about within MAX_TOKENS."""
        return max(0, MAX_TOKENS - len(self.trace.source_ids))

    @cached_property
    def case(self) -> Case:
        """The question with its recorded pass and what experiments on it share, such as the checkpoint's own means.

        A Refusal as for `words_case`, and if the model is not a Transformer.
        """
        check_transformer(self.translator.model)
        return self.words_case

    @cached_property
    def words_case(self) -> Case:
        """The question to any network, of which words can be changed; experiments on parts take `case`.

        A Refusal as for `question`, or if source and prefix exceed MAX_TOKENS.
        """
        if self.question.step >= self.num_askable:
            raise Refusal(
                "The source and the tokens before this one are {n} tokens long; the limit here is {limit} tokens.",
                n=len(self.trace.source_ids) + self.question.step + 1,
                limit=MAX_TOKENS,
            )
        return open_case(self.translator, self.trace, self.question, means=load_stored_means(self.translator))

    def result(self, work: Work[Result]) -> Result | None:
        """Return the result of a Work, or None if nobody has started it. Raises WorkNeeded if the page has started it
        and it must be computed first."""
        return work.result() if work.key in self.begun else work.find()

    @property
    def lenses(self) -> Lenses | None:
        """The model's lenses, or None. Raises as result()."""
        return find_lenses(self.translator) or self.result(lens_work(self.translator, self.trace.direction))

    @property
    def survey(self) -> DirectionSurvey | None:
        """The survey of the model's heads, or None. Raises as result()."""
        translator, direction = self.translator, self.trace.direction
        return surveys.stored_survey(translator, direction) or self.result(surveys.survey_work(translator, direction))

    @cached_property
    def reading(self) -> Reading:
        """The values that trust signals are computed from. A Refusal as for `output`, or if not a Transformer."""
        check_transformer(self.translator.model)
        return read_trace(self.translator, self.trace)

    @property
    def trust(self) -> Trust:
        """The measured quality of the model's trust signals in this direction; an empty Trust without measurements."""
        by_direction = load_trust(self.translator.folder, self.translator.digest)
        return by_direction.get(self.trace.direction, Trust())


def not_served(checkpoint: str) -> Refusal:
    """Return the refusal of a question about a translation whose model is not, or no longer, served."""
    return Refusal("The checkpoint of this translation, {name}, is not loaded: translate again.", name=checkpoint)
