"""The formulas of attention, computed step by step in float64: projections, scoring functions, kernels, embeddings."""
