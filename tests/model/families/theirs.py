"""Tiny random models and tokenizer files of each family, as `transformers` writes them, and edits of their folders."""

from __future__ import annotations

import io
import json
import re
from functools import cache
from pathlib import Path

import sentencepiece
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedModel

from attention_atlas.model.families.vocabulary import language_codes
from attention_atlas.model.nets.masks import pad
from tests.conftest import SENTENCES

PARLAI_IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
FAIRSEQ_IDS = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
M2M100, MBART, MBART50, NLLB = map(language_codes, ("m2m100", "mbart", "mbart50", "nllb"))
WEIGHTS, PICKLE = "model.safetensors", "pytorch_model.bin"
SIZES = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96,
    "max_position_embeddings": 40,
}
PAD_SEPARATE = 5  # one id of <pad> has to serve vocabularies of both sizes


@cache
def splitter(size: int = 90, algorithm: str = "unigram", symbols: str = "", **ids: int) -> bytes:
    """Return a SentencePiece model. symbols: pieces that are never split; ids: by default those of fairseq's models."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(SENTENCES * 5),
        model_writer=written,
        model_type=algorithm,
        vocab_size=size,
        user_defined_symbols=symbols.split(),
        minloglevel=2,
        character_coverage=1.0,
        **(ids or {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": -1}),
    )
    return written.getvalue()


def t5_splitter(symbols: str = "") -> bytes:
    return splitter(symbols=symbols, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)


def pieces_of(model: bytes) -> list[str]:
    """Return the pieces of a SentencePiece model without its three symbols."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.IdToPiece(i) for i in range(3, processor.GetPieceSize())]


def write(path: Path, value: object) -> None:
    """Write bytes as they are, and another value as JSON. The folder is made if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode())


def damage(folder: Path, name: str, content: bytes | None) -> None:
    """Replace the content of a file; None deletes it."""
    (folder / name).unlink() if content is None else (folder / name).write_bytes(content)


def edit(folder: Path, **changes) -> None:
    """Change fields of a folder's config.json."""
    config = json.loads((folder / "config.json").read_text())
    write(folder / "config.json", config | changes)


def save_shards(state: dict[str, torch.Tensor], folder: Path) -> None:
    """Save a state dict as two pickles with an index."""
    files = {name: f"pytorch_model-{number % 2 + 1}.bin" for number, name in enumerate(sorted(state))}
    for file in set(files.values()):
        torch.save({name: state[name] for name in state if files[name] == file}, folder / file)
    write(folder / f"{PICKLE}.index.json", {"weight_map": files})


def marian_files(folder: Path, *, symbols: tuple[str, ...] = (), separate: bool = False) -> tuple[int, int]:
    """Write source.spm, target.spm and vocab.json in opus-mt's order. Returns the sizes of the vocabularies.

    separate: the target has its own pieces, fewer than the source's.
    """
    source, target = splitter(), splitter(80 if separate else 70, "bpe")
    write(folder / "source.spm", source)
    write(folder / "target.spm", target)
    of_source, of_target = pieces_of(source), pieces_of(target)
    # Two pieces that SentencePiece makes and the table does not have, as the real ones lack some.
    joint = [p for p in dict.fromkeys(of_source if separate else of_source + of_target) if p not in ("▁sand", "ch")]
    sizes = []
    for name, pieces in (("vocab.json", joint), ("target_vocab.json", of_target))[: 1 + separate]:
        names = ["</s>", "<unk>", *pieces, *symbols]
        names.insert(PAD_SEPARATE if separate else len(names), "<pad>")
        write(folder / name, {piece: i for i, piece in enumerate(names)})
        sizes.append(len(names))
    write(
        folder / "tokenizer_config.json",
        {"source_lang": "de", "target_lang": "en", "separate_vocabs": separate, "tokenizer_class": "MarianTokenizer"},
    )
    return sizes[0], sizes[-1]


def build(network: type[PreTrainedModel], size: int, changes: dict, **defaults) -> PreTrainedModel:
    """Return a model of fairseq's kind, with a generation config that has the ids of its config."""
    fields = {**SIZES, "vocab_size": size, "forced_eos_token_id": None, **defaults, **changes}
    model = redrawn(network(network.config_class(**fields)))
    known = ("decoder_start_token_id", "pad_token_id", "eos_token_id", "bos_token_id", "forced_bos_token_id")
    model.generation_config = transformers.GenerationConfig(**{name: fields[name] for name in known if name in fields})
    return model


def marian(folder: Path, *, symbols: tuple[str, ...] = (), separate: bool = False, **changes) -> PreTrainedModel:
    """Return a Marian model, and write its tokenizer's files, but not the model."""
    source, target = marian_files(folder, symbols=symbols, separate=separate)
    pad_id = PAD_SEPARATE if separate else source - 1
    defaults = {"decoder_vocab_size": target, "activation_function": "swish", "scale_embedding": True}
    defaults |= {"share_encoder_decoder_embeddings": not separate}
    ids = {"pad_token_id": pad_id, "eos_token_id": 0, "decoder_start_token_id": pad_id}
    model = build(transformers.MarianMTModel, source, changes, **defaults, **ids)
    model.generation_config.bad_words_ids = [[pad_id]]
    return model


