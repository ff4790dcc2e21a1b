"""Lenses: what a residual stream on its way would say if the model stopped there.

Each turns a stream into one that the last norm and the output matrix can read:

logit     the stream as it is (nostalgebraist 2020)
tuned     h + W h + b, with W and b a layer's, fitted so that the end says the same (Belrose et al. 2023)
jacobian  J h, with J the mean slope of the decoder's last stream by this one: it reads the encoder, too, whose streams
          are not of the decoder's basis

fit.py makes them of sentences, fitted.py keeps them beside the weights, decoder.py and encoder.py read with them.

>>> from attention_atlas.model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> trace = translator.translate("Der Hund schläft.")
>>> output = translator.inspect(trace)
>>> read = decoder_lens(translator.model, output, trace.target_ids)  # the logit lens
>>> read.top_ids.shape == (translator.config.num_decoder_layers + 1, len(trace.target_ids))
True
>>> fitted = stored(translator.folder, translator.config, translator.digest)  # None where there are none
>>> encoder_lens(translator.model, output, fitted).ids.shape[1] == len(trace.source_ids)
True
"""

from attention_atlas.model.analysis.lenses.decoder import DecoderLens, decoder_lens
from attention_atlas.model.analysis.lenses.encoder import EncoderLens, encoder_lens, layer_translations
from attention_atlas.model.analysis.lenses.fitted import Lens, Lenses, load, save, stored

__all__ = [
    "DecoderLens",
    "EncoderLens",
    "Lens",
    "Lenses",
    "decoder_lens",
    "encoder_lens",
    "layer_translations",
    "load",
    "save",
    "stored",
]
