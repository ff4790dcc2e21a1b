"""How much of each input token reaches each position, from layer to layer: rollout of shares. Importable without torch.

One rule for every kind of share: attention weights (Abnar and Zuidema 2020) or measured contributions (ALTI+, Ferrando
et al. 2022). Each row of shares sums to 1, and so does each row of what comes out, without renormalising.
"""

from __future__ import annotations

import numpy as np


def encoder_flow(shares: np.ndarray) -> np.ndarray:
    """R_l = C_l R_(l-1), R_0 = I. shares C [layers, n, n], the residual connection's share on the diagonal; returns
    [layers, n, n] after each layer."""
    flow, result = np.eye(shares.shape[-1]), []
    for layer in shares:
        flow = layer @ flow
        result.append(flow)
    return np.stack(result)


def decoder_flow(decoder_self: np.ndarray, cross: np.ndarray, encoder: np.ndarray) -> np.ndarray:
    """Through the decoder, jointly over [source | prefix] (ALTI+, Ferrando et al. 2022, section 2.3):

        R_0 = [0 | I]
        R_l = [S_l E | 0] + r_l C_l R_(l-1)

    decoder_self C [layers, target, target], the residual's share on its diagonal; cross S [layers, target, source],
    whose rows sum to less than 1: what is missing, r_l, came through the residual connection; encoder E
    [source, source], encoder_flow's last. Returns [layers, target, source + target].
    """
    target, source = cross.shape[-2:]
    flow, result = np.hstack((np.zeros((target, source)), np.eye(target))), []
    for own, across in zip(decoder_self, cross):
        flow = (1.0 - across.sum(-1, keepdims=True)) * (own @ flow)
        flow[:, :source] += across @ encoder
        result.append(flow)
    return np.stack(result)


def rollout(weights: np.ndarray) -> np.ndarray:
    """Attention rollout (Abnar and Zuidema 2020, section 3): how much of each input token reaches each position, if
    information were passed on in proportion to attention.

        C_l = 0.5 * mean over heads(W_l) + 0.5 * I        (the identity stands for the residual connection)

    weights [layers, heads, n, n] -> [layers, n, n], after each layer; rows sum to 1.
    """
    return encoder_flow(_with_residual(weights))


def decoder_rollout(decoder_self: np.ndarray, cross: np.ndarray, encoder: np.ndarray) -> np.ndarray:
    """Rollout through the decoder, jointly over [source | prefix]: each row shares 1 between source tokens and the
    target tokens read so far. Half of each sub-layer's share is the residual connection's, as in rollout().

    decoder_self, cross [layers, heads, ..], encoder [source, source]: the encoder's own rollout.
    Returns [layers, target, source + target]; rows sum to 1.
    """
    across = cross.astype(np.float64).mean(axis=1)
    across /= 2 * across.sum(-1, keepdims=True)  # exactly a half, whatever float32 left of a row's sum
    return decoder_flow(_with_residual(decoder_self), across, encoder)


def _with_residual(weights: np.ndarray) -> np.ndarray:
    return 0.5 * weights.astype(np.float64).mean(axis=1) + 0.5 * np.eye(weights.shape[-1])
