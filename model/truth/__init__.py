"""Benchmarks of a checkpoint on data that others labelled: links by hand, contrastive pairs, hallucinations."""
