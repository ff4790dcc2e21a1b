"""Forms of French words: determiners, adjectives and pronouns by gender and number, verbs by person; elision."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from recipes.composed.tables import rows

# By person: 0 to 5. Pronouns of the third person have a feminine.
PERSONS = ("je", "tu", "il", "nous", "vous", "ils")
DIRECT = ("me", "te", "le", "nous", "vous", "les")
INDIRECT = ("me", "te", "lui", "nous", "vous", "leur")
STRESSED = ("moi", "toi", "lui", "nous", "vous", "eux")
REFLEXIVES = ("me", "te", "se", "nous", "vous", "se")
POSSESSIVES = ("mon", "ton", "son", "notre", "votre", "leur")
FEMININE = {"il": "elle", "ils": "elles", "le": "la", "lui": "elle", "eux": "elles"}
# Masculine, feminine, plural, and the singular forms before a vowel. "°" marks an article, which contracts with a
# preposition before it (unlike the pronouns "le" and "les").
DETERMINERS = {
    "le": ("°le", "°la", "°les", "°le", "°la"),
    "un": ("un", "une", "des", "un", "une"),
    "du": ("de °le", "de °la", "des", "de °le", "de °la"),
    "ce": ("ce", "cette", "ces", "cet", "cette"),
    "chaque": ("chaque", "chaque", "tous °les", "chaque", "chaque"),
    "tout": ("tout °le", "toute °la", "tous °les", "tout °le", "toute °la"),
    "mon": ("mon", "ma", "mes", "mon", "mon"),
    "ton": ("ton", "ta", "tes", "ton", "ton"),
    "son": ("son", "sa", "ses", "son", "son"),
    "notre": ("notre", "notre", "nos", "notre", "notre"),
    "votre": ("votre", "votre", "vos", "votre", "votre"),
    "leur": ("leur", "leur", "leurs", "leur", "leur"),
}
INDEFINITE = ("un", "du")
TITLES = {"M.": "monsieur", "Mme": "madame"}  # behind a verb or preposition
# "*" marks an h that is not mute: "le *hibou".
VOWEL = re.compile(r"[aeiouhæœø]|y(?![aeiou])|yeux", re.IGNORECASE)
ACCENTS = str.maketrans("àâäáãåéèêëîïíôöóûüúùÀÂÄÁÃÅÉÈÊËÎÏÍÔÖÓÛÜÚÙ", "aaaaaaeeeeiiiooouuuu" * 2)
ELIDED = re.compile(r"(?<![\w'*-])(°?l[ea]|[djmtsn]e|que) (?=(\S+))")
ELIDED_BEFORE_PRONOUNS = re.compile(r"\bsi (?=ils?\b)|\bpuisque (?=(?:ils?|elles?|on|une?)\b)")
CONTRACTED = {"à °les": "aux", "de °les": "des", "à °le": "au", "de °le": "du"}
# Names whose h is mute; that of foreign names is not.
MUTE_H = ("Hélène", "Henri", "Henriette", "Hervé", "Hubert", "Honoré", "Hortense", "Hippolyte", "Horace", "Hector")
IMPERFECT = ("ais", "ais", "ait", "ions", "iez", "aient")
FUTURE = ("ai", "as", "a", "ons", "ez", "ont")
CONJUGATED = {infinitive: parts for infinitive, *parts in rows("conjugated.tsv")}
DOUBLING = ("appeler", "rappeler", "épeler", "jeter", "rejeter", "projeter")  # "j'appelle", but "j'achète"
# Imperatives to tu and vous that differ from the present.
IMPERATIVES = {
    "être": ("sois", "soyez"), "avoir": ("aie", "ayez"), "savoir": ("sache", "sachez"), "aller": ("va", "allez"),
}  # fmt: skip


def starts_with_vowel(text: str) -> bool:
    return bool(VOWEL.match(text.translate(ACCENTS)))


def spell(text: str) -> str:
    """Return the text with elisions and contractions, and without marks: "je aime °le été" becomes "j'aime l'été"."""
    text = ELIDED.sub(lambda m: m[1][:-1] + "'" if starts_with_vowel(m[2]) else m[0], text)
    text = ELIDED_BEFORE_PRONOUNS.sub(lambda m: m[0][:-2] + "'", text)
    text = re.sub(r"\b(?:à|de) °les?(?=\b|quel)", lambda m: CONTRACTED[m[0]], text)
    return text.replace("°", "").replace("*", "")


def name(text: str) -> str:
    """Return a name, with the mark of an h that is not mute."""
    return f"*{text}" if text.startswith("H") and text not in MUTE_H else text


@dataclass(frozen=True)
class Nominal:
    """A noun phrase, a name, or (without words) a personal pronoun. determiner: a key of DETERMINERS, a number, or "".

    mass: without a plural, so that it takes "du"; described: an adjective precedes the noun."""

    words: str = ""
    feminine: bool = False
    plural: bool = False
    person: int = 2
    determiner: str = ""
    mass: bool = False
    described: bool = False

    @property
    def is_pronoun(self) -> bool:
        return not self.words

    @property
    def is_polite(self) -> bool:
        return self.is_pronoun and self.person == 4 and not self.plural

    @property
    def subject(self) -> str:
        return self._pronoun(PERSONS) if self.is_pronoun else self._article() + self.words

    @property
    def object(self) -> str:
        """A direct object behind its verb."""
        return replace(self, determiner=TITLES.get(self.determiner, self.determiner)).subject

    def clitic(self, preposition: str) -> str:
        """Return the pronoun before a verb for a direct object (preposition: "") or an indirect one ("à")."""
        return INDIRECT[self.person] if preposition else self._pronoun(DIRECT)

    def after(self, preposition: str) -> str:
        """Return the phrase behind a preposition: "de pain", not "de du pain"."""
        if self.is_pronoun:
            return f"{preposition} {self._pronoun(STRESSED)}"
        if self.determiner in INDEFINITE and (self.plural or self.mass) and preposition.endswith(("de", "sans")):
            return f"{preposition} {self.words}"
        return f"{preposition} {self.object}"

    def _pronoun(self, forms: tuple[str, ...]) -> str:
        form = forms[self.person]
        return FEMININE.get(form, form) if self.feminine else form

    def _article(self) -> str:
        determiner = self.determiner
        if determiner in INDEFINITE:
            determiner = "du" if self.mass else "un"
            if self.plural and self.described:
                return "de "
        if determiner not in DETERMINERS:
            return f"{determiner} " if determiner else ""
        forms = DETERMINERS[determiner]
        if self.plural:
            form = forms[2].replace("tous", "toutes") if self.feminine else forms[2]
        else:
            form = forms[self.feminine + 3 * starts_with_vowel(self.words)]
        return form + " "


@dataclass(frozen=True)
class Noun:
    feminine: bool
    singular: str
    plural: str


@dataclass(frozen=True)
class Adjective:
    """An adjective's forms. before_vowel: the masculine singular before a vowel; precedes: stands before its noun."""

    masculine: str
    feminine: str
    masculine_plural: str
    feminine_plural: str
    before_vowel: str
    precedes: bool = False

    @classmethod
    def of(cls, written: str, precedes: bool = False) -> Adjective:
        """written: the masculine of a regular adjective, or four forms and perhaps that before a vowel."""
        forms = written.split(",")
        if len(forms) == 1:
            feminine = _feminine(written)
            forms = [written, feminine, _plural(written), _plural(feminine)]
        return cls(*forms[:4], forms[4] if len(forms) > 4 else forms[0], precedes)

    @property
    def pattern(self) -> str:
        """Return the word for a verb's pattern, such as "content~", which agrees with the subject."""
        return self.masculine.replace(" ", "_") + "~"

    def form(self, feminine: bool, plural: bool) -> str:
        if plural:
            return self.feminine_plural if feminine else self.masculine_plural
        return self.feminine if feminine else self.masculine


