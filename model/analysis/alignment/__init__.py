"""Word alignments from a model's heads."""
