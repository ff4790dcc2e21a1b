"""Put a clause into English: the verb with its auxiliaries, and the word order."""

from __future__ import annotations

from recipes.composed import english
from recipes.composed.clauses import MODALS, NEGATIONS, PAST_MODALS, SUBJUNCTIVES, Clause
from recipes.composed.lexicon import Adverbial
from recipes.composed.texts import joined

CONTRACTED = {"can": "can't", "will": "won't", "am": "aren't"}
BE, HAVE, DO = (english.Verb(*forms.split()) for forms in ("be was been", "have had had", "do did done"))
FINITE = {"be": BE, "have": HAVE, "want": english.Verb("want", "wanted", "wanted")}  # first words of modal verbs
# Words that stand as they are where a form of "do" would otherwise be added.
HELPERS = frozenset(
    ["can", "could", "will", "would", "should", "must", "may", "am", "are", "is", "was", "were", "have", "has", "had"]
)


def in_english(clause: Clause, order: str) -> str:
    """order: "main"; "question" (an auxiliary begins it); "to" and "ing" (an infinitive); "bare" (without its subject);
    "open" (without subject and auxiliary, to share those of the clause before, or to ask for something)."""
    words = group(clause)
    _, negation, ending, _ = NEGATIONS[clause.negation]
    subject = clause.subject.english[0] if clause.gap != -1 else ""
    if clause.subject.relative and clause.gap != -1:
        subject += " " + clause.subject.relative.en()
    mid = [clause.mid[1]] if clause.mid and clause.mid[1] else []
    mid += [a.english for a in clause.adverbials if a.is_frequency]
    if order in ("to", "ing", "open"):
        verb = clause.entry.english
        head = {"to": ["to", verb.base], "ing": [verb.ing], "open": [verb.base]}[order]
        return joined([*(["not"] if negation else []), *head, *_rest(clause), *_ends(clause, None), ending])
    helper = words[0] in HELPERS and words[1:2] != ["to"] and (len(words) > 1 or clause.entry.english.base == "be")
    if (order == "question" or negation == "not") and not helper:
        present = clause.tense == "habit" or clause.tense in MODALS
        do = DO.present(clause.subject.person[1]) if present else DO.past
        words, helper = [do, _base(clause), *words[1:]], True
    first, rest = (words[:1], words[1:]) if helper else ([], words)
    negated = [negation] if negation else []
    fronted, end = _front_english(clause, order)
    tail = [*_rest(clause), *end, ending]
    if order == "question":
        first, negated = ([CONTRACTED.get(first[0], first[0] + "n't")], []) if negated == ["not"] else (first, negated)
        return joined([*first, subject, *negated, *mid, *rest, *tail])
    verbal = [*first, *negated, *mid, *rest]
    if order == "bare":
        return joined([*verbal, *tail])
    return joined([*fronted, subject, *verbal, *tail])


def _base(clause: Clause) -> str:
    """Return the verb form that follows a form of "do"."""
    modal = (MODALS | PAST_MODALS).get(clause.tense)
    return modal[1][0] if modal else clause.entry.english.base


def _front_english(clause: Clause, order: str) -> tuple[list[str], list[str]]:
    """Return the adverbials before and after a main clause."""
    opening = clause.opening
    if order != "main" or not opening:
        return [], _ends(clause, None)
    comma = "" if opening.english == "maybe" else ","
    return [opening.english + comma], _ends(clause, opening)


def _ends(clause: Clause, fronted: Adverbial | None) -> list[str]:
    place = [clause.place[1]] if clause.place and not {"TO", "AT"} & set(clause.entry.pattern) else []
    last = [a.english for a in reversed(clause.adverbials) if a is not fronted and not a.is_frequency]
    return [*place, *last]


def _rest(clause: Clause) -> list[str]:
    """Return everything after the English verb."""
    words = []
    subject = clause.subject
    for part in clause.entry.pattern:
        if part.isdigit():
            index = int(part) - 1
            complement = clause.entry.complements[index]
            if index == clause.gap or (clause.passive and complement.case == "acc" and not complement.preposition):
                continue
            phrase = clause.arguments[index]
            words.append(phrase.english[1] + (f" {phrase.relative.en()}" if phrase.relative else ""))
        elif part == "POSS":
            words.append(subject.own[1])
        elif part == "SELF":
            words.append(subject.own[2])
        elif part in ("TO", "AT"):
            words.append(clause.place[1])
        else:
            words.append(part)
    return words


def group(clause: Clause) -> list[str]:
    """Return the English verb with its auxiliaries; the first word is finite."""
    verb, tense, person = clause.entry.english, clause.tense, clause.subject.person[1]
    rest = [verb.base]
    if clause.passive:
        rest = ["be", verb.participle]
        if tense in ("habit", "past", "told"):
            return [(BE.present if tense == "habit" else BE.simple_past)(person), verb.participle]
        if tense == "now":
            return [BE.present(person), "being", verb.participle]
    if tense == "habit":
        return [verb.present(person)]
    if tense in ("past", "told"):
        return [verb.simple_past(person)]
    if tense == "now":
        return [BE.present(person), verb.ing]
    perfect = ["been", verb.participle] if clause.passive else [verb.participle]
    if tense == "since":
        stative = "stative" in clause.entry.flags
        return [HAVE.present(person), *(perfect if stative or clause.passive else ["been", verb.ing])]
    if tense == "perfect":
        return [HAVE.present(person), *perfect]
    if tense == "pluperfect":
        return ["had", *perfect]
    if tense in ("will", "future"):
        return ["will", *rest]
    if tense in SUBJUNCTIVES:
        return [SUBJUNCTIVES[tense][1], *rest]
    first, *more = (MODALS | PAST_MODALS)[tense][1]
    if first in FINITE:
        first = FINITE[first].simple_past(person) if tense in PAST_MODALS else FINITE[first].present(person)
    return [first, *more, *rest]
