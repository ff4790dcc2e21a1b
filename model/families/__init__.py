"""Other people's checkpoints: what each family's config, tensors and tokenizer files are in ours."""
