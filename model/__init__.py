"""The Transformer, its tokenizer, decoding, training and everything else that needs torch."""
