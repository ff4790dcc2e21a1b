"""Rollout: how much of each input token reaches each position, from layer to layer.

The same rule serves attention weights (Abnar and Zuidema 2020) and measured contributions (ALTI+, Ferrando et al.
2022). Each row of shares sums to 1, and so does each row of the result, without renormalising.
"""

from __future__ import annotations

import numpy as np


def encoder_flow(shares: np.ndarray) -> np.ndarray:
    """Multiply the shares of successive layers: R_l = C_l R_(l-1), R_0 = I.

    shares: C [layers, n, n], with the residual connection's share on the diagonal. Returns [layers, n, n], the result
    after each layer.
    """
    flow, flows = np.eye(shares.shape[-1]), []
    for layer in shares:
        flow = layer @ flow
        flows.append(flow)
    return np.stack(flows)


def decoder_flow(decoder_self: np.ndarray, cross: np.ndarray, encoder: np.ndarray) -> np.ndarray:
    """Multiply shares through the decoder, jointly over [source | prefix] (ALTI+, Ferrando et al. 2022, section 2.3):

        R_0 = [0 | I]
        R_l = [S_l E | 0] + r_l C_l R_(l-1)

    decoder_self  C [layers, target, target], with the residual connection's share on the diagonal
    cross         S [layers, target, source]; its rows sum to less than 1, and the rest, r_l, came through the residual
                  connection
    encoder       E [source, source], the last layer of encoder_flow()

    Returns [layers, target, source + target], the result after each layer.
    """
    target, source = cross.shape[-2:]
    flow, flows = np.hstack((np.zeros((target, source)), np.eye(target))), []
    for self_shares, cross_shares in zip(decoder_self, cross):
        flow = (1.0 - cross_shares.sum(-1, keepdims=True)) * (self_shares @ flow)
        flow[:, :source] += cross_shares @ encoder
        flows.append(flow)
    return np.stack(flows)


def rollout(weights: np.ndarray) -> np.ndarray:
    """Return the attention rollout of self-attention (Abnar and Zuidema 2020, section 3): how much of each input token
    reaches each position if information flows in proportion to attention.

        C_l = 0.5 * mean over heads(W_l) + 0.5 * I        (the identity stands for the residual connection)

    weights [layers, heads, n, n] -> [layers, n, n] after each layer; rows sum to 1.
    """
    return encoder_flow(_with_residual(weights))


def decoder_rollout(decoder_self: np.ndarray, cross: np.ndarray, encoder: np.ndarray) -> np.ndarray:
    """Return the rollout through the decoder, jointly over [source | prefix].

    Half of each sub-layer's share is the residual connection's, as in rollout().

    decoder_self, cross  [layers, heads, ..]
    encoder              [source, source], the last layer of the encoder's rollout

    Returns [layers, target, source + target]; rows sum to 1.
    """
    cross_shares = cross.astype(np.float64).mean(axis=1)
    cross_shares /= 2 * cross_shares.sum(-1, keepdims=True)  # exactly one half, although float32 rows sum to about 1
    return decoder_flow(_with_residual(decoder_self), cross_shares, encoder)


def _with_residual(weights: np.ndarray) -> np.ndarray:
    return 0.5 * weights.astype(np.float64).mean(axis=1) + 0.5 * np.eye(weights.shape[-1])
