"""What a visitor looks at, whichever part of the page asks: a translation, its model, the selection, the question."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from attention_atlas.model.analysis.again import recorded
from attention_atlas.model.analysis.lenses.fitted import Lenses
from attention_atlas.model.analysis.lenses.own import fitted_to, fitting
from attention_atlas.model.analysis.survey import own as surveys
from attention_atlas.model.analysis.trust import reading
from attention_atlas.model.analysis.trust import stored as stored_trust
from attention_atlas.model.analysis.why import pinned
from attention_atlas.model.analysis.why.case import Case, open_case
from attention_atlas.model.analysis.why.means_cache import MeansCache, Progress
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.serve.work import Result, Work
from attention_atlas.model.trace import is_integer
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.survey.survey import DirectionSurvey
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.trust.measured import Trust
from attention_atlas.model.trace.trust.signals import Reading
from attention_atlas.model.trace.why.means import Means
from attention_atlas.model.trace.why.question import Against, Question
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.maps import patterns
from attention_atlas.viz.wire.fields import entry

MAX_TOKENS = 128  # of source and prefix: a method runs the model once or twice for each
Contrast = str | int | Against  # text as typed, a token's id, or one that is not named


@dataclass(frozen=True)
class Selection:
    """The attention being looked at. Layer and head count from 0; query and key are positions, or None."""

    kind: AttentionKind = AttentionKind.CROSS
    layer: int = 0
    head: int = 0
    query: int | None = None
    key: int | None = None

    @classmethod
    def from_plain(cls, data: object) -> Selection:
        """As the page says it. A Refusal for an unknown kind."""
        if not isinstance(data, dict):
            return cls()

        def position(name: str) -> int | None:
            value = data.get(name)
            return value if is_integer(value, 0) else None

        kind = entry(data, "kind", {kind.value: kind for kind in AttentionKind})
        return cls(kind, position("layer") or 0, position("head") or 0, position("query"), position("key"))

    def fitted(self, trace: TranslationTrace) -> Selection:
        """The same, inside the limits of this trace: its layers, heads and tokens."""
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
    """The head to begin with: viz.maps.patterns says which."""
    view = patterns.most_telling(trace)
    return Selection(view.kind, view.layer, view.head)


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
        if not isinstance(data, dict) or not is_integer(data.get("step"), 0) or not _is_ids(data.get("about")):
            return cls()
        contrast, about = data.get("contrast"), tuple(map(tuple, data["about"]))
        if isinstance(contrast, dict):
            against = contrast.get("against")
            found = next((one for one in Against if one.value == against), Against.RUNNER_UP)
            return cls(data["step"], found, about)
        if not isinstance(contrast, str) and not is_integer(contrast):
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
    """The most probable other token; for a word's piece, the most probable one that has letters."""
    others = pinned.contrasts(trace, step)
    texts = dict(zip(trace.top_ids[step].tolist(), trace.top_tokens[step]))
    lettered = [other for other in others if _has_letters(texts[other])]
    return (lettered if lettered and _has_letters(trace.target_tokens[step]) else others)[0]


def _has_letters(token: str) -> bool:
    return not is_symbol(token) and any(map(str.isalnum, token))


def _is_ids(value: object) -> bool:
    """Whether it is a list of lists of whole numbers."""
    return isinstance(value, list) and all(isinstance(ids, list) and all(map(is_integer, ids)) for ids in value)


def _about(trace: TranslationTrace, step: int) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, (trace.source_ids, trace.target_ids[: step + 1])))


def wanted_by(data: Mapping[str, object], trace: TranslationTrace, asked: Asked) -> Asked:
    """What the page asks with {step, and token (an id), text, or alone: true}. Another step is compared with its own
    runner-up, or with nothing where nothing was compared before; a step that there is not is the one asked before."""
    before, step = asked.fitted(trace), data.get("step")
    if not is_integer(step, 0, len(trace.target_ids) - 1):
        step = before.step
    contrast: Contrast = Against.NOTHING if before.contrast is Against.NOTHING else Against.RUNNER_UP
    if data.get("alone"):
        contrast = Against.NOTHING
    elif isinstance(data.get("text"), str):
        contrast = data["text"]
    elif is_integer(data.get("token")):
        contrast = data["token"]
    return Asked.of(trace, step, contrast)


