"""Why was this token written? Counterfactuals, exact splits and proxies, each one file; `attribution.attribute` asks
several."""
