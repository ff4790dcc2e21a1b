"""Torch's own hooks on a model's modules: honoured where modules are called, else refused by name.

A pass calls most modules, the lean step of decoding none, and some never are: one product does the work of two, or a
matrix is used without its module. A hook there would be silently ignored.
"""

from __future__ import annotations

from torch import nn

from attention_atlas.model.nets.layer import SubLayer
from attention_atlas.model.nets.transformer import Transformer


def are_hooked(model: nn.Module) -> bool:
    """Whether any module has a hook of a forward pass, so that a pass must call modules. ValueError naming the first
    whose hook would never be called."""
    modules, hooked = [model], False
    for module in modules:  # which grows: modules() takes several times as long, and every translation comes by
        hooked = hooked or module._forward_hooks or module._forward_pre_hooks
        if module._modules:
            modules.extend(part for part in module._modules.values() if part is not None)
    if not hooked:
        return False
    if isinstance(model, Transformer):
        for name, module in model.named_modules():
            hooked = module._forward_hooks or module._forward_pre_hooks
            if hooked and (unheard := _unheard(model, name, module)):
                raise ValueError(f"a hook on {name or 'the model itself'} would never be called: {unheard}")
    return True


def _unheard(model: Transformer, name: str, module: nn.Module) -> str:
    """Why a module is never called; "" where it is."""
    if isinstance(module, Transformer):
        return "a translation calls encode() and decode(); hook encoder or decoder"
    if isinstance(module, SubLayer):
        return "hook the module that it stands around, or edit resid_mid, resid_cross or resid_post (translator.edit)"
    if isinstance(module, nn.Embedding):
        return "its matrix is read directly; edit encoder.embed, decoder.embed or logits (translator.edit)"
    if name.endswith("cross_attention.projection") or isinstance(module, nn.ModuleList):
        return "its parts are used one by one; edit cross.q, cross.k or cross.v (translator.edit)"
    return ""
