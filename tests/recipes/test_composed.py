"""Composed sentences: forms of words and word order in German, English and French."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from recipes.composed import english, french, german
from recipes.composed.clauses import Clause
from recipes.composed.english_order import in_english
from recipes.composed.french_order import in_french, question_in_french, question_word, relative_pronoun
from recipes.composed.german_order import in_german
from recipes.composed.lexicon import Adverbial, Lexicon, NotInFrench
from recipes.composed.phrases import Phrase, Phrases
from recipes.composed.sentences import DIRECTIONS, Composer
from recipes.composed.tables import rows
from recipes.slots.fillers import Fillers


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return Lexicon()


@pytest.fixture
def phrases(lexicon) -> Phrases:
    return Phrases(lexicon, Fillers(), np.random.default_rng(1))


def verb(lexicon: Lexicon, written: str, auxiliary: str = "haben") -> german.Verb:
    return german.Verb.of(written, lexicon.strong, auxiliary)


@pytest.mark.parametrize(
    ("written", "forms"),
    [
        ("ab|holen", "hole holst holt holen holt holen"),
        ("warten", "warte wartest wartet warten wartet warten"),
        ("nehmen", "nehme nimmst nimmt nehmen nehmt nehmen"),
        ("lesen", "lese liest liest lesen lest lesen"),
        ("halten", "halte hältst hält halten haltet halten"),
        ("ein|laden", "lade lädst lädt laden ladet laden"),
        ("sammeln", "sammle sammelst sammelt sammeln sammelt sammeln"),
        ("rechnen", "rechne rechnest rechnet rechnen rechnet rechnen"),
        ("wissen", "weiß weißt weiß wissen wisst wissen"),
    ],
)
def test_german_verbs_by_person(lexicon, written, forms):
    assert " ".join(verb(lexicon, written).present(person) for person in german.PERSONS) == forms


def test_german_principal_parts(lexicon):
    parts = {
        "ab|holen": ("holte", "abgeholt", "abzuholen"),
        "besuchen": ("besuchte", "besucht", "zu besuchen"),
        "telefonieren": ("telefonierte", "telefoniert", "zu telefonieren"),
        "öffnen": ("öffnete", "geöffnet", "zu öffnen"),
        "mit|bringen": ("brachte", "mitgebracht", "mitzubringen"),
        "vergessen": ("vergaß", "vergessen", "zu vergessen"),
    }
    for written, expected in parts.items():
        verb_forms = verb(lexicon, written)
        assert (verb_forms.simple_past("er"), verb_forms.past_participle, verb_forms.with_zu) == expected
    assert verb(lexicon, "finden").simple_past("ihr") == "fandet"
    assert [verb(lexicon, "nehmen").imperative(p) for p in ("du", "ihr", "sie")] == ["nimm", "nehmt", "nehmen Sie"]
    assert verb(lexicon, "warten").imperative("du") == "warte" and verb(lexicon, "fahren").imperative("du") == "fahr"


def test_german_phrases_by_case(lexicon, phrases):
    neighbour = next(noun for noun in lexicon.nouns if noun.singular == "Nachbar")
    nice = next(adjective for adjective in lexicon.adjectives if adjective.base == "nett")
    cases = ("nom", "acc", "dat", "gen")

    def forms(*args) -> list[str]:
        phrase = phrases.build(*args).german
        return [phrase[case] for case in cases]

    singular = ["der nette Nachbar", "den netten Nachbarn", "dem netten Nachbarn", "des netten Nachbarn"]
    assert forms(neighbour, False, "def", None, nice) == singular
    plural = ["nette Nachbarn", "nette Nachbarn", "netten Nachbarn", "netter Nachbarn"]
    assert forms(neighbour, True, "", None, nice) == plural
    assert forms(neighbour, False, "ein", None, nice)[0] == "ein netter Nachbar"
    child = next(noun for noun in lexicon.nouns if noun.singular == "Kind")
    assert forms(child, True, "def", None, None)[2] == "den Kindern"
    assert forms(child, False, "def", None, None)[3] == "des Kindes"
    assert phrases.build(child, False, "ein", None, None).english[0] == "a child"


def test_english_forms(lexicon):
    def form(base: str) -> tuple[str, str, str]:
        verb_forms = english.Verb.of(base, lexicon.irregular)
        return verb_forms.present(2), verb_forms.simple_past(2), verb_forms.ing

    assert form("pick") == ("picks", "picked", "picking")
    assert form("try") == ("tries", "tried", "trying")
    assert form("catch") == ("catches", "caught", "catching")
    assert form("take") == ("takes", "took", "taking")
    assert form("stop") == ("stops", "stopped", "stopping")
    assert form("get") == ("gets", "got", "getting")
    assert form("be") == ("is", "was", "being")
    words = ("apple", "hour", "university", "umbrella", "uncle", "USB stick", "honest man", "unimportant one")
    assert [english.article(word) for word in words] == ["an", "an", "a", "an", "an", "a", "an", "an"]


def clause(lexicon: Lexicon, phrases: Phrases, **changes) -> Clause:
    """Return the clause of "Ich hole das Kind ab.", with changes."""
    entry = next(e for e in lexicon.verbs if e.german.whole == "abholen" and len(e.complements) == 1)
    child = next(noun for noun in lexicon.nouns if noun.singular == "Kind")
    phrase = phrases.build(child, False, "def", None, None)
    return Clause(phrases.pronoun("ich"), entry, (phrase,), **{"tense": "habit", **changes})


def test_word_order_of_a_clause(lexicon, phrases):
    now, past = clause(lexicon, phrases), clause(lexicon, phrases, tense="past", negation="not")
    assert in_german(now, "main") == "ich hole das Kind ab"
    assert in_german(now, "last") == "ich das Kind abhole"
    assert in_german(now, "question") == "hole ich das Kind ab"
    assert in_german(now, "zu") == "das Kind abzuholen"
    assert in_german(past, "main") == "ich habe das Kind nicht abgeholt"
    assert in_german(past, "last") == "ich das Kind nicht abgeholt habe"
    assert in_english(now, "main") == "I pick the child up"
    assert in_english(past, "main") == "I did not pick the child up"
    assert in_english(past, "question") == "didn't I pick the child up"
    assert in_english(now, "to") == "to pick the child up"
    must = clause(lexicon, phrases, tense="must", negation="not")
    assert in_english(must, "question") == "don't I have to pick the child up"
    leaving = clause(lexicon, phrases, tense="now", negation="not")
    assert in_english(leaving, "question") == "aren't I picking the child up"


def test_tenses_of_both_languages(lexicon, phrases):
    sentences = {
        "told": ("ich holte das Kind ab", "I picked the child up"),
        "perfect": ("ich habe das Kind abgeholt", "I have picked the child up"),
        "pluperfect": ("ich hatte das Kind abgeholt", "I had picked the child up"),
        "will": ("ich werde das Kind abholen", "I will pick the child up"),
        "must": ("ich muss das Kind abholen", "I have to pick the child up"),
        "was allowed": ("ich durfte das Kind abholen", "I was allowed to pick the child up"),
        "would": ("ich würde das Kind abholen", "I would pick the child up"),
        "now": ("ich hole das Kind ab", "I am picking the child up"),
    }
    for tense, expected in sentences.items():
        sentence = clause(lexicon, phrases, tense=tense)
        assert (in_german(sentence, "main"), in_english(sentence, "main")) == expected


def test_after_an_initial_adverbial_the_german_verb_precedes_its_subject(lexicon, phrases):
    yesterday = next(a for a in lexicon.adverbials if a.german == "gestern")
    sentence = clause(lexicon, phrases, tense="past", adverbials=(yesterday,), front="adverbial")
    assert in_german(sentence, "main") == "gestern habe ich das Kind abgeholt"
    assert in_english(sentence, "main") == "yesterday, I picked the child up"


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_pairs_depend_on_the_seed_only_and_are_well_formed(lexicon, direction):
    composers = [Composer(Fillers(), np.random.default_rng(3), lexicon) for _ in range(2)]
    first, second = ([composer.pair(direction) for _ in range(300)] for composer in composers)
    assert first == second and len(set(first)) > 280
    for source, target in first:
        both = source + target
        assert source[0].isupper() or not source[0].isalpha()
        assert source[-1] in ".?!" and target[-1] in ".?!" and not re.search(r"  |,,|[°*~_]", both)
        assert (source[-1] == "?") == (target[-1] == "?")


def test_every_kind_of_sentence_has_all_languages(lexicon):
    composer = Composer(Fillers(), np.random.default_rng(6), lexicon)
    for kind in composer.kinds:
        texts = next(texts for _ in range(50) if (texts := kind()) and has_french(texts))
        assert texts["de"] and texts["en"] and texts["fr"]


def has_french(texts) -> bool:
    try:
        return bool(texts["fr"])
    except NotInFrench:
        return False


def test_every_class_of_nouns_that_a_verb_names_exists(lexicon):
    classes = {name for entry in lexicon.verbs for c in entry.complements for name in c.classes}
    assert classes | {name for entry in lexicon.verbs for name in entry.subjects} <= set(lexicon.by_class)


def test_the_opposite_direction_swaps_the_sides_of_a_pair(lexicon):
    forward, backward = (Composer(Fillers(), np.random.default_rng(5), lexicon).pair(d) for d in ("de-en", "en-de"))
    assert forward == backward[::-1]


def test_tables_have_no_duplicate_lines():
    for name in ("nouns.tsv", "verbs.tsv", "adverbials.tsv"):
        lines = [tuple(row) for row in rows(name)]
        assert len(set(lines)) == len(lines) > 100


def test_tenses_of_the_passive(lexicon, phrases):
    sentences = {
        "habit": ("das Kind wird abgeholt", "the child is picked up"),
        "future": ("das Kind wird abgeholt", "the child will be picked up"),
        "past": ("das Kind wurde abgeholt", "the child was picked up"),
        "will": ("das Kind wird abgeholt werden", "the child will be picked up"),
        "must": ("das Kind muss abgeholt werden", "the child has to be picked up"),
        "perfect": ("das Kind ist abgeholt worden", "the child has been picked up"),
    }
    for tense, expected in sentences.items():
        active = clause(lexicon, phrases, tense=tense)
        passive = replace(active, subject=active.arguments[0], passive=True)
        assert (in_german(passive, "main"), in_english(passive, "main")) == expected


@pytest.mark.parametrize(
    ("infinitive", "present", "others"),
    [
        ("manger", "mange manges mange mangeons mangez mangent", "mangeais mangerai mange mangé"),
        ("lancer", "lance lances lance lançons lancez lancent", "lançais lancerai lance lancé"),
        ("acheter", "achète achètes achète achetons achetez achètent", "achetais achèterai achète acheté"),
        ("appeler", "appelle appelles appelle appelons appelez appellent", "appelais appellerai appelle appelé"),
        ("espérer", "espère espères espère espérons espérez espèrent", "espérais espérerai espère espéré"),
        ("payer", "paie paies paie payons payez paient", "payais paierai paie payé"),
        ("finir", "finis finis finit finissons finissez finissent", "finissais finirai finisse fini"),
        ("attendre", "attends attends attend attendons attendez attendent", "attendais attendrai attende attendu"),
        ("être", "suis es est sommes êtes sont", "étais serai sois été"),
        ("faire", "fais fais fait faisons faites font", "faisais ferai fasse fait"),
        ("revenir", "reviens reviens revient revenons revenez reviennent", "revenais reviendrai revienne revenu"),
        ("recevoir", "reçois reçois reçoit recevons recevez reçoivent", "recevais recevrai reçoive reçu"),
        ("éteindre", "éteins éteins éteint éteignons éteignez éteignent", "éteignais éteindrai éteigne éteint"),
        ("offrir", "offre offres offre offrons offrez offrent", "offrais offrirai offre offert"),
    ],
)
def test_french_verbs(infinitive, present, others):
    verb_forms = french.Verb.of(infinitive)
    first = (verb_forms.imperfect[0], verb_forms.future[0], verb_forms.subjunctive[0], verb_forms.participle)
    assert (" ".join(verb_forms.present), " ".join(first)) == (present, others)
    assert verb_forms.conditional[2] == verb_forms.future[0][:-2] + "ait"


def test_french_moods():
    plurals = {"manger": ("mangions", "mangions"), "venir": ("venions", "venions"), "savoir": ("savions", "sachions")}
    for infinitive, (imperfect, subjunctive) in plurals.items():
        verb_forms = french.Verb.of(infinitive)
        assert (verb_forms.imperfect[3], verb_forms.subjunctive[3]) == (imperfect, subjunctive)
    requests = {
        "manger": ("mange", "mangez"),
        "ouvrir": ("ouvre", "ouvrez"),
        "être": ("sois", "soyez"),
        "aller": ("va", "allez"),
    }
    for infinitive, forms in requests.items():
        assert tuple(french.Verb.of(infinitive).imperative(person) for person in (1, 4)) == forms


def test_french_adjectives(lexicon):
    forms = {
        "heureux": "heureux heureuse heureux heureuses", "sportif": "sportif sportive sportifs sportives",
        "fier": "fier fière fiers fières", "normal": "normal normale normaux normales",
        "beau": "beau belle beaux belles", "marron": "marron marron marron marron",
    }  # fmt: skip
    for masculine, expected in forms.items():
        adjective = lexicon.french_adjectives.get(masculine) or french.Adjective.of(masculine)
        assert " ".join(adjective.form(f, p) for p in (False, True) for f in (False, True)) == expected
    assert french.with_adjective("ami", lexicon.french_adjectives["vieux"], False, False) == "vieil ami"
    assert french.with_adjective("amie", lexicon.french_adjectives["fatigué"], True, False) == "amie fatiguée"


@pytest.mark.parametrize(
    ("written", "spelled"),
    [
        ("je ne le ai pas", "je ne l'ai pas"),
        ("de °le pain et de °la eau", "du pain et de l'eau"),
        ("à °les enfants de °le hôtel", "aux enfants de l'hôtel"),
        ("le oncle de Élodie", "l'oncle d'Élodie"),
        ("il essaie de le voir", "il essaie de le voir"),
        ("appelle-le avant que elle parte", "appelle-le avant qu'elle parte"),
        ("si il vient et si elle vient", "s'il vient et si elle vient"),
        ("puisque il dort, puisque Anna dort", "puisqu'il dort, puisque Anna dort"),
        ("°le *hibou à °lesquels de °le *hibou", "le hibou auxquels du hibou"),
        (f"de {french.name('Hans')} et de {french.name('Henri')}", "de Hans et d'Henri"),
    ],
)
def test_elision_and_contraction(written, spelled):
    assert french.spell(written) == spelled


def noun(lexicon: Lexicon, phrases: Phrases, word: str, kind: str, plural: bool = False, adjective: str = "") -> Phrase:
    """Return a phrase with the noun of an English word."""
    entry = next(noun for noun in lexicon.nouns if word in (noun.english, noun.english_plural))
    adjective_entry = next((a for a in lexicon.adjectives if a.english == adjective), None)
    return phrases.build(entry, plural, kind, phrases.pronoun("ich") if kind == "own" else None, adjective_entry)


def test_french_determiners(lexicon, phrases):
    def text(*args, **options) -> str:
        return french.spell(noun(lexicon, phrases, *args, **options).french.subject)

    assert [text("bread", ""), text("flour", ""), text("water", "")] == ["du pain", "de la farine", "de l'eau"]
    assert [text("flower", "", True), text("flower", "", True, "beautiful")] == ["des fleurs", "de belles fleurs"]
    assert [text("tree", "dies"), text("school", "dies"), text("car", "dies")] == [
        "cet arbre",
        "cette école",
        "cette voiture",
    ]
    assert [text("school", "own"), text("school", "own", adjective="big")] == ["mon école", "ma grande école"]
    assert [text("owl", "def"), text("hotel", "def"), text("pants", "ein")] == ["le hibou", "l'hôtel", "un pantalon"]
    assert [text("letter", "all", True), text("flu", "")] == ["toutes les lettres", "la grippe"]


def test_french_behind_prepositions(lexicon, phrases):
    def after(preposition: str, *args, **options) -> str:
        return french.spell(noun(lexicon, phrases, *args, **options).french.after(preposition))

    assert [after("de", "bread", ""), after("de", "bread", "def")] == ["de pain", "du pain"]
    assert [after("de", "letter", "", True), after("de", "letter", "ein")] == ["de lettres", "d'une lettre"]
    assert [after("à", "child", "def", True), after("sans", "money", "")] == ["aux enfants", "sans argent"]
    assert french.spell(phrases.pronoun("sie alle").french.after("chez")) == "chez eux"
    gentleman = french.Nominal("Martin", determiner="M.")
    assert (gentleman.subject, gentleman.after("avec")) == ("M. Martin", "avec monsieur Martin")


def put(
    lexicon: Lexicon, meaning: str, subject: Phrase, *objects: Phrase, order: str = "main", mood="indicative", **changes
) -> str:
    """Return the French for a verb of the lexicon with its subject and objects."""
    entry = next(e for e in lexicon.verbs if " ".join((e.english.base, *e.pattern)) == meaning)
    tense = changes.pop("tense", "past")
    return french.spell(in_french(Clause(subject, entry, objects, tense, **changes), order, mood))


def test_french_participles_agree(lexicon, phrases):
    she, they = phrases.pronoun("sie"), phrases.pronoun("sie alle")
    letter = noun(lexicon, phrases, "letter", "def")
    assert put(lexicon, "arrive", she) == "elle est arrivée"
    assert put(lexicon, "get up", they) == "ils se sont levés"
    assert put(lexicon, "wash POSS hands", she) == "elle s'est lavé les mains"
    assert put(lexicon, "invite 1", they, she) == "ils l'ont invitée"
    assert put(lexicon, "write 1", she, letter) == "elle a écrit la lettre"
    assert put(lexicon, "write 1", phrases.pronoun("ich"), letter, gap=0) == "j'ai écrite"
    assert put(lexicon, "write 1", letter, letter, passive=True) == "la lettre a été écrite"
    assert put(lexicon, "ask 1 for advice", she, she, passive=True) == "on lui a demandé conseil"
    assert put(lexicon, "be proud of 1", she, they) == "elle était fière d'eux"


def test_a_french_adverbial_may_be_part_of_another_word(lexicon, phrases):
    yesterday = next(adverbial for adverbial in lexicon.adverbials if adverbial.german == "gestern")
    notebook = noun(lexicon, phrases, "notebook", "def")
    text = put(lexicon, "write 1", phrases.pronoun("ich"), notebook, adverbials=(yesterday,))
    assert text == "j'ai écrit le cahier hier"
    assert lexicon.simple("spannend sein", "be exciting", "être passionnant~").french.negation == ""


def test_french_pronouns(lexicon, phrases):
    me, you, her, them = map(phrases.pronoun, ("ich", "du", "sie", "sie alle"))
    key = noun(lexicon, phrases, "key", "def")
    assert put(lexicon, "give 1 2", you, me, key, tense="habit") == "tu me donnes la clé"
    assert put(lexicon, "give 1 2", me, them, key, negation="not") == "je ne leur ai pas donné la clé"
    assert put(lexicon, "give 1 2", me, her, key, tense="want") == "je veux lui donner la clé"
    assert put(lexicon, "give 1 2", you, me, key, order="imperative") == "donne-moi la clé"
    assert put(lexicon, "give 1 2", you, me, key, order="imperative", negation="not") == "ne me donne pas la clé"
    assert put(lexicon, "get up", you, order="imperative") == "lève-toi"
    assert put(lexicon, "get up", me, order="infinitive", negation="not") == "ne pas me lever"
    assert put(lexicon, "think about 1", me, her, tense="habit") == "je pense à elle"
    assert put(lexicon, "miss 1", me, her, tense="habit") == "elle me manque"
    with pytest.raises(NotInFrench):
        put(lexicon, "invite 1", you, you)


def test_french_negation(lexicon, phrases):
    me, bread = phrases.pronoun("ich"), noun(lexicon, phrases, "bread", "kein")
    assert put(lexicon, "eat 1", me, bread, negation="kein") == "je n'ai pas mangé de pain"
    assert put(lexicon, "eat 1", me, bread, negation="kein mehr", tense="habit") == "je ne mange plus de pain"
    assert put(lexicon, "eat 1", me, bread, negation="kein", tense="must") == "je ne suis pas obligé de manger du pain"
    assert put(lexicon, "need 1", me, bread, negation="kein", tense="habit") == "je n'ai pas besoin de pain"
    assert put(lexicon, "sing", me, negation="never yet", tense="perfect") == "je n'ai encore jamais chanté"
    assert put(lexicon, "make coffee", me, negation="not") == "je n'ai pas fait de café"
    often = Adverbial("oft", "often", "souvent", frozenset({"often"}))
    assert put(lexicon, "sing", me, negation="not", adverbials=(often,)) == "je n'ai pas souvent chanté"


@pytest.mark.parametrize(
    ("tense", "mood", "expected"),
    [
        ("future", "indicative", "elle va partir"),
        ("will", "indicative", "elle partira"),
        ("may", "indicative", "elle a le droit de partir"),
        ("had to", "indicative", "elle a dû partir"),
        ("would like", "indicative", "elle voudrait partir"),
        ("past", "subjunctive", "elle soit partie"),
        ("past", "present subjunctive", "elle parte"),
        ("future", "subjunctive", "elle parte"),
        ("can", "subjunctive", "elle puisse partir"),
        ("perfect", "future", "elle sera partie"),
        ("habit", "conditional", "elle partirait"),
        ("past", "reported", "elle était partie"),
        ("told", "imperfect", "elle partait"),
    ],
)
def test_french_tenses(lexicon, phrases, tense, mood, expected):
    assert put(lexicon, "leave", phrases.pronoun("sie"), tense=tense, mood=mood) == expected


def test_french_infinitives(lexicon, phrases):
    she = phrases.pronoun("sie")
    assert put(lexicon, "leave", she, order="infinitive", tense="pluperfect") == "être partie"
    assert put(lexicon, "leave", she, order="infinitive", tense="can") == "pouvoir partir"
    right_now = next(adverbial for adverbial in lexicon.adverbials if adverbial.german == "gerade")
    assert put(lexicon, "sing", she, tense="now", adverbials=(right_now,)) == "elle est en train de chanter"
    just = ("gerade", "just", "venir de")
    assert put(lexicon, "leave", she, tense="perfect", mid=just) == "elle vient de partir"


def test_french_questions(lexicon, phrases):
    def ask(key: str, tense: str, word: str = "", negation: str = "") -> str:
        entry = next(e for e in lexicon.verbs if e.english.base == "sing" and not e.pattern)
        clause = Clause(phrases.pronoun(key), entry, (), tense, negation)
        return french.spell(question_in_french(word, clause))

    assert ask("du", "past") == "est-ce que tu as chanté"
    assert ask("Sie", "past", negation="not") == "n'avez-vous pas chanté"
    assert ask("er", "will", "quand") == "quand chantera-t-il"
    assert ask("ihr", "may") == "est-ce que vous avez le droit de chanter"


@pytest.mark.parametrize(
    ("meaning", "human", "pronoun", "word"),
    [
        ("invite 1", True, "que", "qui"),
        ("write 1", False, "que", "que"),
        ("talk about 1", True, "dont", "de qui"),
        ("think about 1", True, "à qui", "à qui"),
        ("take part in 1", False, "à laquelle", "à quoi"),
        ("wait in front of 1", False, "devant laquelle", "devant quoi"),
    ],
)
def test_french_relative_pronouns_and_question_words(lexicon, phrases, meaning, human, pronoun, word):
    entry = next(e for e in lexicon.verbs if " ".join((e.english.base, *e.pattern)) == meaning)
    phrase = noun(lexicon, phrases, "girl" if human else "school", "def")
    clause = Clause(phrases.pronoun("ich"), entry, (phrase,), "past", gap=0)
    assert french.spell(relative_pronoun(clause)) == pronoun
    assert french.spell(question_word(clause, human)) == word
