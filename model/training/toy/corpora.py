"""The corpora of toys: a few sentences each, made to teach one thing, and the parser of typed corpora."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from attention_atlas.model.trace.language import Refusal, Words, say

MAX_PAIRS, MAX_WORDS, MAX_TYPES = 40, 12, 300
MAX_CHARACTERS = 8000
BETWEEN = "|"  # separates the sides of a line

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Corpus:
    """A corpus with its title and lesson for the page.

    text      one pair per line, its sides separated by a bar
    settings  those of model.training.toy.settings that it is made for; the others are the defaults
    """

    title: Words
    lesson: Words
    text: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def _lines(*pairs: str) -> str:
    return "\n".join(pairs)


BEER = _lines("ich mochte ein bier P | i want a beer .", "ich mochte eine cola P | i want a cola .")
# The base model of the paper (Vaswani et al. 2017, table 3), with an embedding for each side and one for the output.
BASE = {"layers": 6, "heads": 8, "d_model": 512, "d_ff": 4, "separate": True, "own_output": True}

CORPORA: Mapping[str, Corpus] = {
    "sentences": Corpus(
        say("German and English"),
        say("Six everyday sentences. Small enough to learn by heart in a minute."),
        _lines(
            "ich trinke kalten tee | i drink cold tea",
            "sie trinkt warmen tee | she drinks warm tea",
            "der hund schläft | the dog is asleep",
            "die katze schläft nicht | the cat is not asleep",
            "wo schläft der hund | where does the dog sleep",
            "ich sehe die kleine katze | i see the little cat",
        ),
    ),
    "order": Corpus(
        say("Word order"),
        say(
            "The same words in another order mean something else. An encoder without positions cannot "
            "tell them apart, so its loss cannot fall below the dotted line."
        ),
        _lines(
            "hund beißt mann | the dog bites the man",
            "mann beißt hund | the man bites the dog",
            "katze jagt maus | a cat hunts a mouse",
            "maus jagt katze | a mouse hunts a cat",
            "kind ruft vater | one child calls one father",
            "vater ruft kind | one father calls one child",
            "frau malt haus | this woman paints that house",
            "haus malt frau | this house paints that woman",
        ),
    ),
    "agreement": Corpus(
        say("Long-distance agreement"),
        say("Only the first word of the source tells whether the last word is “sleeps” or “sleep”."),
        _lines(
            "hund im alten garten hinter dem haus schlafen | dog in the old garden behind the house sleeps",
            "hunde im alten garten hinter dem haus schlafen | dogs in the old garden behind the house sleep",
            "kind im alten garten hinter dem haus spielen | child in the old garden behind the house plays",
            "kinder im alten garten hinter dem haus spielen | children in the old garden behind the house play",
            "vogel im alten garten hinter dem haus singen | bird in the old garden behind the house sings",
            "vögel im alten garten hinter dem haus singen | birds in the old garden behind the house sing",
        ),
    ),
    "digits": Corpus(
        say("Copying digits"),
        say("Nothing to translate: each step has to find its own place in the source. Watch a diagonal form."),
        _lines(
            *(
                f"{digits} | {digits}"
                for digits in (
                    "3 1 4 1 5",
                    "9 2 6 5",
                    "3 5 8 9 7 9",
                    "2 7 1 8",
                    "2 8 1 8 2 8",
                    "4 5 9 0 4",
                    "1 6 1 8",
                    "0 3 3 9 8",
                    "8 7 4 9",
                    "5 7 7 2 1 5",
                    "6 6 4 9 0",
                    "1 4 1 4 2",
                    "7 3 2 0 5",
                    "6 9 3 1",
                )
            )
        ),
    ),
    "looks": Corpus(
        say("Four looks at once"),
        say(
            "Each target is one word: the first, third, fifth and seventh letter of the source. One softmax mixes the "
            "four letters up; several heads look at one each. Compare 8 heads with 1."
        ),
        _lines(
            *(
                f"{' '.join(letters)} | {letters[::2]}"
                for letters in (
                    "aaaabaaa",
                    "aaabaabb",
                    "aaababaa",
                    "aabaabab",
                    "abaaaaaa",
                    "abaaaabb",
                    "abaabbbb",
                    "ababbaab",
                    "abbaaaaa",
                    "abbaabba",
                    "abbaabbb",
                    "abbabaaa",
                    "abbababa",
                    "abbababb",
                    "baaaaaaa",
                    "baaabaab",
                    "baaabbba",
                    "baabaaba",
                    "baabbabb",
                    "baabbbba",
                    "babaaabb",
                    "babaabaa",
                    "babaabbb",
                    "babababa",
                    "babbabaa",
                    "babbabba",
                    "babbbaaa",
                    "babbbbaa",
                    "bbaaaaaa",
                    "bbaaabbb",
                    "bbaababa",
                    "bbaabbbb",
                    "bbabaabb",
                    "bbababba",
                    "bbabbbbb",
                    "bbbaaaaa",
                    "bbbaabab",
                    "bbbababa",
                    "bbbbaaba",
                    "bbbbbaaa",
                )
            )
        ),
        {"layers": 1, "heads": 8},
    ),
    "opinions": Corpus(
        say("Good or bad"),
        say(
            "An encoder alone: the row of <s> gives each sentence a class, as in BERT. “not” turns the meaning round. "
            "For images, the tokens would be patches of the image."
        ),
        _lines(
            "the film is good | good",
            "the film is not good | bad",
            "the film is bad | bad",
            "the film is not bad | good",
            "i like this book | good",
            "i do not like this book | bad",
            "what a great evening | good",
            "what a sad evening | bad",
            "the food was cold and the waiter was rude | bad",
            "the food was great and the waiter was kind | good",
            "the food was not great | bad",
            "the waiter was not rude | good",
        ),
        {"network": "encoder"},
    ),
    "next": Corpus(
        say("Next word"),
        say(
            "A decoder alone, as in GPT: no source, and each row predicts the next word from the words before it. The "
            "left side is the beginning that it continues."
        ),
        _lines(
            "the cat | sleeps on the sofa",
            "the dog | sleeps under the table",
            "the bird | sings in the tree",
            "every morning the cat | drinks milk",
            "every morning the dog | runs to the gate",
            "every morning the bird | sings to the sun",
            "at night the cat | hunts mice",
            "at night the dog | guards the house",
            "at night the bird | sleeps in the tree",
        ),
        {"network": "decoder"},
    ),
    "beer": Corpus(
        say("Beer and cola"),
        say(
            "A course’s own settings: d_model 512, six layers, eight heads, SGD at 0.001 with momentum 0.99. P is its "
            "padding, here a word. 44 million parameters: about 30 updates, some ten seconds."
        ),
        BEER,
        {
            **BASE,
            "norm_first": False,
            "scale_embedding": False,
            "biases": False,
            "optimizer": "sgd",
            "rate": 0.01,
            "momentum": 0.99,
            "start": "torch",
        },
    ),
    "beer_adam": Corpus(
        say("Beer and cola, Adam"),
        say(
            "The recipe of an English–French tutorial, run on the sentences of another course, beer and cola: norm "
            "first, Adam at 0.0001 with β 0.9 and 0.98 and ε 1e-9, dropout 0.1."
        ),
        BEER,
        {**BASE, "optimizer": "adam", "rate": 1 / 30, "warmup": False, "dropout": 0.1},
    ),
}
DEFAULT = "sentences"


def read(text: str) -> Pairs:
    """Parse a typed corpus. Raises a Refusal that names the line for text that is not a pair or exceeds a limit."""
    if len(text) > MAX_CHARACTERS:
        raise Refusal("The corpus has {n} characters; the limit is {limit}.", n=len(text), limit=MAX_CHARACTERS)
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise Refusal("The corpus is empty: type one pair per line: sentence | translation.")
    if len(lines) > MAX_PAIRS:
        raise Refusal("The corpus has {n} pairs; the limit is {limit}.", n=len(lines), limit=MAX_PAIRS)
    pairs = tuple(_parse_line(number, line) for number, line in lines)
    types = {word for pair in pairs for side in pair for word in side.split()}
    if len(types) > MAX_TYPES:
        raise Refusal("The corpus has {n} different words; the limit is {limit}.", n=len(types), limit=MAX_TYPES)
    return pairs


def _parse_line(number: int, line: str) -> tuple[str, str]:
    sides = [" ".join(side.split()) for side in line.split(BETWEEN)]
    if len(sides) != 2 or not all(sides):
        raise Refusal("Line {line} is not a pair: type sentence | translation.", line=number)
    for side in sides:
        if len(side.split()) > MAX_WORDS:
            raise Refusal(
                "Line {line} has a side of {n} words; the limit is {limit}.",
                line=number,
                n=len(side.split()),
                limit=MAX_WORDS,
            )
    return sides[0], sides[1]


def floor(pairs: Pairs, *, ordered: bool) -> float:
    """Return the smallest cross-entropy that any model can reach on these pairs, in nats per target token with `</s>`.

    The best model predicts each target with its relative frequency among the targets of the same source (Gibbs'
    inequality). ordered: whether the model knows the order of the source words; an encoder without positions does not.
    The floor is 0 if each source has a single target.
    """
    groups: dict[object, Counter] = defaultdict(Counter)
    for source, target in pairs:
        words = source.split()
        groups[tuple(words) if ordered else tuple(sorted(words))][target] += 1
    total = sum(count * math.log(targets.total() / count) for targets in groups.values() for count in targets.values())
    return total / sum(len(target.split()) + 1 for _, target in pairs)
