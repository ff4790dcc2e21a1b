"""Circuits: by which paths a decision is made, from the words of both sides to the logits.

graph.py     what writes into the residual streams, what reads them, and the edges between them
passing.py   a pass in which every reader has an input of its own, so that any edge can carry another run's value
pairs.py     two sentences that differ in a word, and the two tokens between which that decides
scores.py    what each edge is worth: EAP, EAP-IG, or exactly, by cutting it
tested.py    how much of the decision a circuit keeps, beside as many edges drawn by lot

from model.analysis import circuits
found = circuits.find(translator, pairs)
circuits.tested(translator, found, held_out)
"""

from model.analysis.circuits.pairs import Pair, pair
from model.analysis.circuits.scores import Circuit, find
from model.analysis.circuits.tested import tested

__all__ = ["Circuit", "Pair", "find", "pair", "tested"]
