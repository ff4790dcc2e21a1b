"""Read the settings of a network and its decoding from a folder's JSON files, each field checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from attention_atlas.model.config import Activation, ModelConfig
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
        """Read the three files. Raises ValueError naming one that cannot be read."""
        return cls(folder.json(CONFIG), folder.json(GENERATION), folder.json(TOKENIZER_CONFIG), str(folder.path))

    def integer(self, name: str, default: int | None = None) -> int:
        """Return a whole number of config.json. Raises ValueError if it is none, or missing without a default."""
        value = self.config.get(name, default)
        if value is None:
            raise ValueError(f"{self.path}/{CONFIG} lacks {name!r}")
        if not is_integer(value):
            raise ValueError(f"{self.path}/{CONFIG}: {name} must be a whole number, found {value!r}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """Return a truth value of config.json. Raises ValueError for anything else."""
        value = self.config.get(name, default)
        if not isinstance(value, bool):
            raise ValueError(f"{self.path}/{CONFIG}: {name} must be true or false, found {value!r}")
        return value

    def activation(self, default: str) -> Activation:
        """Return the activation function of config.json. Raises ValueError for one that is not supported."""
        name = self.config.get("activation_function", default)
        if not isinstance(name, str) or name not in ACTIVATIONS:
            raise ValueError(
                f"{self.path}: activation_function {name!r} is not supported, only {', '.join(ACTIVATIONS)}"
            )
        return ACTIVATIONS[name]

    def decoding(self, name: str) -> object:
        """Return a setting of decoding: of generation_config.json, else of config.json, where it was before 2023."""
        value = self.generation.get(name)
        return self.config.get(name) if value is None else value

    def token(self, name: str, default: int | None = None) -> int | None:
        """Return a token id among the settings of decoding. Raises ValueError if it is no single id."""
        value = self.decoding(name)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        value = default if value is None else value
        if value is not None and not is_integer(value, 0):
            raise ValueError(f"{self.path}: {name} must be the id of one token, found {value!r}")
        return value

    def banned_ids(self, config: ModelConfig, more: Iterable[int] = ()) -> tuple[int, ...]:
        """Return the ids of target tokens that decoding may not choose: bad_words_ids, suppress_tokens and `more`.

        A banned sequence of several tokens is left out: it bans no single token.
        """
        words, tokens = self.decoding("bad_words_ids") or [], self.decoding("suppress_tokens") or []
        if not isinstance(words, list) or not isinstance(tokens, list):
            raise ValueError(f"{self.path}: bad_words_ids and suppress_tokens must be lists")
        single = [word[0] for word in words if isinstance(word, list) and len(word) == 1]
        ids = {i for i in (*single, *tokens, *more) if is_integer(i, 0)}
        return tuple(sorted(i for i in ids if i < config.num_target_tokens))
