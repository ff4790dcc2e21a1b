"""The library's front door: text in, translations and traces out.

>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> trace = translator.translate("Der Hund schläft.")
>>> trace.cross.weights.shape[2:] == (len(trace.target_ids), len(trace.source_ids))  # [layers, heads, target, source]
True
>>> forced = translator.trace("Der Hund schläft.", target="A dog is sleeping.")  # read as if the model had written it
>>> forced.translation, bool(forced.log_probability.sum() < trace.log_probability.sum())
('A dog is sleeping.', True)
>>> translator.translate_batch(["Der Hund schläft."]) == [trace.translation]
True
"""

from attention_atlas.model.translator.translator import Translator

__all__ = ["Translator"]
