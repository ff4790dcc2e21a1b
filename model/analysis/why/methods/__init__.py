"""All attribution methods, one file each, in the order in which the page shows them: measured, exact, proxies."""

from __future__ import annotations

from torch import nn

from attention_atlas.model.analysis.why.method import Method
from attention_atlas.model.analysis.why.methods import attention, flow, gradients, occlusion, relevance

METHODS: dict[str, Method] = {
    method.slug: method
    for method in (
        occlusion.MASK,
        occlusion.MEAN,
        gradients.INTEGRATED_GRADIENTS,
        relevance.ATTN_LRP,
        gradients.GRADIENT_X_INPUT,
        flow.ALTI,
        attention.NORMS,
        attention.RAW,
        flow.ROLLOUT,
    )
}


def methods_of(model: nn.Module) -> dict[str, Method]:
    """Return the methods that can be computed for a network."""
    return {slug: method for slug, method in METHODS.items() if method.applies(model)}


OCCLUSIONS = (occlusion.MASK, occlusion.MEAN)


def reference_occlusion(method: str) -> Method:
    """Return the occlusion that a method is compared with: by mean; for occlusion by mean itself, by mask."""
    return occlusion.MASK if method == occlusion.MEAN.slug else occlusion.MEAN
