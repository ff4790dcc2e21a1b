"""Word alignments from a model's attention heads: choosing heads (choose), links (linker), word order (monotone)."""
