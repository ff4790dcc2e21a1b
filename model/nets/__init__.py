"""The networks: attention, masks, caches, positions, records, the Transformer and its cached decoding step."""
