"""Score a checkpoint on held-out corpora: attention-atlas evaluate --help

Choose settings on dev and report on test: nothing may be chosen by the score of a test set.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

import torch

from attention_atlas.model import checkpoint
from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.program import CommandLine, check_writable, refuse_existing, require, run_program
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.train import chosen_model
from attention_atlas.model.training import corpora
from attention_atlas.model.training.sources.readers import Corpus, read_aligned
from attention_atlas.model.translator import Translator

KEY = ("data", "split", "direction", "beam", "length_penalty", "protocol")  # None: plain sacreBLEU
WU2021 = "wu2021"  # the protocol of wu2021_bleu()


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    if not (args.out or args.dry_run or args.limit):
        check_writable(args.checkpoint)
    require("sacrebleu", *(["sacremoses"] if args.protocol else []))
    translator = Translator.load(args.checkpoint, args.device)
    directions = args.directions or list(translator.directions)
    for direction in directions:
        translator.check_direction(direction)
    corpora = [(split, direction, corpus) for split, direction, corpus in held_out(args, directions) if corpus.pairs]
    if not corpora:
        raise ValueError("there is nothing to score: no pair in the corpora that were named")
    settings = [
        (corpus, dict(zip(KEY, (corpus.name, split, direction, beam, args.length_penalty if beam > 1 else 0.0))))
        for split, direction, corpus in corpora
        for beam in args.beam
    ]
    metrics = {} if args.out else dict(translator.metrics)
    if args.out:
        refuse_existing(args.out, args.replace)
    elif not (args.replace or args.dry_run or args.limit):
        check_new(translator, [{**key, "protocol": name} for _, key in settings for name in (None, *args.protocol)])
    if metrics.get("digest", translator.digest) != translator.digest:
        metrics = {}  # those of other weights
    metrics["digest"] = translator.digest
    metrics["parameters"] = sum(p.numel() for p in translator.model.parameters())
    for corpus, key in settings:
        direction, beam, penalty = (key[name] for name in ("direction", "beam", "length_penalty"))
        pairs = corpus.oriented(direction)[: args.limit]
        for score in scores(translator, pairs, direction, beam=beam, length_penalty=penalty, protocols=args.protocol):
            print(json.dumps({**key, **score}), flush=True)
            metrics["scores"] = merge_score(metrics.get("scores", []), {**key, **score})
    if args.precision:
        metrics["precision"] = precision_report(translator, args.precision, corpora, args.limit)
        print(json.dumps(metrics["precision"], indent=2))
    if args.out or (args.limit is None and not args.dry_run):
        checkpoint.write_json(args.out or args.checkpoint / checkpoint.METRICS, metrics)


def check_new(translator: Translator, keys: list[dict]) -> None:
    """Raise ValueError if metrics.json has one of these scores, or scores of other weights."""
    old = translator.metrics
    if old.get("digest", translator.digest) != translator.digest:
        raise ValueError(
            "these are other weights than those of metrics.json: --replace drops its scores, --out names another file"
        )
    for key in keys:
        if len(merge_score(old.get("scores", []), key)) == len(old.get("scores", [])):
            raise ValueError(
                f"{translator.name} has this score already: {', '.join(f'{k} {v}' for k, v in key.items() if v)}. "
                "--replace writes over it, --out names another file, --dry-run writes nothing"
            )


def scores(
    translator: Translator,
    pairs: list[tuple[str, str]],
    direction: str,
    *,
    beam: int = 1,
    length_penalty: float = 0.0,
    protocols: Sequence[str] = (),
) -> list[dict]:
    """Translate and score (source, reference) pairs.

    Returns sacreBLEU (13a, cased) and chrF (Post 2018; Popovic 2015) with their signatures, then BLEU of the same
    translations by each of the protocols.
    """
    import sacrebleu  # of the extra "train"

    started = time.perf_counter()
    translations = translator.translate_batch(
        [source for source, _ in pairs], direction, beam=beam, length_penalty=length_penalty
    )
    seconds, references = time.perf_counter() - started, [reference for _, reference in pairs]
    work = {"sentences": len(pairs), "seconds": round(seconds, 1)}
    plain = dict(work)
    for name, metric in (("bleu", sacrebleu.BLEU()), ("chrf", sacrebleu.CHRF())):
        plain[name] = round(metric.corpus_score(translations, [references]).score, 2)
        plain[f"{name}_signature"] = str(metric.get_signature())
    language = parse_direction(direction)[1]
    return [
        plain,
        *({"protocol": protocol, **work, **wu2021_bleu(translations, references, language)} for protocol in protocols),
    ]


def wu2021_bleu(translations: Sequence[str], references: Sequence[str], language: str) -> dict:
    """Return corpus BLEU in percent and its signature by the protocol of Wu et al. (ACL 2021, arXiv 2105.14462).

    Multi30k results are published by this protocol.

    Both sides are tokenized by moses_tokens(). References of test_2016_flickr then have 12,103 German tokens, the
    reference length in the authors' own log. Such scores lie above sacreBLEU's of the same translations and are
    comparable with each other alone.
    """
    import sacrebleu  # of the extra "train"

    # lowercase=True records in the signature that the text is in lower case; force: the text is tokens on purpose.
    metric = sacrebleu.BLEU(tokenize="none", lowercase=True, force=True)
    score = metric.corpus_score(moses_tokens(translations, language), [moses_tokens(references, language)])
    return {"bleu": round(score.score, 2), "bleu_signature": str(metric.get_signature())}


def moses_tokens(texts: Sequence[str], language: str) -> list[str]:
    """Return each text as its Moses tokens joined by spaces, as Multi30k's task1-tokenize.sh makes them.

    Its steps are lower case, Moses' normalize-punctuation, then Moses' tokenizer without -a (a hyphen inside a word
    stays) and with XML escapes. language: such as "de".
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer  # of the extra "train"

    normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)
    return [tokenizer.tokenize(normalizer.normalize(text.lower()), return_str=True) for text in texts]


