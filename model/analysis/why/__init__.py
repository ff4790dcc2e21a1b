"""Explain why a token was written: attribution to words, exact splits, and experiments that change the model.

attribution.py   each method's values over the words (methods/: one file per method)
split.py         the token's logit, split exactly over the decoder's parts
experiments/     heads ablated, the smallest set of heads, activation patching, attention edges cut
faithfulness.py  how well each method predicts what removing words does
case.py          one question with its recorded pass, and passes with words masked or replaced
questions.py     which token to ask about, and against which contrast

>>> from attention_atlas.model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> reference = translator.trace("Der Hund schläft.", target="The dog is asleep.")
>>> answer = attribute(translator, reference, step=1, methods=["occlusion_by_mask", "alti"])
>>> len(answer.to_frame()) == len(answer.columns), answer.row("alti").sum.holds
(True, True)

Other calls: `attribute_batch(translator, texts)`, `split_logit(translator, trace)`, `measure_heads(translator, trace)`,
`find_smallest_set(translator, trace)`, `patch(translator, trace, other)` and `find_sentence_circuit(translator, text,
other, ("He", "She"))`.
"""

from attention_atlas.model.analysis.circuits.circuit import find_sentence_circuit
from attention_atlas.model.analysis.why.attribution import attribute, attribute_batch
from attention_atlas.model.analysis.why.experiments.heads import measure_heads
from attention_atlas.model.analysis.why.experiments.patching import PatchEffects, patch
from attention_atlas.model.analysis.why.experiments.smallest import find_smallest_set
from attention_atlas.model.analysis.why.split import split_logit
from attention_atlas.model.trace.inseq import from_inseq, to_inseq
from attention_atlas.model.trace.why.attribution import Parts, Row, Why
from attention_atlas.model.trace.why.effects import HeadEffects, SmallestSet

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
    "find_smallest_set",
    "from_inseq",
    "measure_heads",
    "patch",
    "split_logit",
    "to_inseq",
]
