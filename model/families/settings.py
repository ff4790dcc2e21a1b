"""What a folder's JSON files say of a network and its decoding, field by field, each checked."""

from __future__ import annotations

from dataclasses import dataclass

from attention_atlas.model.config import LIMITS, Activation, ModelConfig
from attention_atlas.model.families.folder import CONFIG, GENERATION, TOKENIZER_CONFIG, Folder
from attention_atlas.model.trace import is_integer

# The names that the families' configs use.
ACTIVATIONS = {
    "relu": Activation.RELU,
    "swish": Activation.SILU,
    "silu": Activation.SILU,
    "gelu": Activation.GELU,
    "gelu_new": Activation.GELU_TANH,
}


@dataclass(frozen=True)
class Settings:
    """The objects of config.json, generation_config.json and tokenizer_config.json."""

    config: dict
    generation: dict
    tokenizer: dict
    path: str

    @classmethod
    def read(cls, folder: Folder) -> Settings:
        """ValueError naming the file that cannot be read."""
        return cls(folder.json(CONFIG), folder.json(GENERATION), folder.json(TOKENIZER_CONFIG), str(folder.path))

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number of config.json. ValueError if it is none, or not there and without a default."""
        value = self.config.get(name, default)
        if value is None:
            raise ValueError(f"{self.path}/{CONFIG} lacks {name!r}")
        if not is_integer(value):
            raise ValueError(f"{self.path}/{CONFIG}: {name} must be a whole number, found {value!r}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """A truth value of config.json."""
        value = self.config.get(name, default)
        if not isinstance(value, bool):
            raise ValueError(f"{self.path}/{CONFIG}: {name} must be true or false, found {value!r}")
        return value

    def decoders_own(self, name: str) -> int | None:
        """A number of the decoder, None where it is the encoder's."""
        encoder, decoder = self.whole(f"encoder_{name}"), self.whole(f"decoder_{name}")
        return None if encoder == decoder else decoder

    def activation(self, default: str) -> Activation:
        name = self.config.get("activation_function", default)
        if not isinstance(name, str) or name not in ACTIVATIONS:
            raise ValueError(
                f"{self.path}: activation_function {name!r} is not supported, only {', '.join(ACTIVATIONS)}"
            )
        return ACTIVATIONS[name]

    def decoding(self, name: str) -> object:
        """A setting of decoding: generation_config.json's, else config.json's, where it stood before 2023."""
        found = self.generation.get(name)
        return self.config.get(name) if found is None else found

    def token(self, name: str, default: int | None = None) -> int | None:
        """A token id among the settings of decoding, or of the network. ValueError if it is none."""
        found = self.decoding(name)
        if isinstance(found, list) and len(found) == 1:
            found = found[0]
        found = default if found is None else found
        if found is not None and not is_integer(found, 0):
            raise ValueError(f"{self.path}: {name} must be the id of one token, found {found!r}")
        return found

    def banned(self) -> set[int]:
        """The single tokens that decoding may not choose (bad_words_ids, suppress_tokens). A banned sequence of several
        tokens is no property of a token, and is left out."""
        words, tokens = self.decoding("bad_words_ids") or [], self.decoding("suppress_tokens") or []
        if not isinstance(words, list) or not isinstance(tokens, list):
            raise ValueError(f"{self.path}: bad_words_ids and suppress_tokens must be lists")
        single = [word[0] for word in words if isinstance(word, list) and len(word) == 1]
        return {i for i in (*single, *tokens) if is_integer(i, 0)}

    def network(self, *, activation: str, scale_embedding: bool, pad: int = 1) -> ModelConfig:
        """The shape, as all families of fairseq's kind describe it; with these where config.json leaves them out.
        ValueError for what cannot be built."""
        return ModelConfig(
            vocabulary_size=self.whole("vocab_size"),
            d_model=self.whole("d_model"),
            num_heads=self.whole("encoder_attention_heads"),
            decoder_num_heads=self.decoders_own("attention_heads"),
            num_encoder_layers=self.whole("encoder_layers"),
            num_decoder_layers=self.whole("decoder_layers"),
            d_feedforward=self.whole("encoder_ffn_dim"),
            decoder_d_feedforward=self.decoders_own("ffn_dim"),
            max_length=min(self.whole("max_position_embeddings", 1024), LIMITS["max_length"]),
            pad_id=self.whole("pad_token_id", pad),
            activation=self.activation(activation),
            scale_embedding=self.flag("scale_embedding", scale_embedding),
        )
