"""The statistics of a survey: what each counts, for which kinds of attention, and above which threshold it names a
head.

>>> previous = STATISTICS["previous"]
>>> str(previous.plain), previous.threshold, [kind.value for kind in previous.kinds]
('looks at the token before', 0.5, ['encoder_self', 'decoder_self'])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Words, say

__all__ = ["STATISTICS", "Statistic", "statistics_of"]

ENCODER, DECODER, CROSS = AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF, AttentionKind.CROSS
SELF, EVERY = (ENCODER, DECODER), (ENCODER, DECODER, CROSS)


@dataclass(frozen=True)
class Statistic:
    """One statistic of a head.

    title      its name on the page
    plain      what a head with a high value does, in everyday words
    exact      what is counted
    kinds      the kinds of attention that have it
    threshold  a head gets this name if the lower end of its interval exceeds the threshold; None: it names no head
    unit       "share" (of 1) or "nats"
    """

    title: Words
    plain: Words
    exact: Words
    kinds: tuple[AttentionKind, ...]
    threshold: float | None = None
    unit: str = "share"


_OFFSET = 0.5  # Clark et al. 2019; Voita et al. 2019 require 90 % of the rows' largest weights
_SINK = 0.6  # Clark et al. 2019
_BY_LENGTH = say(
    "the same share of the lengths of weight times value (Kobayashi et al. 2020): small where the weight is large, the "
    "head does nothing there"
)


# Statistics of the weight at an offset from the row's own position: offset, title, plain.
_OFFSETS = {
    "previous": (-1, say("previous token"), say("looks at the token before")),
    "itself": (0, say("own position"), say("looks at its own position")),
    "next": (1, say("next token"), say("looks at the token after")),
    "two_before": (-2, say("two before"), say("looks two tokens back")),
    "three_before": (-3, say("three before"), say("looks three tokens back")),
    "two_after": (2, say("two after"), say("looks two tokens ahead")),
    "three_after": (3, say("three after"), say("looks three tokens ahead")),
}
OFFSETS: Mapping[str, int] = {name: offset for name, (offset, *_) in _OFFSETS.items()}

STATISTICS: Mapping[str, Statistic] = {
    **{
        name: Statistic(
            title,
            plain,
            say(
                "mean weight at offset {offset}, rows and columns of words alone; Clark et al. 2019",
                offset=f"{offset:+d}".replace("-", "−") if offset else "0",
            ),
            SELF if offset <= 0 else (ENCODER,),
            _OFFSET,
        )
        for name, (offset, title, plain) in _OFFSETS.items()
    },
    "begin": Statistic(
        say("begin sink"),
        say("parks its attention on the start symbol"),
        say("mean weight on the symbols before the first word; Clark et al. 2019; Xiao et al. 2023"),
        EVERY,
        _SINK,
    ),
    "end": Statistic(
        say("end sink"),
        say("parks its attention on the end symbol"),
        say("mean weight on the symbols after the last word; Clark et al. 2019"),
        (ENCODER, CROSS),
        _SINK,
    ),
    "punctuation": Statistic(
        say("punctuation"),
        say("looks at punctuation"),
        say("mean weight on punctuation; Clark et al. 2019"),
        EVERY,
        _SINK,
    ),
    "begin_norm": Statistic(
        say("begin, by length"),
        say("what it takes from the start symbol"),
        _BY_LENGTH,
        EVERY,
    ),
    "end_norm": Statistic(
        say("end, by length"),
        say("what it takes from the end symbol"),
        _BY_LENGTH,
        (ENCODER, CROSS),
    ),
    "punctuation_norm": Statistic(
        say("punctuation, by length"),
        say("what it takes from punctuation"),
        _BY_LENGTH,
        EVERY,
    ),
    "breadth": Statistic(
        say("broad"),
        say("spreads over the whole sentence"),
        say("mean entropy of a row over the largest possible"),
        EVERY,
        0.9,
    ),
    "confidence": Statistic(
        say("confidence"), say("how sharply it points"), say("mean largest weight of a row (Voita et al. 2019)"), EVERY
    ),
    "same_token": Statistic(
        say("same token"),
        say("looks at other copies of the same token"),
        say("mean weight on other copies, over the rows that have one"),
        SELF,
        0.4,
    ),
    "rare_token": Statistic(
        say("rare token"),
        say("looks at the rarest token of the sentence"),
        say(
            "mean weight on the rarest token, in sentences where that is none of the 500 most frequent (Voita et al. "
            "2019)"
        ),
        (ENCODER, CROSS),
        0.5,
    ),
    "diagonal": Statistic(
        say("diagonal"),
        say("moves left to right through the source"),
        say("mean weight within a tenth of the sentence around the diagonal"),
        (CROSS,),
        0.5,
    ),
    "induction": Statistic(
        say("induction"),
        say("finds what followed this token earlier"),
        say(
            "mean weight on the token after the earlier copy, in random sequences that are repeated (Olsson et al. "
            "2022; known of language models that only decode, not established here)"
        ),
        SELF,
        0.4,
    ),
    "alignment_read": Statistic(
        say("aligned, token read"),
        say("looks at the source word of the word just written"),
        say(
            "mean weight on the source words linked to the token that the row reads, where none of them is near the "
            "diagonal; links by agreement of heads, not by hand"
        ),
        (CROSS,),
        0.4,
    ),
    "alignment_predicted": Statistic(
        say("aligned, token written"),
        say("looks at the source word of the word it writes next"),
        say(
            "mean weight on the source words linked to the token that the row predicts, where none of them is near the "
            "diagonal; links by agreement of heads, not by hand"
        ),
        (CROSS,),
        0.4,
    ),
    "gradient": Statistic(
        say("importance, by slope"),
        say("how much the translation depends on it (estimated)"),
        say(
            "mean absolute slope of the mean log-probability with respect to the head's gate (Michel et "
            "al. 2019): a proxy"
        ),
        EVERY,
        unit="nats",
    ),
    "ablation": Statistic(
        say("importance, measured"),
        say("how much less probable the translation is without it"),
        say("loss in the mean log-probability of a token when the head's output is replaced by its mean"),
        EVERY,
        unit="nats",
    ),
}


def statistics_of(kind: AttentionKind) -> tuple[str, ...]:
    """Return the names of a kind's statistics, in order."""
    return tuple(name for name, statistic in STATISTICS.items() if kind in statistic.kinds)
