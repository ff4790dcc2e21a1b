"""Put a clause into French: the verb with its auxiliaries and pronouns, and the word order."""

from __future__ import annotations

import re
from dataclasses import replace

from recipes.composed import french
from recipes.composed.clauses import NEGATIONS, Clause
from recipes.composed.french import Nominal, Verb
from recipes.composed.lexicon import Adverbial, FrenchEntry, NotInFrench, Slot
from recipes.composed.phrases import Phrase
from recipes.composed.texts import Texts, joined

# The helping verb of each tense of a clause, and the tense in French.
TENSES = {
    "past": ("", "perfect"), "told": ("", "perfect"), "perfect": ("", "perfect"), "pluperfect": ("", "pluperfect"),
    "habit": ("", "present"), "now": ("", "present"), "since": ("", "present"), "future": ("aller", "present"),
    "will": ("", "future"), "can": ("pouvoir", "present"), "must": ("devoir", "present"),
    "want": ("vouloir", "present"), "should": ("devoir", "conditional"), "may": ("avoir le droit de", "present"),
    "would like": ("vouloir", "conditional"), "could": ("pouvoir", "perfect"), "had to": ("devoir", "perfect"),
    "wanted": ("vouloir", "imperfect"), "was to": ("devoir", "imperfect"),
    "was allowed": ("avoir le droit de", "imperfect"), "would": ("", "conditional"),
    "could then": ("pouvoir", "conditional"), "ought": ("devoir", "conditional"), "advised": ("devoir", "conditional"),
}  # fmt: skip
NOT_OBLIGED = {"must": "present", "had to": "imperfect"}  # "il ne doit pas" would mean "he must not"
COMPOUND = {
    "perfect": "present", "pluperfect": "imperfect", "future perfect": "future", "past conditional": "conditional",
    "past subjunctive": "subjunctive",
}  # fmt: skip
SUBJUNCTIVE = dict.fromkeys(("present", "future", "conditional", "imperfect"), "subjunctive")
# The tenses that a conjunction changes in its clause: from the key to the value.
MOODS = {
    "indicative": {},
    "subjunctive": SUBJUNCTIVE | dict.fromkeys(("perfect", "pluperfect"), "past subjunctive"),
    "present subjunctive": SUBJUNCTIVE | dict.fromkeys(("perfect", "pluperfect"), "subjunctive"),
    "conditional": {"present": "conditional", "perfect": "past conditional"},
    "future": {"present": "future", "perfect": "future perfect"},
    "imperfect": {"perfect": "imperfect"},
    "reported": {"perfect": "pluperfect"},
}
CLITICS = ("me", "te", "se", "nous", "vous", "le", "la", "les", "lui", "leur", "y", "en")  # in their order
BEFORE_NEGATION = ("généralement", "normalement", "parfois")
INDEFINITE_ARTICLE = re.compile(r"^(?:(?:du|des|une?|de la) |de l')")
KEEP_ARTICLE = ("être", "devenir", "jouer", "descendre", "lever")  # also when negated: "il ne joue pas du piano"
# A subject in French only.
ON = Phrase(Texts(lambda: {}, lambda: ("", ""), lambda: Nominal("on")), "m", (2, 2), ("", "", ""))
LEQUEL = french.Adjective.of("°lequel,°laquelle,°lesquels,°lesquelles")


