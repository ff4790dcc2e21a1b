"""Two of a kind side by side: two targets of one source, two models on one sentence."""
