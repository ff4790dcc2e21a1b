"""The named places of a pass (TransformerLens calls them hook points), and what is done to the tensors there.

>>> from attention_atlas.model.config import ModelConfig
>>> [place.name for place in matching(["decoder.1.cross.*"], ModelConfig(8, num_decoder_layers=2))][:3]
['decoder.1.cross.q', 'decoder.1.cross.k', 'decoder.1.cross.v']
"""

from attention_atlas.model.nets.places.registry import Place, matching, places
from attention_atlas.model.nets.places.visit import At

__all__ = ["At", "Place", "matching", "places"]