@dataclass(frozen=True, eq=False)
class Scene:
    """selection: the explorer's, inside the trace's limits. made_by: whose model made the trace; None where that is not
    served, or no longer. asked: in the tab "Why". served: every model of the page, for a panel that shows another one
    beside this. drawn: what the page says that it draws, for a panel that checks it; anything at all may come. record:
    returns the recorded pass of a trace. begun: keys of the works that the page has begun."""

    trace: TranslationTrace
    selection: Selection = Selection()
    made_by: Translator | None = None
    asked: Asked = Asked()
    means_cache: MeansCache = field(default_factory=MeansCache)
    served: Translators | None = None
    drawn: object = None
    record: Callable[[Translator, TranslationTrace], ForwardOutput] = recorded
    begun: Collection[str] = ()

    @property
    def translator(self) -> Translator:
        """A Refusal, in words, where none is served: nothing but the trace can then be looked at."""
        if self.made_by is None:
            raise not_served(self.trace.checkpoint)
        return self.made_by

    @cached_property
    def output(self) -> ForwardOutput:
        """The recorded pass under the trace's interventions. A Refusal for interventions that cannot be run again."""
        return self.record(self.translator, self.trace)

    @cached_property
    def question(self) -> Question:
        """The pinned token and its contrast. A Refusal, in words, for what cannot be asked."""
        return self.asked.question(self.translator, self.trace)

    @property
    def askable(self) -> int:
        """How many tokens of the translation, from the first on, counterfactuals one by one are not too long for."""
        return max(0, MAX_TOKENS - len(self.trace.source_ids))

    @cached_property
    def case(self) -> Case:
        """The question with its recorded pass and all that experiments on it share. A Refusal as in question, if the
        model is no Transformer, or if the texts are too long for counterfactuals one by one."""
        check_transformer(self.translator.model)
        if self.question.step >= self.askable:
            raise Refusal(
                "The source and what was written before this token are {n} tokens long; the limit here is {limit} "
                "tokens.",
                n=len(self.trace.source_ids) + self.question.step + 1,
                limit=MAX_TOKENS,
            )
        return open_case(self.translator, self.trace, self.question, means=self.means)

    def result(self, work: Work[Result]) -> Result | None:
        """The result of a work; None if it was neither computed here nor begun by the page. Raises WorkNeeded if it was
        begun."""
        return work.result() if work.key in self.begun else work.find()

    @property
    def lenses(self) -> Lenses | None:
        """Of this model, if some were fitted. Raises as result()."""
        return fitted_to(self.translator) or self.result(fitting(self.translator, self.trace.direction))

    @property
    def survey(self) -> DirectionSurvey | None:
        """Of this model's heads, if one was taken. Raises as result()."""
        translator, direction = self.translator, self.trace.direction
        return surveys.shipped(translator, direction) or self.result(surveys.survey(translator, direction))

    @cached_property
    def reading(self) -> Reading:
        """What signals of this translation are read from. Refusals as in output, and for another network."""
        check_transformer(self.translator.model)
        return reading(self.translator, self.trace)

    @property
    def trust(self) -> Trust:
        """What was measured of this model's signals in this direction; nothing where nobody did."""
        found = stored_trust(self.translator.folder, self.translator.digest)
        return found.get(self.trace.direction, Trust())

    @property
    def means(self) -> Means | None:
        """Of this model, if there are any yet."""
        return self.means_cache.find(self.translator, self.trace.direction)

    def prepare_means(self) -> Iterator[Progress]:
        """Make the model's means where there are none and can be some. Before case is asked for."""
        if self.means is None and self.means_cache.can_make(self.trace.direction):
            yield from self.means_cache.make(self.translator, self.trace.direction)


def not_served(checkpoint: str) -> Refusal:
    """Return the refusal of a question about a translation whose model is not, or no longer, served."""
    return Refusal("The checkpoint of this translation, {name}, is not loaded: translate again.", name=checkpoint)
