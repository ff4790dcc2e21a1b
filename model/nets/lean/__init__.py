"""One step of decoding with little around its arithmetic: what it multiplies by, and how it reads that."""