def with_adjective(noun: str, adjective: Adjective, feminine: bool, plural: bool) -> str:
    """Return a noun with its adjective: "vieil homme", "homme patient"."""
    form = adjective.form(feminine, plural)
    if not adjective.precedes:
        return f"{noun} {form}"
    if not feminine and not plural and starts_with_vowel(noun):
        form = adjective.before_vowel
    return f"{form} {noun}"


def inflect(word: str, nominal: Nominal) -> str:
    """Return a participle or a regular adjective in the form that agrees with a phrase."""
    return Adjective.of(word).form(nominal.feminine, nominal.plural)


def inflect_all(text: str, nominal: Nominal) -> str:
    """Let the words that end with "~" agree with a phrase: "content~ de"."""
    return re.sub(r"(\S+)~", lambda match: inflect(match[1], nominal), text)


def _feminine(masculine: str) -> str:
    for ending, feminine in (("e", "e"), ("eux", "euse"), ("f", "ve"), ("oux", "ouse"), ("er", "ère"), ("dû", "due")):
        if masculine.endswith(ending):
            return masculine.removesuffix(ending) + feminine
    return masculine + masculine[-1] * masculine.endswith(("el", "eil", "en", "on")) + "e"


def _plural(singular: str) -> str:
    if singular.endswith(("s", "x")):
        return singular
    if singular.endswith("al"):
        return singular[:-1] + "ux"
    return singular + ("x" if singular.endswith("eau") else "s")


