"""The Transformer, its tokenizer, decoding, training and everything else that needs torch."""

if __name__ == "model":
    raise ImportError("import attention_atlas.model: a module called model would be another copy of it")
