"""BLEU by the protocol that Multi30k results are published with (Wu et al., ACL 2021, arXiv 2105.14462).

The text goes through what Multi30k's task1-tokenize.sh does to its raw files, in its order: lower case, then Moses'
normalize-punctuation, then Moses' tokenizer without -a (a hyphen inside a word stays) and with its XML escapes.
References of test_2016_flickr come out as the published tokenized files do: 12,103 German tokens, the reference
length in the authors' own log. Such scores lie above sacreBLEU's of the same translations, and are comparable with
each other alone.
"""

from __future__ import annotations

from collections.abc import Sequence

WU2021 = "wu2021"


def prepared(texts: Sequence[str], language: str) -> list[str]:
    """Lower-cased, normalised, tokenized; tokens joined by spaces. language: such as "de"."""
    from sacremoses import MosesPunctNormalizer, MosesTokenizer  # of the extra "train"

    normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)
    return [tokenizer.tokenize(normalizer.normalize(text.lower()), return_str=True) for text in texts]


def wu2021_bleu(translations: Sequence[str], references: Sequence[str], language: str) -> dict:
    """Corpus BLEU on prepared tokens, in percent, and its signature. Both sides are prepared alike."""
    import sacrebleu  # of the extra "train"

    # The text is in lower case already; lowercase=True puts that into the signature. force: it is meant to be tokens.
    metric = sacrebleu.BLEU(tokenize="none", lowercase=True, force=True)
    score = metric.corpus_score(prepared(translations, language), [prepared(references, language)])
    return {"bleu": round(score.score, 2), "bleu_signature": str(metric.get_signature())}
