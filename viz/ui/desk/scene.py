"""What a visitor looks at, whichever part of the page asks: a translation, its model, the selection, the question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from model.analysis.again import recorded
from model.analysis.lenses.fitted import Lenses
from model.analysis.lenses.own import fitted_to
from model.analysis.trust import reading
from model.analysis.trust import stored as stored_trust
from model.analysis.why.case import Case, open_case
from model.analysis.why.means_cache import MeansCache, Progress
from model.nets.networks import check_transformer
from model.nets.records import ForwardOutput
from model.trace.language import Refusal
from model.trace.translation import TranslationTrace
from model.trace.trust.measured import Trust
from model.trace.trust.signals import Reading
from model.trace.why.means import Means
from model.trace.why.question import Question
from model.translator import Translator
from model.translators import Translators
from viz.ui.asked import MAX_TOKENS, Asked
from viz.ui.selection import Selection, no_longer_served


@dataclass(frozen=True, eq=False)
class Scene:
    """selection: the explorer's, inside the trace's limits. made_by: whose model made the trace; None where that is not
    served, or no longer. asked: in the tab "Why". served: every model of the page, for a panel that shows another one
    beside this. drawn: what the page says that it draws, for a panel that checks it; anything at all may come."""

    trace: TranslationTrace
    selection: Selection = Selection()
    made_by: Translator | None = None
    asked: Asked = Asked()
    means_cache: MeansCache = field(default_factory=MeansCache)
    served: Translators | None = None
    drawn: object = None

    @property
    def translator(self) -> Translator:
        """A Refusal, in words, where none is served: nothing but the trace can then be looked at."""
        if self.made_by is None:
            raise no_longer_served(self.trace)
        return self.made_by

    @cached_property
    def output(self) -> ForwardOutput:
        """The recorded pass of this translation, under its interventions. A Refusal, in words, for those that cannot be
        run again."""
        return recorded(self.translator, self.trace)

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

    @property
    def lenses(self) -> Lenses | None:
        """Of this model, if some were fitted."""
        return fitted_to(self.translator)

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