@dataclass(frozen=True)
class Verb:
    """Forms of a French verb; the six of a tense in the order of PERSONS."""

    infinitive: str
    present: tuple[str, ...]
    imperfect: tuple[str, ...]
    future: tuple[str, ...]
    conditional: tuple[str, ...]
    subjunctive: tuple[str, ...]
    participle: str

    @classmethod
    @cache
    def of(cls, infinitive: str) -> Verb:
        present, participle, future, *subjunctive = _irregular(infinitive) or _regular(infinitive)
        forms = present.split()
        if len(forms) == 3:
            first, stem, last = forms
            forms = [first, *_singular(first), _softened(stem) + "ons", stem + "ez", last]
        stem = "ét" if infinitive == "être" else forms[3].removesuffix("ons")
        hard = re.sub("ge$", "g", stem).replace("ç", "c") if infinitive.endswith("er") else stem
        imperfect = [(hard if ending[0] == "i" else stem) + ending for ending in IMPERFECT]
        moods = subjunctive[0].split() if subjunctive else []
        if len(moods) != len(PERSONS):
            stem, plural = moods or (forms[5].removesuffix("ent"), imperfect[3].removesuffix("ions"))
            moods = [stem + "e", stem + "es", stem + "e", plural + "ions", plural + "iez", stem + "ent"]
        futures = tuple(future + ending for ending in FUTURE)
        conditional = tuple(future + ending for ending in IMPERFECT)
        return cls(infinitive, tuple(forms), tuple(imperfect), futures, conditional, tuple(moods), participle)

    def imperative(self, person: int) -> str:
        """person: 1 or 4."""
        if self.infinitive in IMPERATIVES:
            return IMPERATIVES[self.infinitive][person == 4]
        form = self.present[person]
        return form[:-1] if person == 1 and form.endswith("es") else form


def _irregular(infinitive: str) -> list[str] | None:
    """Return a verb's principal parts from the table, or None. A row with a hyphen holds for the verbs that end so."""
    if infinitive in CONJUGATED:
        return CONJUGATED[infinitive]
    for start in range(len(infinitive)):
        if parts := CONJUGATED.get("-" + infinitive[start:]):
            return [" ".join(infinitive[:start] + form for form in part.split()) for part in parts]
    return None


def _regular(infinitive: str) -> list[str]:
    """Return the principal parts of a verb in -er, -ir or -re, as the table has them."""
    stem = infinitive[:-2]
    if infinitive.endswith("ir"):
        return [f"{stem}is {stem}iss {stem}issent", f"{stem}i", infinitive]
    if infinitive.endswith("re"):
        return [f"{stem}s {stem} {stem}ent", f"{stem}u", infinitive[:-1]]
    strong = future = stem  # strong: before a silent e
    if parts := re.fullmatch(r"(.*)é([^aeiouy]{1,2})", stem):
        strong = f"{parts[1]}è{parts[2]}"
    elif infinitive in DOUBLING:
        strong = future = stem + stem[-1]
    elif parts := re.fullmatch(r"(.*)e([^aeiouy])", stem):
        strong = future = f"{parts[1]}è{parts[2]}"
    elif stem.endswith("y"):
        strong = future = stem[:-1] + "i"
    return [f"{strong}e {stem} {strong}ent", f"{stem}é", f"{future}er"]


def _singular(first: str) -> tuple[str, str]:
    """Return the forms of tu and il from that of je."""
    if first.endswith("e"):
        return first + "s", first
    stem = first[:-1]
    return first, stem if stem.endswith(("c", "d", "t")) else stem + "t"


def _softened(stem: str) -> str:
    """Return the stem before a or o: "mange", "commenç"."""
    return re.sub("c$", "ç", re.sub("g$", "ge", stem))
