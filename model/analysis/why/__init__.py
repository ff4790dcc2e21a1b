"""Why was this token written? Counterfactuals, exact splits and proxies, each one file. From Python:

from attention_atlas.model.analysis import why
why.attribute(translator, trace, step=3, contrast="coffee")     # every method over the words
why.parts(translator, trace)                                    # the logits split over the decoder's parts
why.attribute_batch(translator, texts)                          # of many texts, one answer after another
why.find_sentence_circuit(translator, text, other, ("He", "She"))             # along which edges a changed word decides
why.heads(translator, trace), why.patch(translator, trace, other), why.smallest_set(translator, trace)

>>> from attention_atlas.model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> reference = translator.trace("Der Hund schläft.", target="The dog is asleep.")
>>> answer = attribute(translator, reference, step=1, methods=["occlusion_by_mask", "alti"])
>>> len(answer.to_frame()) == len(answer.columns), answer.row("alti").sum.holds
(True, True)
"""

from attention_atlas.model.analysis.circuits.circuit import find_sentence_circuit
from attention_atlas.model.analysis.why.attribution import attribute, attribute_batch
from attention_atlas.model.analysis.why.experiments.asking import heads, parts, smallest_set
from attention_atlas.model.analysis.why.experiments.patching import PatchEffects, patch
from attention_atlas.model.trace.inseq import from_inseq, to_inseq
from attention_atlas.model.trace.why.attribution import Row, Why
from attention_atlas.model.trace.why.effects import HeadEffects, SmallestSet
from attention_atlas.model.trace.why.parts import Parts

__all__ = [
    "HeadEffects",
    "Parts",
    "PatchEffects",
    "Row",
    "SmallestSet",
    "Why",
    "attribute",
    "attribute_batch",
    "find_sentence_circuit",
    "from_inseq",
    "heads",
    "parts",
    "patch",
    "smallest_set",
    "to_inseq",
]
