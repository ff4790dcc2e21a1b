"""Units of an encoder layer: neurons of its feed-forward, and a sparse dictionary of its stream, looked at alike.

sparse.py    a top-k sparse autoencoder, trained; and fixed directions, projected on
measure.py   what is lost if a stream is replaced by what a dictionary says of it
fitted.py    a checkpoint's dictionary, in a file beside its weights
excited.py   the sentences that excite each unit most, for neurons and a dictionary alike
"""
