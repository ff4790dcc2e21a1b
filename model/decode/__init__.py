"""Decoding: from a network to token ids, by greedy or beam search, and to the traces of what was decoded."""