def fairseq_sizes(codes: tuple[str, ...]) -> tuple[int, int]:
    """Return the vocabulary size of mBART-50 and NLLB, and the id of the first language."""
    first = 4 + len(pieces_of(splitter()))
    return first + len(codes) + 1, first


def mbart(folder: Path, **changes) -> PreTrainedModel:
    """Return an mBART-50, or an mBART cc25 with the codes of 25 languages and a decoder_start_token_id."""
    write(folder / "sentencepiece.bpe.model", splitter())
    size, _ = fairseq_sizes(MBART if changes.get("decoder_start_token_id", 2) > 2 else MBART50)
    defaults = {"activation_function": "relu", "scale_embedding": True, **FAIRSEQ_IDS}
    return build(transformers.MBartForConditionalGeneration, size, changes, **defaults)


def nllb(folder: Path, **changes) -> PreTrainedModel:
    write(folder / "sentencepiece.bpe.model", splitter(90, "bpe"))
    return _m2m100(fairseq_sizes(NLLB)[0], changes)


def m2m100(folder: Path, **changes) -> PreTrainedModel:
    write(folder / "sentencepiece.bpe.model", splitter())
    pieces = [piece for piece in pieces_of(splitter()) if piece not in ("▁sand", "ch")]
    write(folder / "vocab.json", {p: i for i, p in enumerate(["<s>", "<pad>", "</s>", "<unk>", *pieces])})
    return _m2m100(4 + len(pieces) + len(M2M100), changes)


def _m2m100(size: int, changes: dict) -> PreTrainedModel:
    defaults = {"scale_embedding": True, **FAIRSEQ_IDS}
    return build(transformers.M2M100ForConditionalGeneration, size, changes, **defaults)


SENTINELS = 4
PREFIXES = {
    "translation_en_to_de": {"prefix": "translate English to German: "},
    "summarization": {"prefix": "summarize: "},
}


def t5(folder: Path, *, kind: str = "T5", own_head: bool = False, symbols: str = "", **changes) -> PreTrainedModel:
    """Return a T5, MT5 or UMT5. own_head: an untied output matrix, as all but the first T5 have."""
    size = 3 + 256 + SENTINELS if changes.get("tokenizer_class") else 90 + SENTINELS
    if not changes.get("tokenizer_class"):
        write(folder / "spiece.model", t5_splitter(symbols=symbols))
    tokenizer_class = changes.pop("tokenizer_class", "T5Tokenizer")
    write(folder / "tokenizer_config.json", {"tokenizer_class": tokenizer_class, "extra_ids": SENTINELS})
    fields = {
        "vocab_size": size,
        "d_model": 64,
        "d_kv": 24,
        "d_ff": 96,
        "num_layers": 2,
        "num_decoder_layers": 3,
        "num_heads": 4,
        "decoder_start_token_id": 0,
        "task_specific_params": PREFIXES,
        "tie_word_embeddings": not own_head,
        **changes,
    }
    network = getattr(transformers, f"{kind}ForConditionalGeneration")
    model = network(network.config_class(**fields))
    if own_head:  # the constructor makes it the embedding, whatever the config says
        model.lm_head = torch.nn.Linear(model.config.d_model, size, bias=False)
    redrawn(model)
    model.generation_config = transformers.GenerationConfig(decoder_start_token_id=0, pad_token_id=0, eos_token_id=1)
    return model


BPE_SPECIALS = {"bart": ("<s>", "<pad>", "</s>", "<unk>"), "blenderbot": ("<pad>", "<s>", "</s>", "<unk>")}


