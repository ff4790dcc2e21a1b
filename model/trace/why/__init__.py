"""Results of the analyses that explain one written token, as numpy and plain values. Imports no torch.

attribution.py   the question, and each method's values over the words read (Why)
effects.py       what the token or the translation loses without heads or words
parts.py         the exact split of the token's logit
faithfulness.py  how far each method's ranking of words holds
evidence.py      what kind of number each result is; results as JSON-ready values
"""
