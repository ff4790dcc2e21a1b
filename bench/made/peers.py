"""Other implementations at our model's sizes: transformers' Marian, torch.nn.Transformer with the tutorial's greedy
loop, and CTranslate2 with our weights. requirements-bench.txt installs transformers and CTranslate2."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.positions import sinusoidal_encoding
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.text.tokenizer import BEGIN, END, UNKNOWN, Tokenizer


class Tutorial(nn.Module):
    """torch.nn.Transformer as in PyTorch's translation tutorial, with random weights.

    Source, target and output share one embedding as in our model, so that the numbers of parameters agree.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # norms first exclude its nested tensors
            self.transformer = nn.Transformer(
                config.d_model,
                config.num_heads,
                config.num_encoder_layers,
                config.num_decoder_layers,
                config.d_feedforward,
                config.dropout,
                batch_first=True,
                norm_first=config.norm_first,
            )
        self.embedding = nn.Embedding(config.vocabulary_size, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        indices = torch.arange(config.max_length)
        self.register_buffer("positions", sinusoidal_encoding(indices, config.d_model, base=config.position_base))

    def embed(self, ids: Tensor) -> Tensor:
        """Return embeddings [batch, length, d_model] of ids [batch, length]."""
        scaled = self.embedding(ids) * math.sqrt(self.config.d_model)
        return self.dropout(scaled + self.positions[: ids.shape[1]])

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        """Return logits [batch, target, vocabulary] for source [batch, source] and inputs [batch, target]."""
        padding = source == self.config.pad_id  # torch's masks are True where a position may NOT attend
        causal = nn.Transformer.generate_square_subsequent_mask(inputs.shape[1], device=inputs.device)
        hidden = self.transformer(
            self.embed(source),
            self.embed(inputs),
            tgt_mask=causal,
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return nn.functional.linear(hidden, self.embedding.weight)

    def greedy(self, source_ids: Sequence[int], *, length: int, begin_id: int) -> list[int]:
        """Decode `length` tokens like the tutorial's greedy_decode, without attention maps.

        The encoder runs once, the decoder over the whole prefix at each step. Like the tutorial, it does not switch
        gradients off; the caller may.
        """
        device = self.embedding.weight.device
        memory = self.transformer.encoder(self.embed(torch.tensor([source_ids], device=device)))
        prefix = torch.tensor([[begin_id]], device=device)
        for _ in range(length):
            causal = nn.Transformer.generate_square_subsequent_mask(prefix.shape[1], device=device)
            hidden = self.transformer.decoder(self.embed(prefix), memory, tgt_mask=causal)
            best = nn.functional.linear(hidden[:, -1], self.embedding.weight).argmax(-1)
            prefix = torch.cat((prefix, torch.tensor([[best.item()]], device=device)), dim=1)
        return prefix[0, 1:].tolist()


class Marian:
    """transformers.MarianMTModel with random weights. maps: return every attention map, by the slower kernel."""

    def __init__(self, config: ModelConfig, tokenizer: Tokenizer, device: torch.device, *, maps: bool) -> None:
        self.maps, self.device, self.pad_id = maps, device, tokenizer.pad_id
        self.model = random_marian(
            config,
            maps=maps,
            max_position_embeddings=config.max_length + 1,
            activation_function="relu",
            pad_token_id=tokenizer.pad_id,
            bos_token_id=tokenizer.begin_id,
            eos_token_id=tokenizer.end_id,
            decoder_start_token_id=tokenizer.begin_id,
        ).to(device)

    def __call__(self, source: Tensor, length: int) -> object:
        """Decode `length` greedy tokens for each source of [batch, source], which is padded on the right."""
        source = source.to(self.device)
        return generate(self.model, source, (source != self.pad_id).long(), length, maps=self.maps)


@torch.inference_mode()
def generate(model, source: Tensor, mask: Tensor, length: int, *, maps: bool) -> object:
    """Decode `length` greedy tokens by a model of transformers for each source of [batch, source]."""
    return model.generate(
        source,
        attention_mask=mask,
        num_beams=1,
        do_sample=False,
        min_new_tokens=length,
        max_new_tokens=length,
        return_dict_in_generate=True,
        output_attentions=maps,
    )


def random_marian(config: ModelConfig, *, maps: bool, **options):
    """Return a transformers.MarianMTModel of these sizes. maps: with the kernel that returns attention maps."""
    from transformers import MarianConfig, MarianMTModel

    sizes = MarianConfig(
        vocab_size=config.vocabulary_size,
        d_model=config.d_model,
        encoder_layers=config.num_encoder_layers,
        decoder_layers=config.num_decoder_layers,
        encoder_attention_heads=config.num_heads,
        decoder_attention_heads=config.num_heads,
        encoder_ffn_dim=config.d_feedforward,
        decoder_ffn_dim=config.d_feedforward,
        scale_embedding=True,
        forced_eos_token_id=None,
        **options,
    )
    sizes._attn_implementation = "eager" if maps else "sdpa"
    return MarianMTModel(sizes).eval()


class CTranslate2:
    """CTranslate2 with our weights in float32, which decodes without attention maps."""

    def __init__(
        self, model: Transformer, tokenizer: Tokenizer, folder: Path, *, threads: int, device: str = "cpu"
    ) -> None:
        """Convert the model into an empty folder and open it."""
        import ctranslate2

        write_ctranslate2(model, tokenizer, folder)
        self.pieces, self.ids = tokenizer.pieces, {piece: i for i, piece in enumerate(tokenizer.pieces)}
        before = torch.get_num_threads()
        self.translator = ctranslate2.Translator(
            str(folder),
            device=device,
            compute_type="float32",
            inter_threads=threads if device == "cpu" else 1,
            intra_threads=1,
        )  # one batch for each thread is its fastest setting
        torch.set_num_threads(before)  # CTranslate2 changed OpenMP's number, which torch reads

    def __call__(self, sources: Sequence[list[int]], *, batch_size: int, longest: int) -> list[list[int]]:
        """Translate source ids to target ids, with `</s>` unless `longest` was reached. It sorts by length itself."""
        translations = self.translator.translate_batch(
            [[self.pieces[i] for i in ids] for ids in sources],
            max_batch_size=batch_size,
            beam_size=1,
            max_decoding_length=longest,
            return_end_token=True,
        )
        return [[self.ids[piece] for piece in result.hypotheses[0]] for result in translations]


def write_ctranslate2(model: Transformer, tokenizer: Tokenizer, folder: Path) -> None:
    """Write our weights in CTranslate2's format. Its layers compute the same, so nothing is approximated."""
    from ctranslate2.specs.transformer_spec import TransformerSpec

    config = model.config
    spec = TransformerSpec.from_config(
        (config.num_encoder_layers, config.num_decoder_layers), config.num_heads, pre_norm=config.norm_first
    )
    for vocabulary in (spec.register_source_vocabulary, spec.register_target_vocabulary):
        vocabulary(list(tokenizer.pieces))
    spec.config.bos_token = spec.config.decoder_start_token = BEGIN
    spec.config.eos_token, spec.config.unk_token = END, UNKNOWN
    spec.config.layer_norm_epsilon = model.encoder.layers[0].sublayers[0].norm.eps
    embedding = _array(model.embedding.weight)
    spec.encoder.embeddings[0].weight = spec.decoder.embeddings.weight = spec.decoder.projection.weight = embedding
    for stack, theirs in ((model.encoder, spec.encoder), (model.decoder, spec.decoder)):
        theirs.position_encodings.encodings = _array(model.target_positions.table)
        if config.norm_first:
            _norm(theirs.layer_norm, stack.norm)
        for layer, target in zip(stack.layers, theirs.layer):
            around_self, *around_cross, around_feed_forward = (sublayer.norm for sublayer in layer.sublayers)
            _norm(target.self_attention.layer_norm, around_self)
            _linear(target.self_attention.linear[0], layer.self_attention.projection)
            _linear(target.self_attention.linear[1], layer.self_attention.output)
            if layer.cross_attention is not None:
                _norm(target.attention.layer_norm, around_cross[0])
                _linear(target.attention.linear[0], layer.cross_attention.projection, stop=config.d_model)
                _linear(target.attention.linear[1], layer.cross_attention.projection, start=config.d_model)
                _linear(target.attention.linear[2], layer.cross_attention.output)
            _norm(target.ffn.layer_norm, around_feed_forward)
            _linear(target.ffn.linear_0, layer.feed_forward.expand)
            _linear(target.ffn.linear_1, layer.feed_forward.contract)
    spec.validate()
    spec.optimize(quantization="float32")
    spec.save(str(folder))


def _array(tensor: Tensor):
    return tensor.detach().float().cpu().contiguous().numpy()


def _linear(theirs, ours: nn.Linear, *, start: int = 0, stop: int | None = None) -> None:
    theirs.weight, theirs.bias = _array(ours.weight[start:stop]), _array(ours.bias[start:stop])


def _norm(theirs, ours: nn.LayerNorm) -> None:
    theirs.gamma, theirs.beta = _array(ours.weight), _array(ours.bias)
