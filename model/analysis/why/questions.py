"""Choose the question: which token to explain, and which token to compare it with.

By default the least certain content word against its runner-up; `make_question` also takes a step and a typed contrast.
"""

from __future__ import annotations

import re

import numpy as np

from attention_atlas.model.trace import check_integer
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.language import Refusal, say
from attention_atlas.model.trace.scores import Groups
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace, check_trace
from attention_atlas.model.trace.why.attribution import Against, Question
from attention_atlas.model.trace.words import SPACE, is_punctuation, spell_word, word_groups
from attention_atlas.model.translator import Translator

MAX_CONTRASTS = 5
APOSTROPHE = re.compile("['’]")
NEGATION = re.compile("n['’]t$")

# Only closed classes: articles, pronouns, prepositions, conjunctions, auxiliaries, particles. In a language without a
# list every word counts as a content word.
FUNCTION_WORDS = {
    language: frozenset(words.split())
    for language, words in {
        "en": """a an the this that these those i you he she it we they me him her us them my your his its our their
        mine who whom whose which what of in on at by to for from with without into onto over under about after before
        between through during against and or but nor so yet if because as than then when while where why how am is are
        was were be been being do does did have has had will would shall should can could may might must not no n't
        there here up down out off again too very just also d ll m re s ve ca sha wo""",
        "de": """der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines ich du
        er sie es wir ihr mich dich ihn uns euch mir dir ihm ihnen sich mein meine meinen meinem meiner meines dein
        deine sein seine seinen seinem seiner seines unser unsere ihre ihren ihrem ihrer wer wen wem was welche welcher
        welches dieser diese dieses diesen diesem in im an am auf aus bei beim mit nach von vom vor zu zum zur über
        unter durch für gegen ohne um zwischen und oder aber denn sondern dass weil wenn als ob wie wo warum bin bist
        ist sind seid war waren wird werden wurde wurden habe hast hat haben hatte hatten kann können muss müssen soll
        sollen will wollen darf nicht auch nur noch schon sehr so da hier""",
        "fr": """le la les l un une des du de d ce cet cette ces je j tu il elle on nous vous ils elles me m te t se s
        lui leur y en mon ma mes ton ta tes son sa ses notre nos votre vos leurs qui que qu quoi dont où quel quelle à
        au aux dans sur sous par pour avec sans vers chez entre et ou mais ni car donc si comme quand suis es est sommes
        êtes sont était étaient été être ai as a avons avez ont avait avaient avoir ne n pas plus très aussi""",
    }.items()
}


def content_words(trace: TranslationTrace) -> Groups:
    """Return groups of target positions that are content words: no symbols, punctuation or function words."""
    functions = FUNCTION_WORDS.get(parse_direction(trace.direction)[1], frozenset())
    tokens = trace.target_tokens

    def is_content(group: tuple[int, ...]) -> bool:
        text = spell_word(tokens, group).lower()
        if not text or is_symbol(tokens[group[0]]) or all(is_punctuation(tokens[i]) for i in group):
            return False
        # A contraction is a function word if all its parts are: "I'd", "don't", "j'ai".
        parts = [part for part in APOSTROPHE.split(NEGATION.sub("", text)) if part]
        return not (parts and all(part in functions for part in parts))

    return tuple(group for group in word_groups(tokens) if is_content(group))


def default_step(trace: TranslationTrace, max_tokens: int | None = None) -> int:
    """Return the step of the least certain piece of all content words.

    Without content words, of all tokens that are no symbols; without those, step 0. max_tokens: prefer steps at which
    source and prefix together have at most this many tokens.
    """
    pieces = [i for group in content_words(trace) for i in group]
    pieces = pieces or [i for i, token in enumerate(trace.target_tokens) if not is_symbol(token)] or [0]
    if max_tokens is not None:
        pieces = [i for i in pieces if len(trace.source_ids) + i + 1 <= max_tokens] or pieces
    return pieces[int(np.argmin(trace.log_probability[pieces]))]


def list_contrasts(trace: TranslationTrace, step: int) -> tuple[int, ...]:
    """Return the ids of the five most probable other tokens at a step, the runner-up first."""
    return tuple(int(i) for i in trace.top_ids[step] if i != trace.target_ids[step])[:MAX_CONTRASTS]


def make_question(
    translator: Translator,
    trace: TranslationTrace,
    step: int | None = None,
    contrast: str | int | Against = Against.RUNNER_UP,
) -> Question:
    """Return the question about a step of a trace.

    step: None for default_step(). contrast: a typed text, a token's id, or Against. A text is read as one or more whole
    words in the place of the step's word. Of several pieces the first one that differs from the translation counts: the
    question moves to its step, and its note says so. Raises ValueError for a step, token or text that cannot be asked
    about.
    """
    step = default_step(check_trace(trace)) if step is None else check_integer("step", step)
    if not 0 <= step < len(trace.target_ids):
        raise Refusal(
            "There is no step {n}: the translation has steps 0 to {last}.", n=step, last=len(trace.target_ids) - 1
        )
    note = ""
    if isinstance(contrast, str):
        step, contrast, note = _read_contrast(translator, trace, step, contrast)
    elif contrast is Against.RUNNER_UP:
        contrast = list_contrasts(trace, step)[0]
    elif contrast is not Against.NOTHING and not 0 <= check_integer("token", contrast) < len(translator.tokenizer):
        raise Refusal(
            "There is no token {n}: the vocabulary has tokens 0 to {last}.",
            n=str(contrast),
            last=str(len(translator.tokenizer) - 1),
        )
    token_id, token = trace.target_ids[step], trace.target_tokens[step]
    if contrast is Against.NOTHING:
        return Question(step, token_id, token)
    return Question(step, token_id, token, contrast, translator.tokenizer.tokens((contrast,))[0], note)


def _read_contrast(translator: Translator, trace: TranslationTrace, step: int, text: str) -> tuple[int, int, str]:
    """Return the step, the token id and the note of a typed contrast."""
    word = next(group for group in word_groups(trace.target_tokens) if step in group)
    first = trace.target_tokens[word[0]]
    joined = not first.startswith(SPACE) and not is_symbol(first)
    ids = translator.encode_typed(text, joined=joined)
    written = trace.target_ids[word[0] :]
    same = next((i for i, (a, b) in enumerate(zip(ids, written)) if a != b), min(len(ids), len(written)))
    if same == len(ids):
        raise Refusal("{text} is the written word or its beginning: type a different word.", text=repr(text.strip()))
    if same == len(written):
        raise Refusal("{text} continues where the translation was stopped: type another word.", text=repr(text.strip()))
    if len(ids) == 1:
        return word[0], ids[0], ""
    pieces = " + ".join(translator.tokenizer.tokens(ids))
    return (
        word[0] + same,
        ids[same],
        say("{text} is {pieces}: compared at piece {n}", text=text.strip(), pieces=pieces, n=same + 1),
    )