def merge_score(old: list[dict], new: dict) -> list[dict]:
    """Return the list with `new` in place of the score of the same KEY, or appended."""
    same = [all(score.get(field) == new.get(field) for field in KEY) for score in old]
    return [new if hit else score for score, hit in zip(old, same)] + ([] if any(same) else [new])


def held_out(args: argparse.Namespace, directions: list[str]) -> list[tuple[str, str, Corpus]]:
    """Return (split, direction, corpus) of everything to score."""
    if args.pair:
        return [
            ("file", direction, read_aligned(source, target, parse_direction(direction)))
            for direction, source, target in args.pair
        ]
    options = argparse.Namespace(data=args.data, corpora=args.corpora, pair=[], dev_pair=[], test_pair=[], synthetic=[])
    return [
        (split, direction, getattr(splits, split))
        for splits in corpora.find(options, directions)
        for direction in directions
        for split in args.splits
        if getattr(splits, split).oriented(direction)
    ]


def precision_report(translator: Translator, run: Path, corpora: list, limit: int | None) -> dict:
    """Count the greedy dev translations that half precision changes.

    Compares this checkpoint's float16 weights with the float32 weights of its run, and on CUDA also computing in half
    precision with float32.
    """
    texts = [
        (direction, source)
        for split, direction, corpus in corpora
        if split == "dev"
        for source, _ in corpus.oriented(direction)[:limit]
    ]
    if not texts:
        raise ValueError("half precision is judged on dev sentences: add dev to --splits")
    model, tokenizer, config = chosen_model(run)
    if model.config != translator.config or tokenizer.pieces != translator.tokenizer.pieces:
        raise ValueError(f"{run} is not the run that {translator.name} came from: sizes or tokenizer differ")
    on_disk = translator.model.state_dict()
    for name, weight in model.state_dict().items():
        if not torch.equal(weight.half().float(), on_disk[name].half().float().cpu()):
            raise ValueError(f"{run} moved on since {translator.name} was written ({name} differs): export again")
    original = Translator(Checkpoint("", model, tokenizer, config.directions, {}, ""), translator.device)
    outputs = {"float32 weights": _translate_all(original, texts), "float16 weights": _translate_all(translator, texts)}
    computing = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if translator.device.type == "cpu":
        computing = {}  # half precision is many times slower on a CPU, and never used there
    for name, dtype in computing.items():
        half = Checkpoint("", deepcopy(translator.model).to(dtype), tokenizer, translator.directions, {}, "")
        outputs[name] = _translate_all(Translator(half, translator.device), texts)
    baseline = outputs["float16 weights"]
    return {
        "sentences": len(texts),
        "device": str(translator.device),
        "changed_by_float16_on_disk": _count_changes(outputs["float32 weights"], baseline),
        **{f"changed_by_{name}_computing": _count_changes(baseline, outputs[name]) for name in computing},
    }


def _translate_all(translator: Translator, texts: list[tuple[str, str]]) -> list[list[int]]:
    return translator.generate([translator.encode(text, direction) for direction, text in texts])


def _count_changes(first: list[list[int]], second: list[list[int]]) -> int:
    return sum(a != b for a, b in zip(first, second))


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("attention-atlas evaluate", __doc__)
    add = parser.add_argument
    parser.add_checkpoint()
    add("--data", type=Path, default=Path("data"), help="folder with multi30k/ and tatoeba/, as for training")
    add(
        "--pair",
        nargs=3,
        action="append",
        default=[],
        metavar=("DIRECTION", "SOURCE", "REFERENCE"),
        help="score these line-aligned files instead, such as de-en test.de test.en",
    )
    add("--corpora", nargs="+", help="the corpora of the folder to score, such as multi30k subtitles")
    add("--splits", nargs="+", choices=("dev", "test"), default=["dev", "test"])
    add("--directions", nargs="+", help="default: all of the checkpoint's")
    add("--beam", type=int, nargs="+", default=[1], help="widths to score, such as 1 5; default 1, greedy")
    add("--length-penalty", type=float, default=0.0, help="of the beam search, default 0")
    add(
        "--protocol",
        nargs="+",
        choices=(WU2021,),
        default=[],
        help="also score by a published protocol; wu2021: lowercase, Moses normalised and tokenized, BLEU on tokens",
    )
    add(
        "--precision",
        type=Path,
        metavar="RUN",
        help="also count the dev outputs that half precision changes, against the float32 weights of this run's folder",
    )
    parser.add_output(f"into {checkpoint.METRICS}", trial=True)
    add("--dry-run", action="store_true", help="write nothing")
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_program(main)
