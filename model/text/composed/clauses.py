"""One clause in both languages: a verb with what it takes, its tense, what is denied, and the order of words."""

from __future__ import annotations

from dataclasses import dataclass

from model.text.composed import english, german
from model.text.composed.lexicon import Adverbial, Complement, Entry
from model.text.composed.phrases import Phrase

MODALS = {
    "can": ("können", ("can",)),
    "must": ("müssen", ("have", "to")),
    "want": ("wollen", ("want", "to")),
    "should": ("sollen", ("should",)),
    "may": ("dürfen", ("be", "allowed", "to")),
    "would like": ("möchten", ("would", "like", "to")),
}
PAST_MODALS = {
    "could": ("können", ("be", "able", "to")),
    "had to": ("müssen", ("have", "to")),
    "wanted": ("wollen", ("want", "to")),
    "was to": ("sollen", ("be", "supposed", "to")),
    "was allowed": ("dürfen", ("be", "allowed", "to")),
}
SUBJUNCTIVES = {
    "would": ("würden", "would"),
    "could then": ("könnten", "could"),
    "ought": ("sollten", "should"),
    "advised": ("solle", "should"),
}
CONTRACTED = {"can": "can't", "will": "won't", "am": "am not"}
# Words that stand as they are where a form of "do" would otherwise be added.
HELPERS = frozenset(
    ["can", "could", "will", "would", "should", "must", "may", "am", "are", "is", "was", "were", "have", "has", "had"]
)
NEGATIONS = {
    "": ("", "", ""),
    "not": ("nicht", "not", ""),
    "never": ("nie", "never", ""),
    "never yet": ("noch nie", "never", ""),
    "no more": ("nicht mehr", "not", "anymore"),
    "not yet": ("noch nicht", "not", "yet"),
    "none": ("", "not", ""),  # "kein" stands with the object
    "none left": ("", "not", "anymore"),
}


@dataclass(frozen=True)
class Clause:
    """A clause before it is put into words.

    tense: "past" (German perfect), "told" (preterite), "perfect" (English perfect as well), "pluperfect", "habit" (the
    present), "now", "since", "future" (German present), "will", or a key of the tables of modal verbs above.
    negation: a key of NEGATIONS. place: in both languages. front: what begins a German main clause: "subject", "time"
    (in English, too) or "object". gap: the number of the complement that a pronoun of a relative clause or a question
    stands for, -1 for the subject. mid: a word such as "already" that stands in the middle in both languages.
    """

    subject: Phrase
    entry: Entry
    arguments: tuple[Phrase, ...]
    tense: str
    negation: str = ""
    adverbials: tuple[Adverbial, ...] = ()
    place: tuple[str, str] | None = None
    front: str = "subject"
    gap: int | None = None
    passive: bool = False
    mid: tuple[str, str] | None = None  # "already", "often": in the middle in both languages


def finite(clause: Clause) -> tuple[str, list[str]]:
    """The German finite verb and what closes the clause."""
    verb, tense, person = clause.entry.german, clause.tense, clause.subject.person[0]
    who = german.PERSONS[person]
    infinitive, participle, auxiliary = [verb.whole], verb.past_participle, verb.auxiliary
    if clause.passive:
        infinitive, participle, auxiliary = [participle, "werden"], f"{participle} worden", "sein"
        plain = {"present": "present", "now": "present", "since": "present", "past": "past", "told": "past"}
        if tense in plain:
            return german.auxiliary("werden", plain[tense], who), [verb.past_participle]
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


def group(clause: Clause) -> list[str]:
    """The English verb with its auxiliaries; the first word is finite."""
    verb, tense, person = clause.entry.english, clause.tense, clause.subject.person[1]
    rest = [verb.base]
    if clause.passive:
        rest = ["be", verb.participle]
        simple = {"present": "present", "past": "past", "told": "past", "future": "", "habit": "present"}
        if simple.get(tense):
            return [_be(simple[tense], person), verb.participle]
        if tense == "now":
            return [_be("present", person), "being", verb.participle]
    if tense in ("present", "habit"):
        return [verb.present(person)]
    if tense in ("past", "told"):
        return [verb.simple_past(person)]
    if tense == "now":
        return [_be("present", person), verb.ing]
    perfect = ["been", verb.participle] if clause.passive else [verb.participle]
    if tense == "since":
        stative = "stative" in clause.entry.flags
        return [_have(person), *(perfect if stative or clause.passive else ["been", verb.ing])]
    if tense == "perfect":
        return [_have(person), *perfect]
    if tense == "pluperfect":
        return ["had", *perfect]
    if tense in ("will", "future"):
        return ["will", *rest]
    if tense in SUBJUNCTIVES:
        return [SUBJUNCTIVES[tense][1], *rest]
    words = {**MODALS, **PAST_MODALS}[tense][1]
    when = "past" if tense in PAST_MODALS else "present"
    if words[0] == "be":
        return [_be(when, person), *words[1:], *rest]
    if words[0] == "have":
        return ["had" if when == "past" else "has" if person == 2 else "have", *words[1:], *rest]
    if words[0] == "want":
        return ["wanted" if when == "past" else "wants" if person == 2 else "want", *words[1:], *rest]
    return [*words, *rest]