def in_french(clause: Clause, order: str, mood: str = "indicative") -> str:
    """Return the clause in French, for french.spell() to spell out. Raises NotInFrench if that is not possible.

    order: "main"; "inverted" (a question: "viendra-t-elle"); "infinitive"; "imperative"; "bare" (without its subject);
    "open" (without subject and helping verb, to share those of the clause before). mood: a key of MOODS."""
    clause, entry = _usable(clause, order)
    subject = clause.subject.french
    if subject.determiner == "du" and (clause.tense == "habit" or "stative" in clause.entry.flags):
        subject = replace(subject, determiner="le")  # "les chats dorment"
    helper, tense = _tense(clause, entry, order, mood)
    negation = entry.negation or NEGATIONS[clause.negation][3]
    clitics, preceding, words = _complements(clause, entry, denied=bool(negation) and "obligé" not in helper)
    comments = [adverbial for adverbial in clause.adverbials if "mood" in adverbial.kinds]
    # A comment comes before any other: "peut-être que" cannot stand at the end.
    opening = next(iter(comments), clause.opening) if order == "main" else None
    ends = _ends(clause, entry, opening)
    fixed = joined([part for part in entry.pattern if isinstance(part, str)])
    rest = [*words, *(end for end in ends if end not in fixed)]  # "aller à pied" already says how
    middle = _middle(clause, negation, opening)
    if order == "imperative":
        return joined([*_imperative(entry.verb, subject.person, clitics, middle, bool(negation)), *rest])

    verb, passive = entry.verb, []
    auxiliary = "être" if "se" in entry.clitics or "être" in entry.flags else "avoir"
    agreeing = preceding if auxiliary == "avoir" or "noagree" in entry.flags else subject
    if clause.passive:
        passive = [french.inflect(verb.participle, subject)]
        verb, auxiliary, agreeing = Verb.of("être"), "avoir", None
    participle = french.inflect(verb.participle, agreeing) if agreeing else verb.participle
    before, after = clitics, passive
    if helper:
        name, *more = helper.split()
        before, after = [], [*(french.inflect_all(word, subject) for word in more), *clitics, verb.infinitive, *passive]
        verb, auxiliary, participle = Verb.of(name), "avoir", Verb.of(name).participle
    if order == "open":
        return joined([*after, *rest])
    ne = "ne" if negation else ""
    if order == "infinitive":
        verbs = [auxiliary, participle] if tense == "pluperfect" else [verb.infinitive]
        return joined([ne, *middle, *before, *verbs, *after, *rest])
    if tense in COMPOUND:
        finite, after = getattr(Verb.of(auxiliary), COMPOUND[tense])[subject.person], [participle, *after]
    else:
        finite = getattr(verb, tense)[subject.person]
    if order == "inverted":
        finite += f"-{'t-' if subject.person == 2 and finite[-1] in 'ae' else ''}{subject.subject}"
    verbal = [ne, *before, finite, *middle, *after, *rest]
    if order in ("bare", "inverted") or clause.gap == -1:
        return joined(verbal)
    relative = clause.subject.relative.fr() if clause.subject.relative else ""
    first = _adverbial(opening, clause, entry) if opening else ""
    comma = "" if not first or first.endswith(" que") else ","
    return joined([first + comma, subject.subject, relative, *verbal])


def question_in_french(word: str, clause: Clause) -> str:
    """Return a question with a question word, or "" for none. A polite one is inverted: "avez-vous mangé"."""
    subject = clause.subject.french
    if subject.is_pronoun and (subject.is_polite or (word and subject.person > 1)):
        return joined([word, in_french(clause, "inverted")])
    return joined([word, "est-ce que", in_french(clause, "main")])


def question_word(clause: Clause, human: bool) -> str:
    """Return the question word for the complement that the clause lacks: "à qui", "que"."""
    preposition = _gap(clause).preposition.removesuffix("@")
    if human:
        return joined([preposition, "qui"])
    return f"{preposition} quoi" if preposition else "que"


def relative_pronoun(clause: Clause) -> str:
    """Return the relative pronoun for the complement that the clause lacks: "que", "dont", "avec lequel"."""
    preposition, phrase = _gap(clause).preposition.removesuffix("@"), clause.arguments[clause.gap]
    if preposition in ("", "de"):
        return {"": "que", "de": "dont"}[preposition]
    pronoun = "qui" if phrase.human else LEQUEL.form(phrase.french.feminine, phrase.french.plural)
    return f"{preposition} {pronoun}"


def _gap(clause: Clause) -> Slot:
    if not clause.entry.french:
        raise NotInFrench(clause.entry.english.base)
    return clause.entry.french.slot(clause.gap)


def _usable(clause: Clause, order: str) -> tuple[Clause, FrenchEntry]:
    """Return the clause as French has it, with its French verb. Raises NotInFrench."""
    entry = clause.entry.french
    if not entry:
        raise NotInFrench(clause.entry.english.base)
    if "inverse" in entry.flags:  # "I miss her": "elle me manque"
        if order != "main" or clause.gap is not None or clause.subject.french.words == "qui":
            raise NotInFrench(f"{entry.verb.infinitive} in the order {order}")
        clause = replace(clause, subject=clause.arguments[0], arguments=(clause.subject,))
    if clause.passive and entry.slot(clause.entry.object_number).preposition:
        clause = replace(clause, subject=ON, passive=False)
    return clause, entry


def _tense(clause: Clause, entry: FrenchEntry, order: str, mood: str) -> tuple[str, str]:
    """Return the helping verb ("" for none) and the tense of the first verb."""
    helper, tense = TENSES[clause.tense]
    if clause.negation and clause.tense in NOT_OBLIGED:
        helper, tense = "être obligé~ de", NOT_OBLIGED[clause.tense]
    elif _is_progressive(clause, entry):
        helper = "être en train de"
    elif clause.mid and clause.mid[2] == "venir de":
        if mood == "future":
            raise NotInFrench("as soon as I have just ...")
        helper, tense = "venir de", "present"
    if helper == "aller" and entry.verb.infinitive == "aller":
        helper, tense = "", "future"  # not "va aller"
    if helper == "aller" and (order == "infinitive" or tense in MOODS[mood]):
        helper = ""
    state = "stative" in clause.entry.flags and ("event" not in clause.entry.flags or entry.verb.infinitive == "être")
    if tense == "perfect" and clause.tense != "perfect" and (state or "imperfect" in entry.flags):
        tense = "imperfect"
    return helper, MOODS[mood].get(tense, tense)


