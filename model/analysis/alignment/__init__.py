"""Word alignments from a model's attention heads: choosing heads and reading links (links), word order (monotone)."""
