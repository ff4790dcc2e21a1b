"""Detect a text in an unexpected language, of those of the shipped models, by its most common words."""

from __future__ import annotations

import re

# The most common words of each language that are at least ten times as common as in both others, counted in captions,
# everyday sentences and news.
_COMMON = {
    "de": """
        ich ein die ist der nicht das sie zu und mit auf eine einem er dass hat sich den von wir einer einen
        mann im dem habe mir wie für war mich ihr sind haben als um aus kann zwei sein frau vor nach wird noch
        dich bin dir hast etwas über uns bei sehr wenn werden gehen mehr weiß meine mädchen wurde seine diese
        warum zum ihn junge drei mein hatte nur schon tun hund gut keine bist oder steht immer auch werde ihm
        ihre muss bitte machen aber geht dieses können nichts viel wo möchte während zeit macht sagte männer
        da durch straße würde heute eines dieser sagen nie sitzt zur kinder alle euch viele ihnen spielt
        menschen sehen hätte geld seinen spielen alles deine gibt gruppe hält kein seinem jetzt gerade gerne
        buch bis essen morgen hemd kannst hause wasser müssen personen tag leute französisch gesagt arbeit
        stehen einmal wieder frauen auto kommen seiner leben unter waren wollte wer mag wissen neben ihren
        haus helfen wirklich ab wäre fährt trägt weißen sprechen anderen ins gesehen willst kommt ob lassen
        glaube paar dein blauen beim sitzen diesem vater wann roten lange sei gestern doch ohne gemacht andere
        besser einfach schule könnte uhr weg konnte meinen habt sieht großen kam keinen sollte mutter zusammen
        ging sagt stadt damit seit diesen fahren jahr kleines wollen soll frage zimmer jahre ganz vom jungen
        sicher getan niemand kleiner davon selbst schwarzen zurück denke gegen gab sollen entlang fahrrad
        gehört mehrere geben jahren springt ihrer hinter einige darüber allein jemand vier tisch darauf sah
        spricht vielleicht wirst hilfe scheint musst jeden oft dabei sollten lernen fragen warten wurden gern
        meiner dachte glücklich recht große lass arbeiten meinem woche ihrem tut dies läuft dann liegt tür
        wusste dazu nacht bleiben reden fünf
    """,
    "en": """
        the i you to is of that it he and do this have for are with we don what my can be your his at not she
        want like know re they there how did him all has go her about think ll by one up time here very from
        had out ve two get people didn if were no why would going who when just good been where woman should
        but come see need more help us tell let could please some than take said never now something really
        doesn three down got much too make work dog young while wearing day money home back any right last
        into their say many little look over french only does other white anything made lot told girl give off
        or our isn book boy thought way house black room must old next doing today before still them children
        better went school talk red looking always playing men well love after water again sure blue won happy
        sitting eat which put may street father night leave years speak left asked these everything group
        first standing ever believe every tomorrow wanted front find yesterday around feel stop play year
        another ask nothing child stay saw walking done even read away being alone without live hard mother
        through friends happened took life enough keep understand buy looks door came already busy things try
        call wrong used women large holding outside late each small wasn couldn gave same its hope friend
        talking lost wants thing english because found yet food heard remember seen big use most idea morning
        often soon best few both knew hear together everyone watch open someone drink knows working such mind
        sorry teacher city wait walk green getting aren anyone hair great able says those answer near world
        wish since bought
    """,
    "fr": """
        de un je la une à est le pas que il vous l en ne tu les et ce dans n j ai avec nous sur pour qu homme
        elle qui c au suis se plus faire sont deux y fait son ça tout femme être par moi était veux te si ils
        êtes mon cette été ont lui sa très avez cela temps dit chose votre peux où pourquoi ici ma bien
        personnes pense quelque personne sais chien autre fille jamais ses mais comme comment jeune trois toi
        tous avoir peut vraiment beaucoup avons debout devant même elles hommes dire garçon ton groupe gens
        aux aller tandis là enfants assis besoin avait après aime peu sommes maison rue rouge eau rien encore
        petit parler toujours aussi voiture étais quand argent ou noir va voir porte trop monde enfant quoi
        blanc travail mes soit fois portant ces bon leur grand côté faut autres femmes près sans maintenant
        hui aujourd déjà dois ta avant aimerais eu combien ceci ans regarde vais bleu juste père chez vu livre
        toutes quel joue prendre quelle avais pouvez aider français petite notre quelqu pendant tient entre
        fais quelques ville depuis vie assez sous toute seul vélo nuit bonne mieux main école puis pensais
        manger leurs problème heures voulez cet lors nouveau demain jour jeunes dehors mère grande heure
        savoir dessus jusqu parle contre dû aide devrais fut cheveux plaît partir non soir chemise dernière
        pris tenant plusieurs derrière dont jours jouant vêtu vers tes quatre passé marche choses pays
        simplement année bâtiment ensemble lunettes moins vos sens jaune veut tête idée semble neige téléphone
        sera passe arrière étaient plage amis aurais dis jouent semaine blanche venir heureux journée raison
        sait regardant alors sûr veste fête font pu demandé voulais seule difficile filles tôt jouer
    """,
}
COMMON = {language: frozenset(words.split()) for language, words in _COMMON.items()}
ENOUGH_WORDS = 4  # in which a single common word decides


def other_language(text: str, expected: str) -> str | None:
    """Return the language that a text is in if that is clearly not the expected one, else None.

    A text is in another language if at least two more of its words are common there than in the expected language, or
    if it has at least four words, of which one is common there and none in the expected language. None also if
    `expected` is not in COMMON.
    """
    if expected not in COMMON:
        return None
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = {language: sum(word in common for word in words) for language, common in COMMON.items()}
    expected_count = counts.pop(expected)
    language = max(counts, key=counts.__getitem__)
    clear = counts[language] >= expected_count + 2 or (
        expected_count == 0 < counts[language] and len(words) >= ENOUGH_WORDS
    )
    return language if clear else None
