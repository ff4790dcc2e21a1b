"""Lenses: what a residual stream on its way would say if the model stopped there.

Each turns a stream into one that the last norm and the output matrix can read:

logit     the stream as it is (nostalgebraist 2020)
tuned     h + W h + b, with W and b a layer's, fitted so that the end says the same (Belrose et al. 2023)
jacobian  J h, with J the mean slope of the decoder's last stream by this one: it reads the encoder, too, whose streams
          are not of the decoder's basis

fit.py makes them of sentences, fitted.py keeps them beside the weights, decoder.py and encoder.py read with them.
"""
