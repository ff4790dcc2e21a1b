"""Results of the analyses that explain one written token, as numpy and plain values. Imports no torch.

attribution.py   the question, each method's values over the words read (Why), the exact split of the logit (Parts)
effects.py       what the token or the translation loses without heads or words
faithfulness.py  how far each method's ranking of words holds
evidence.py      what kind of number each result is; results as JSON-ready values
"""