@cache
def merged_bytes(kind: str) -> tuple[dict[str, int], list[list[str]]]:
    """Return ids and merges of a small vocabulary of merged bytes."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=kind == "blenderbot")
    trainer = trainers.BpeTrainer(
        vocab_size=380,
        special_tokens=list(BPE_SPECIALS[kind]),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(SENTENCES * 5, trainer)
    model = json.loads(made.to_str())["model"]
    return {**model["vocab"], "<mask>": len(model["vocab"])}, model["merges"]


def merges_files(folder: Path, ids: dict[str, int], merges: list[list[str]]) -> int:
    """Write vocab.json and merges.txt. Returns the number of pieces."""
    write(folder / "vocab.json", ids)
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    write(folder / "merges.txt", ("\n".join(lines) + "\n").encode())
    return len(ids)


def bart(folder: Path, **changes) -> PreTrainedModel:
    size, ids = merges_files(folder, *merged_bytes("bart")), {**FAIRSEQ_IDS, "bos_token_id": 0}
    return build(transformers.BartForConditionalGeneration, size, changes, **ids)


def blenderbot(folder: Path, **changes) -> PreTrainedModel:
    size = merges_files(folder, *merged_bytes("blenderbot"))
    write(folder / "tokenizer_config.json", {"tokenizer_class": "BlenderbotTokenizer", "add_prefix_space": True})
    return build(transformers.BlenderbotForConditionalGeneration, size, changes, **PARLAI_IDS)


@cache
def merged_letters() -> tuple[dict[str, int], list[list[str]]]:
    """Return ids and merges of a small vocabulary of letters like ParlAI's: "@@" ends a piece inside a word."""
    made = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=140, end_of_word_suffix="</w>", show_progress=False)
    made.train_from_iterator([sentence.lower() for sentence in SENTENCES * 5], trainer)
    model = json.loads(made.to_str())["model"]
    pieces = [p.removesuffix("</w>") if p.endswith("</w>") else f"{p}@@" for p in sorted(model["vocab"])]
    names = ["__null__", "__start__", "__end__", "__unk__", *dict.fromkeys(pieces)]
    return {piece: i for i, piece in enumerate(names)}, model["merges"]


def blenderbot_small(folder: Path, **changes) -> PreTrainedModel:
    size = merges_files(folder, *merged_letters())
    write(folder / "tokenizer_config.json", {"tokenizer_class": "BlenderbotSmallTokenizer"})
    return build(transformers.BlenderbotSmallForConditionalGeneration, size, changes, **PARLAI_IDS)


def pegasus(folder: Path, **changes) -> PreTrainedModel:
    write(folder / "spiece.model", t5_splitter())
    write(folder / "tokenizer_config.json", {"tokenizer_class": "PegasusTokenizer"})
    ids = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    return build(transformers.PegasusForConditionalGeneration, 90 + 103, changes, **ids)


def generate(model: PreTrainedModel, sources: list[list[int]], pad_id: int, limit: int, **options) -> list[list[int]]:
    """Return the ids that `transformers` decodes, with the start symbol and padding."""
    source = pad(sources, pad_id)
    options |= {"attention_mask": (source != pad_id).long(), "do_sample": False, "max_new_tokens": limit}
    options |= {"use_cache": "t5" not in model.config.model_type}  # T5's has room for its encoder's number of layers
    return model.generate(input_ids=source, **options).tolist()


def redrawn(model: PreTrainedModel, seed: int = 5) -> PreTrainedModel:
    """Redraw all weights, biases and norms: values that are 0 or 1 hide mistakes."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if re.search("embed_positions", name) and not parameter.requires_grad:
                continue  # sines
            noise = torch.randn(parameter.shape, generator=generator)
            gain = "norm" in name and name.endswith("weight")
            spread = 1.0 if "relative_attention_bias" in name else 0.07 if name.endswith(".q.weight") else 0.15
            parameter.copy_(1 + 0.3 * noise if gain else spread * noise)
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias":
                buffer.copy_(torch.randn(buffer.shape, generator=generator))
    model.set_attn_implementation("eager")
    return model.eval()


def in_their_own_precision(model: PreTrainedModel, monkeypatch) -> None:
    """Let T5's norms compute in the precision of their input: `transformers` computes them in float32."""
    for module in model.modules():
        if type(module).__name__.endswith("T5LayerNorm"):
            monkeypatch.setattr(
                type(module),
                "forward",
                lambda self, x: self.weight * x * (x.square().mean(-1, keepdim=True) + self.variance_epsilon).rsqrt(),
            )


FAMILIES = {
    "marian": marian,
    "m2m100": m2m100,
    "nllb": nllb,
    "mbart": mbart,
    "t5": t5,
    "bart": bart,
    "pegasus": pegasus,
    "blenderbot": blenderbot,
    "blenderbot-small": blenderbot_small,
}


def nllb_tokenizer_json(folder: Path) -> None:
    """Write tokenizer.json as in NLLB's repositories, with the languages and <mask> after the pieces.

    `transformers` writes no languages from the SentencePiece model alone.
    """
    transformers.NllbTokenizer.from_pretrained(folder).save_pretrained(folder / "made")
    tokenizer = json.loads((folder / "made" / "tokenizer.json").read_text(encoding="utf-8"))
    _, first = fairseq_sizes(NLLB)
    symbols = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer["added_tokens"] = [token for token in tokenizer["added_tokens"] if token["id"] < first] + [
        {"id": first + at, "content": code, **symbols} for at, code in enumerate((*NLLB, "<mask>"))
    ]
    tokenizer["model"]["vocab"] = {piece: i for piece, i in tokenizer["model"]["vocab"].items() if i < first}
    write(folder / "tokenizer.json", tokenizer)
    write(folder / "tokenizer_config.json", {"tokenizer_class": "NllbTokenizer"})
