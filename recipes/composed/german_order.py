"""Put a clause into German: the finite verb, the closing verb forms, and the word order."""

from __future__ import annotations

from recipes.composed import german
from recipes.composed.clauses import MODALS, NEGATIONS, PAST_MODALS, SUBJUNCTIVES, Clause
from recipes.composed.lexicon import Complement
from recipes.composed.phrases import Kind
from recipes.composed.texts import joined


def in_german(clause: Clause, order: str) -> str:
    """order: "main"; "last" (the finite verb ends it); "question" (it begins it); "zu" (an infinitive); "bare" (without
    its subject); "open" (without subject and finite verb, to share those of the clause before)."""
    verb, closing = finite(clause)
    pronouns, early, late = _middle(clause, NEGATIONS[clause.negation][0])
    subject = clause.subject.german["nom"] if clause.gap != -1 else ""
    own = clause.subject.relative if clause.gap != -1 else None
    behind = f", {own.de()}," if own else ""
    tail = "".join(
        f", {phrase.relative.de()}," for i, phrase in enumerate(clause.arguments) if phrase.relative and i != clause.gap
    )
    if order == "zu":
        return joined([*pronouns, *early, *late, clause.entry.german.with_zu]) + tail
    if order == "open":
        return joined([*pronouns, *early, *late, *closing]) + tail
    if order == "bare":
        return joined([verb, *pronouns, *early, *late, *closing]) + tail
    if order == "last":
        prefixed = closing == [clause.entry.german.prefix] and closing != [""]
        closed = [closing[0] + verb] if prefixed else [*closing, verb]
        return joined([*_with_subject(clause, subject + behind, pronouns), *early, *late, *closed]) + tail
    if order == "question":
        return joined([verb, *_with_subject(clause, subject, pronouns), *early, *late, *closing]) + behind + tail
    front, pronouns, early, late = _fronted(clause, pronouns, early, late)
    if front:
        return joined([front, verb, *_with_subject(clause, subject, pronouns), *early, *late, *closing]) + behind + tail
    return joined([subject + behind, verb, *pronouns, *early, *late, *closing]) + tail


def _with_subject(clause: Clause, subject: str, pronouns: list[str]) -> list[str]:
    """Place pronouns before a subject that is not a pronoun: "hat mir meine Tante"."""
    return [subject, *pronouns] if clause.subject.kind is Kind.PRONOUN or not subject else [*pronouns, subject]


def _fronted(clause: Clause, *middle: list[str]) -> tuple[str, list[str], list[str], list[str]]:
    """Return the element that replaces the subject at the start of a main clause ("" for none), and the middle without
    it."""
    text = ""
    if clause.front == "adverbial" and clause.adverbials:
        text = clause.adverbials[0].german
    elif clause.front == "object":
        bare = [i for i, c in enumerate(clause.entry.complements) if not c.preposition and i != clause.gap]
        text = clause.arguments[bare[0]].german[clause.entry.complements[bare[0]].case] if bare else ""
    if not any(text in words for words in middle):
        text = ""
    return (text, *([word for word in words if word != text] for words in middle))


def _middle(clause: Clause, negation: str) -> tuple[list[str], list[str], list[str]]:
    """Return the German middle field: pronouns; time and definite objects; the negation, followed by indefinite and
    prepositional objects, places and fixed words."""
    direct, indirect, datives, objects, late = [], [], [], [], []
    number, fixed = 0, False
    for part in clause.entry.middle:
        if isinstance(part, Complement):
            index, number = number, number + 1
            if clause.gap == index or (clause.passive and part.case == "acc" and not part.preposition):
                continue
            phrase = clause.arguments[index]
            text = phrase.german[part.case]
            if part.preposition:
                late.append(german.contracted(f"{part.preposition} {text}"))
            elif phrase.kind is Kind.PRONOUN:
                (indirect if part.case == "dat" else direct).append(text)
            elif part.case == "dat" and not fixed:
                datives.append(text)
            else:
                (objects if phrase.definite and not fixed else late).append(text)
        elif part in ("sich", "sich_d"):
            case = "dat" if part == "sich_d" else "acc"
            (indirect if case == "dat" else direct).append(german.REFLEXIVES[case][clause.subject.person[0]])
        elif part in ("to", "at"):
            late.append(clause.place[0])
        else:
            fixed = True
            late.append(part)
    if clause.place and not {"to", "at"} & set(clause.entry.middle):
        late.insert(0, clause.place[0])
    times = [adverbial.german for adverbial in clause.adverbials]
    mid = [clause.mid[0]] if clause.mid else []
    return [*direct, *indirect], [*datives, *times, *objects, *mid], [negation, *late]


def finite(clause: Clause) -> tuple[str, list[str]]:
    """Return the German finite verb and the closing verb forms of the clause."""
    verb, tense, person = clause.entry.german, clause.tense, clause.subject.person[0]
    who = german.PERSONS[person]
    infinitive, participle, auxiliary = [verb.whole], verb.past_participle, verb.auxiliary
    if clause.passive:
        infinitive, participle, auxiliary = [participle, "werden"], f"{participle} worden", "sein"
        if tense in ("habit", "future", "now", "since", "past", "told"):
            when = "past" if tense in ("past", "told") else "present"
            return german.auxiliary("werden", when, who), [verb.past_participle]
    if tense in ("perfect", "past"):
        return german.auxiliary(auxiliary, "present", who), [participle]
    if tense == "pluperfect":
        return german.auxiliary(auxiliary, "past", who), [participle]
    if tense == "will":
        return german.auxiliary("werden", "present", who), infinitive
    if tense in MODALS:
        return german.auxiliary(MODALS[tense][0], "present", who), infinitive
    if tense in PAST_MODALS:
        return german.auxiliary(PAST_MODALS[tense][0], "past", who), infinitive
    if tense in SUBJUNCTIVES:
        return german.auxiliary(SUBJUNCTIVES[tense][0], "past", who), infinitive
    closing = [verb.prefix] if verb.prefix else []
    return (verb.simple_past(who) if tense == "told" else verb.present(who)), closing
