"""Find the circuit of a decision: the edges between heads and feed-forwards that carry it from the words to the logits.

graph.py    the edges: what writes into the residual streams and what reads them
pairs.py    pairs of sentences that differ in one word, with the two tokens between which that word decides
passes.py   passes in which every edge can carry another sentence's values, and edge scores (EAP, EAP-IG, exact)
circuit.py  find a circuit, patch its paths, translate with it alone, study how much of the decision it keeps

>>> from attention_atlas.model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> verbs = {"lesen": ("warten", "singen")}
>>> he_or_she = make_pairs(translator, "Er will lesen.", "Sie will lesen.", verbs, ("He", "She"))
>>> circuit = find_circuit(translator, he_or_she[:1])
>>> curves = circuit.measure_faithfulness(he_or_she[1:])  # of ten sizes, on the other pairs
>>> float(curves.shares[-1]), round(float(curves.best.faithfulness[-1]), 3)
(1.0, 1.0)
"""

from attention_atlas.model.analysis.circuits.circuit import (
    Circuit,
    FaithfulnessCurves,
    Study,
    find_circuit,
    find_sentence_circuit,
    translate_with_edges,
)
from attention_atlas.model.analysis.circuits.graph import Edge
from attention_atlas.model.analysis.circuits.pairs import Pair, make_pair, make_pairs

__all__ = [
    "Circuit",
    "Edge",
    "FaithfulnessCurves",
    "Pair",
    "Study",
    "find_circuit",
    "find_sentence_circuit",
    "make_pair",
    "make_pairs",
    "translate_with_edges",
]