def _complements(clause: Clause, entry: FrenchEntry, denied: bool) -> tuple[list[str], Nominal | None, list[str]]:
    """Return the pronouns before the verb, the direct object before it, and the words behind it.

    denied: whether "de" replaces the articles "un" and "du" of the direct object."""
    subject = clause.subject.french
    clitics = [french.REFLEXIVES[subject.person] if clitic == "se" else clitic for clitic in entry.clitics]
    denied = denied and entry.verb.infinitive not in KEEP_ARTICLE
    preceding, words, parts = None, [], iter(entry.pattern)
    for part in parts:
        if isinstance(part, french.Adjective):
            words.append(part.form(subject.feminine, subject.plural))
        elif isinstance(part, Slot):
            phrase, preposition = clause.arguments[part.number], part.preposition
            nominal = phrase.french
            if nominal.determiner == "du" and "generic" in entry.flags:
                nominal = replace(nominal, determiner="le")
            if part.number == clause.gap or (clause.passive and not preposition):
                preceding = preceding if preposition else nominal
            elif nominal.is_pronoun and {nominal.person, subject.person} <= {1, 4}:
                raise NotInFrench("you see you")
            elif nominal.is_pronoun and (not preposition or (preposition == "à" and _is_free(clitics))):
                clitics.append(nominal.clitic(preposition))
                preceding = preceding if preposition else nominal
            else:
                if denied and not preposition and nominal.determiner in french.INDEFINITE:
                    nominal = replace(nominal, determiner="de")
                words.append(nominal.after(preposition.removesuffix("@")) if preposition else nominal.object)
                words.append(phrase.relative.fr() if phrase.relative else "")
        elif part.startswith("POSS:"):
            determiner = french.POSSESSIVES[subject.person]
            words.append(Nominal(next(parts), part[-1] == "f", part[-1] == "p", determiner=determiner).subject)
        else:
            words.append(clause.place[2] if part in ("TO", "AT") else part)
    if denied and entry.pattern and isinstance(entry.pattern[0], str):
        words = [INDEFINITE_ARTICLE.sub("de ", joined(words))]  # "il ne fait pas de vélo"
    return sorted(clitics, key=CLITICS.index), preceding, words


def _is_free(clitics: list[str]) -> bool:
    """Return whether an indirect pronoun can stand with these: not in "il me présente à elle"."""
    return not {"me", "te", "se", "nous", "vous"} & set(clitics)


def _ends(clause: Clause, entry: FrenchEntry, opening: Adverbial | None) -> list[str]:
    """Return the place and the adverbials at the end."""
    place = [clause.place[2]] if clause.place and not {"TO", "AT"} & set(entry.pattern) else []
    last = [a for a in reversed(clause.adverbials) if a is not opening and "often" not in a.kinds]
    return [*place, *(_adverbial(adverbial, clause, entry) for adverbial in last)]


def _adverbial(adverbial: Adverbial, clause: Clause, entry: FrenchEntry) -> str:
    if adverbial.french == "-":
        return "" if _is_progressive(clause, entry) else "en ce moment"
    return french.inflect_all(adverbial.french, clause.subject.french)


def _is_progressive(clause: Clause, entry: FrenchEntry) -> bool:
    """Return whether "être en train de" stands for "right now", whose French is "-"."""
    state = "imperfect" in entry.flags or entry.verb.infinitive in ("être", "avoir", "commencer")
    return clause.tense == "now" and not state and any(adverbial.french == "-" for adverbial in clause.adverbials)


def _middle(clause: Clause, negation: str, opening: Adverbial | None) -> list[str]:
    """Return the words behind the finite verb: negation and adverbs."""
    adverbs = [a.french for a in clause.adverbials if "often" in a.kinds and a is not opening]
    mid = [clause.mid[2]] if clause.mid and clause.mid[2] != "venir de" else []
    return sorted([negation, *mid, *adverbs], key=lambda word: word not in BEFORE_NEGATION)


def _imperative(verb: Verb, person: int, clitics: list[str], middle: list[str], denied: bool) -> list[str]:
    form = verb.imperative(person)
    if denied:
        return ["ne", *clitics, form, *middle]
    objects = sorted(clitics, key=lambda clitic: (clitic in ("y", "en"), clitic not in ("le", "la", "les")))
    objects = [{"me": "moi", "te": "toi"}.get(clitic, clitic) for clitic in objects]
    return ["-".join([form, *objects]), *middle]