def in_german(clause: Clause, order: str) -> str:
    """order: "main"; "last" (the finite verb ends it); "question" (it begins it); "zu" (an infinitive); "bare" (without
    its subject); "open" (without subject and finite verb, to share those of the clause before)."""
    verb, closing = finite(clause)
    pronouns, early, late = _middle(clause, NEGATIONS[clause.negation][0])
    subject = clause.subject.german["nom"] if clause.gap != -1 else ""
    own = clause.subject.relative if clause.gap != -1 else None
    behind = f", {own[0]}," if own else ""
    tail = "".join(
        f", {phrase.relative[0]}," for i, phrase in enumerate(clause.arguments) if phrase.relative and i != clause.gap
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
    """Pronouns stand before a subject that is none: "hat mir meine Tante"."""
    return [subject, *pronouns] if clause.subject.kind == "pronoun" or not subject else [*pronouns, subject]


def joined(words: list[str]) -> str:
    return " ".join(word for word in words if word)


def _fronted(clause: Clause, *middle: list[str]) -> tuple[str, list[str], list[str], list[str]]:
    """What begins the main clause in place of the subject ("": nothing), and the middle without it."""
    text = ""
    if clause.front == "time" and clause.adverbials:
        text = clause.adverbials[0].german
    elif clause.front == "object":
        bare = [i for i, c in enumerate(clause.entry.complements) if not c.preposition and i != clause.gap]
        text = clause.arguments[bare[0]].german[clause.entry.complements[bare[0]].case] if bare else ""
    if not any(text in words for words in middle):
        text = ""
    return (text, *([word for word in words if word != text] for words in middle))


def _middle(clause: Clause, negation: str) -> tuple[list[str], list[str], list[str]]:
    """The German middle field: pronouns; time and definite objects; the negation and what stands behind it: indefinite
    and prepositional objects, places and fixed words."""
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
            elif phrase.kind == "pronoun":
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


def in_english(clause: Clause, order: str) -> str:
    """order: "main", "question", "to" (an infinitive), "bare" without subject (imperative or second predicate)."""
    words = group(clause)
    _, negation, ending = NEGATIONS[clause.negation]
    subject = clause.subject.english[0] if clause.gap != -1 else ""
    if clause.subject.relative and clause.gap != -1:
        subject += " " + clause.subject.relative[1]
    mid = [clause.mid[1]] if clause.mid and clause.mid[1] else []
    mid += [a.english for a in clause.adverbials if _within(a)]
    if order in ("to", "ing", "open"):
        verb = clause.entry.english
        head = {"to": ["to", verb.base], "ing": [verb.ing], "open": [verb.base]}[order]
        return joined([*(["not"] if negation else []), *head, *_rest(clause), *_ends(clause, None), ending])
    helper = words[0] in HELPERS and (len(words) > 1 or clause.entry.english.base == "be")
    has_to = words[:2] in (["have", "to"], ["has", "to"], ["had", "to"])
    if has_to:
        helper = False
    if (order == "question" or negation == "not") and not helper:
        if clause.tense in ("present", "habit") or (clause.tense in MODALS):
            words = ["does" if clause.subject.person[1] == 2 else "do", _base(words, clause), *words[1:]]
        else:
            words = ["did", _base(words, clause), *words[1:]]
        helper = True
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


def _base(words: list[str], clause: Clause) -> str:
    if words[0] in ("has", "have", "had"):
        return "have"
    if words[0] in ("wants", "wanted", "want"):
        return "want"
    return clause.entry.english.base


def _within(adverbial: Adverbial) -> bool:
    return bool({"often", "now mid"} & adverbial.kinds) and adverbial.english not in ("sometimes",)


def _front_english(clause: Clause, order: str) -> tuple[list[str], list[str]]:
    fronted = None
    if order == "main" and clause.front == "time" and clause.adverbials and not _within(clause.adverbials[0]):
        fronted = clause.adverbials[0]
    front = []
    if fronted:
        comma = "" if {"mood"} & fronted.kinds and fronted.english in ("maybe",) else ","
        front = [fronted.english + comma]
    moods = [a for a in clause.adverbials if {"mood", "sudden"} & a.kinds and a is not fronted]
    if order == "main" and moods and not fronted:
        front = [moods[0].english + ("" if moods[0].english == "maybe" else ",")]
        fronted = moods[0]
    return front, _ends(clause, fronted)


def _ends(clause: Clause, fronted: Adverbial | None) -> list[str]:
    place = [clause.place[1]] if clause.place and not {"TO", "AT"} & set(clause.entry.pattern) else []
    last = [a.english for a in reversed(clause.adverbials) if a is not fronted and not _within(a)]
    return [*place, *last]


def _rest(clause: Clause) -> list[str]:
    """What stands behind the English verb."""
    words = []
    subject = clause.subject
    for part in clause.entry.pattern:
        if part.isdigit():
            index = int(part) - 1
            complement = clause.entry.complements[index]
            if index == clause.gap or (clause.passive and complement.case == "acc" and not complement.preposition):
                continue
            phrase = clause.arguments[index]
            words.append(phrase.english[1] + (f" {phrase.relative[1]}" if phrase.relative else ""))
        elif part == "POSS":
            words.append(subject.own[1])
        elif part == "SELF":
            words.append(subject.own[2])
        elif part in ("TO", "AT"):
            words.append(clause.place[1])
        else:
            words.append(part)
    return words


def _be(tense: str, person: int) -> str:
    return english.BE[tense][person]


def _have(person: int) -> str:
    return "has" if person == 2 else "have"
