"""Units of an encoder layer: the neurons of its feed-forward block, or a sparse dictionary of its stream.

dictionary.py  a top-k sparse autoencoder, its training, its file, and the loss of the model with rebuilt streams
units.py       the activations of units, and the sentences that activate each most
"""
