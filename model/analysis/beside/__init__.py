"""Two of a kind side by side: two targets of one source, two sentences of one model, two models on one sentence."""
