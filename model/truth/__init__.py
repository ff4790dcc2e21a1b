"""A checkpoint next to data that others labelled: links by hand, contrastive pairs, hallucinations."""
