"""Lenses: what a residual stream before the last layer would predict if the model stopped there.

Each lens maps a stream to one that the last norm and the output matrix can read:

logit     the stream itself (nostalgebraist 2020)
tuned     h + W h + b, with W and b of each layer fitted to predict the model's own output (Belrose et al. 2023)
jacobian  J h, where J is the mean Jacobian of the decoder's last stream by this one. It also reads the encoder, whose
          streams have another basis than the decoder's

fit() makes lenses from sentences, save() and load() keep them beside the weights, decoder_lens() and encoder_lens()
read with them.

>>> from attention_atlas.model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> trace = translator.translate("Der Hund schläft.")
>>> output = translator.inspect(trace)
>>> read = decoder_lens(translator.model, output, trace.target_ids)  # the logit lens
>>> read.top_ids.shape == (translator.config.num_decoder_layers + 1, len(trace.target_ids))
True
>>> lenses = load_stored(translator.folder, translator.config, translator.digest)  # None without a file
>>> encoder_lens(translator.model, output, lenses).ids.shape[1] == len(trace.source_ids)
True
"""

from attention_atlas.model.analysis.lenses.read import (
    DecoderLens,
    EncoderLens,
    decoder_lens,
    encoder_lens,
    layer_translations,
)
from attention_atlas.model.analysis.lenses.storage import Lens, Lenses, load, load_stored, save

__all__ = [
    "DecoderLens",
    "EncoderLens",
    "Lens",
    "Lenses",
    "decoder_lens",
    "encoder_lens",
    "layer_translations",
    "load",
    "load_stored",
    "save",
]
