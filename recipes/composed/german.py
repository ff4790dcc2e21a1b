"""Forms of German words: articles, adjectives and nouns by case, finite verbs by person and tense."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Endings by case, in the order masculine, feminine, neuter, plural.
GENDERS = "mfnp"
DEFINITE = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en", "gen": "es er es er"}
INDEFINITE = DEFINITE | {"nom": "- e - e", "acc": "en e - e"}
ARTICLES = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem den", "gen": "des der des der"}
WEAK = {"nom": "e e e en", "acc": "en e e en", "dat": "en en en en", "gen": "en en en en"}
MIXED = {"nom": "er e es en", "acc": "en e es en", "dat": "en en en en", "gen": "en en en en"}
STRONG = DEFINITE | {"gen": "en er en er"}
RELATIVES = ARTICLES | {"dat": "dem der dem denen", "gen": "dessen deren dessen deren"}
CONTRACTED = {
    "in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans", "zu dem": "zum", "zu der": "zur",
    "von dem": "vom", "bei dem": "beim",
}  # fmt: skip
# By person: ich, du, er, wir, ihr, sie (which is also Sie).
PERSONS = ("ich", "du", "er", "wir", "ihr", "sie")
REFLEXIVES = {
    "acc": ["mich", "dich", "sich", "uns", "euch", "sich"],
    "dat": ["mir", "dir", "sich", "uns", "euch", "sich"],
}
PRESENT = {
    "sein": "bin bist ist sind seid sind",
    "haben": "habe hast hat haben habt haben",
    "werden": "werde wirst wird werden werdet werden",
    "können": "kann kannst kann können könnt können",
    "müssen": "muss musst muss müssen müsst müssen",
    "wollen": "will willst will wollen wollt wollen",
    "sollen": "soll sollst soll sollen sollt sollen",
    "dürfen": "darf darfst darf dürfen dürft dürfen",
    "möchten": "möchte möchtest möchte möchten möchtet möchten",
    "wissen": "weiß weißt weiß wissen wisst wissen",
    "mögen": "mag magst mag mögen mögt mögen",
    "tun": "tue tust tut tun tut tun",
}
# The first person of the simple past and of the second subjunctive, from which the others follow.
PAST = {
    "sein": "war", "haben": "hatte", "werden": "wurde", "können": "konnte", "müssen": "musste", "wollen": "wollte",
    "sollen": "sollte", "dürfen": "durfte", "möchten": "wollte", "wissen": "wusste", "würden": "würde",
    "hätten": "hätte", "wären": "wäre", "könnten": "könnte", "müssten": "müsste", "sollten": "sollte",
    "solle": "solle",
}  # fmt: skip
UNPREFIXED = re.compile(r"^(be|emp|ent|er|ge|ver|zer|miss)|ieren$")
NEEDS_E = re.compile(r"([td]|ch[mn]|(?<![aeiouäöülrhmn])[mn])$")
SIBILANT = ("s", "ß", "z", "x")


def ending(table: dict[str, str], case: str, gender: str) -> str:
    return table[case].split()[GENDERS.index(gender)].replace("-", "")


def determiner(kind: str, case: str, gender: str) -> str:
    """ "def": the article; "": none; "dies" and "jed" with the article's endings, others ("ein", "mein") with ein's; a
    word that ends in a space, such as "drei ", has no endings."""
    if kind == "def":
        return ending(ARTICLES, case, gender)
    if not kind or kind.endswith(" "):
        return kind.strip()
    if kind in ("dies", "jed", "all"):
        return kind + ending(DEFINITE, case, gender)
    end = ending(INDEFINITE, case, gender)
    return ("eur" if kind == "euer" and end else kind) + end


def adjective(stem: str, kind: str, case: str, gender: str) -> str:
    """An attributive adjective after a determiner of this kind."""
    if kind in ("def", "dies", "jed", "all"):
        table = WEAK
    else:
        table = STRONG if not kind or kind.endswith(" ") else MIXED
    return stem + ending(table, case, gender)


def noun(singular: str, plural: str, weak: bool, case: str, gender: str) -> str:
    """A noun's form: genitive -s, the dative plural's -n, and -n in all cases but one of a weak noun."""
    if gender == "p":
        return plural + "n" if case == "dat" and not plural.endswith(("n", "s")) else plural
    if weak and case != "nom":
        return "Herrn" if singular == "Herr" else plural
    if case != "gen" or gender == "f":
        return singular
    if singular.endswith("nis"):
        return singular + "ses"
    short = len(re.findall(r"[aeiouyäöü]+", singular.lower())) == 1 and singular[-1] in "dtbgkf"
    return singular + ("es" if short or singular.endswith(SIBILANT) else "s")


@dataclass(frozen=True)
class Verb:
    """A verb's principal parts; the separable prefix, if any, stands apart: "" + "gehen", "ab" + "holen"."""

    prefix: str
    infinitive: str
    third: str
    past: str
    participle: str
    auxiliary: str

    @classmethod
    def of(cls, written: str, strong: dict[str, tuple[str, str, str]], auxiliary: str) -> Verb:
        """A verb as the lexicon writes it: "ab|holen"."""
        prefix, _, infinitive = written.rpartition("|")
        if infinitive in strong:
            return cls(prefix, infinitive, *strong[infinitive], auxiliary)
        stem = _stem(infinitive)
        e = "e" if NEEDS_E.search(stem) else ""
        ge = "" if UNPREFIXED.search(infinitive) else "ge"
        return cls(prefix, infinitive, f"{stem}{e}t", f"{stem}{e}te", f"{ge}{stem}{e}t", auxiliary)

    @property
    def whole(self) -> str:
        return self.prefix + self.infinitive

    @property
    def past_participle(self) -> str:
        return self.prefix + self.participle

    @property
    def with_zu(self) -> str:
        return f"{self.prefix}zu{self.infinitive}" if self.prefix else f"zu {self.infinitive}"

    def present(self, person: str) -> str:
        if self.infinitive in PRESENT:
            return PRESENT[self.infinitive].split()[PERSONS.index(person)]
        stem = _stem(self.infinitive)
        if person == "ich":
            return (stem[:-2] + "l" if stem.endswith("el") else stem) + "e"
        if person == "er":
            return self.third
        if person == "du":
            if stem.endswith("t") and not self.third.endswith("et"):
                return self.third + "st"
            base = self.third[:-1]
            return base + ("t" if base.endswith(SIBILANT) else "st")
        if person == "ihr":
            return stem + ("et" if NEEDS_E.search(stem) else "t")
        return self.infinitive

    def simple_past(self, person: str) -> str:
        return past_form(self.past, person)

    def imperative(self, person: str) -> str:
        """To du, ihr or, with the pronoun, Sie."""
        if self.infinitive == "sein":
            return {"du": "sei", "ihr": "seid"}.get(person, "seien Sie")
        if person == "sie":
            return f"{self.infinitive} Sie"
        if person == "ihr":
            return self.present("ihr")
        stem = _stem(self.infinitive)
        if "i" in self.third and "i" not in stem and self.infinitive not in ("haben", "werden"):
            return self.third if stem.endswith("t") else self.third[:-1]
        if NEEDS_E.search(stem) or stem.endswith(("ig", "er")):
            return stem + "e"
        return stem[:-2] + "le" if stem.endswith("el") else stem


def past_form(third: str, person: str) -> str:
    """Another person's form of a simple past or second subjunctive."""
    e = "" if third.endswith("e") else "e"
    you = ("" if third.endswith(SIBILANT) else "st", "et" if third.endswith(("t", "d")) else "t")
    ends = ("", "t" if not you[0] else you[0], "", f"{e}n", you[1], f"{e}n")
    return third + ends[PERSONS.index(person)]


def auxiliary(name: str, tense: str, person: str) -> str:
    """An auxiliary or modal verb: name as in PRESENT or PAST, tense "present" or "past"."""
    if tense == "present":
        return PRESENT[name].split()[PERSONS.index(person)]
    return past_form(PAST[name], person)


def contracted(text: str) -> str:
    """ "in dem Haus": "im Haus"."""
    return re.sub(
        r"\b(in|an|zu|von|bei) (dem|das|der)\b(?! ?,)",
        lambda match: CONTRACTED.get(match[0], match[0]),
        text,
    )


def _stem(infinitive: str) -> str:
    return infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]
