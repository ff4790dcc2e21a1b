"""Caption-like sentence pairs from a small grammar: text to measure speed on, of any amount, that nobody owns."""

from __future__ import annotations

import random
from math import prod

# (German, English) each; a caption takes one from every column, and the last columns are often left out.
WHO = (
    ("Ein Mann", "A man"),
    ("Eine junge Frau", "A young woman"),
    ("Zwei Kinder", "Two children"),
    ("Ein brauner Hund", "A brown dog"),
    ("Drei Arbeiter", "Three workers"),
    ("Ein Mädchen", "A girl"),
    ("Eine Gruppe von Leuten", "A group of people"),
    ("Ein älteres Paar", "An older couple"),
)
LOOK = (
    ("", ""),
    ("", ""),
    (" in einem blauen Hemd", " in a blue shirt"),
    (" mit einem roten Hut", " with a red hat"),
    (" mit nassen Haaren", " with wet hair"),
    (" in warmer Kleidung", " in warm clothes"),
)
DOES = (
    (" geht eine Straße entlang", " walking down a street"),
    (" springt über einen Zaun", " jumping over a fence"),
    (" spielt mit einem Ball", " playing with a ball"),
    (" sitzt auf einer Bank", " sitting on a bench"),
    (" wartet auf den Bus", " waiting for the bus"),
    (" blickt in die Kamera", " looking at the camera"),
    (" steht vor einem großen Gebäude", " standing in front of a large building"),
    (" fährt mit dem Fahrrad durch den Wald", " riding a bicycle through the woods"),
)
WHERE = (
    ("", ""),
    (" am Strand", " at the beach"),
    (" in der Nähe eines Flusses", " near a river"),
    (" auf einem belebten Markt", " at a busy market"),
    (" neben einem geparkten Auto", " next to a parked car"),
)
WHILE = (
    ("", ""),
    ("", ""),
    (", während ein anderer Mann zusieht", " while another man watches"),
    (", und im Hintergrund sind Berge zu sehen", ", and there are mountains in the background"),
    (", während viele Menschen vorbeigehen", " while many people walk by"),
)
COLUMNS = (WHO, LOOK, DOES, WHERE, WHILE)
LARGEST = prod(len(set(column)) for column in COLUMNS) // 2
LANGUAGES = ("de", "en")


def captions(count: int, *, seed: int = 0) -> list[tuple[str, str]]:
    """`count` different (German, English) pairs; the first ones do not depend on how many are asked for.
    ValueError for more than half of what the grammar has."""
    if count > LARGEST:
        raise ValueError(f"the grammar gives at most {LARGEST:,} captions, not {count:,}")
    draw = random.Random(seed)
    found: dict[tuple[str, str], None] = {}
    while len(found) < count:
        parts = [draw.choice(column) for column in COLUMNS]
        found["".join(german for german, _ in parts) + ".", "".join(english for _, english in parts) + "."] = None
    return list(found)


def texts(count: int, language: str) -> list[str]:
    """One side of the pairs; English for a language that the grammar lacks."""
    side = LANGUAGES.index(language) if language in LANGUAGES else 1
    return [pair[side] for pair in captions(count)]
