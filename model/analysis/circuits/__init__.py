"""Circuits: by which paths a decision is made, from the words of both sides to the logits.

graph.py     what writes into the residual streams, what reads them, and the edges between them
passing.py   a pass in which every reader has an input of its own, so that any edge can carry another run's value
pairs.py     two sentences that differ in a word, and the two tokens between which that decides; templates of many
contrast.py  both passes of such pairs, and every run between them: EAP, EAP-IG, or exactly, by cutting
found.py     circuits: what each edge is worth, measured paths, MIB's form
tested.py    how much of the decision a circuit keeps, beside whole nodes and as many edges drawn by lot
study.py     both over many pairs, in parts
alone.py     a translation by a circuit alone

>>> from attention_atlas.model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> he_or_she = pairs(translator, "Er will lesen.", "Sie will lesen.", {"lesen": ("warten", "singen")}, ("He", "She"))
>>> found = find(translator, he_or_she[:1])
>>> kept = found.faithfulness(he_or_she[1:])  # of another pair's decision, by ten shares of the edges alone
>>> float(kept.shares[-1]), round(float(kept.best.faithfulness[-1]), 3)
(1.0, 1.0)
"""

from attention_atlas.model.analysis.circuits.alone import translated
from attention_atlas.model.analysis.circuits.found import Circuit, circuit, find
from attention_atlas.model.analysis.circuits.graph import Edge
from attention_atlas.model.analysis.circuits.pairs import Pair, pair, pairs
from attention_atlas.model.analysis.circuits.study import Study
from attention_atlas.model.analysis.circuits.tested import Tested

__all__ = ["Circuit", "Edge", "Pair", "Study", "Tested", "circuit", "find", "pair", "pairs", "translated"]
