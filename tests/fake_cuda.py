"""A device that computes on the CPU but says cuda:0, and refuses what a GPU would refuse.

`fake_cuda()` is a context: inside it, tensors made with a CUDA device, or moved to one, are FakeCuda. They report
cuda:0 and raise where one meets a tensor of the CPU, as PyTorch's own CUDA tensors do. Threads that are started inside
are inside, too. It finds tensors that were left on the other device; numbers and speed of a GPU it cannot show.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from unittest import mock

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

CUDA = torch.device("cuda:0")
# Between devices a GPU allows these: copies, and indices that lie on the CPU.
MAY_MIX = {Tensor.copy_, Tensor.__getitem__, Tensor.__setitem__}
_INFORMS = {"__get__"}


class FakeCuda(torch.Tensor):
    """A CPU tensor in disguise. What torch computes from one is one, too."""


def to_fake(tensor: Tensor) -> Tensor:
    """The tensor on the false device; a parameter stays one."""
    if isinstance(tensor, FakeCuda):
        return tensor
    fake = tensor.detach().as_subclass(FakeCuda)
    return nn.Parameter(fake, requires_grad=tensor.requires_grad) if isinstance(tensor, nn.Parameter) else fake


class FakeCudaMode(TorchFunctionMode):
    """Sees every call of torch: answers for the device, and checks that tensors met on one."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        with torch._C.DisableTorchFunctionSubclass():
            return self._called(func, args, kwargs)

    def _called(self, func, args, kwargs):
        tensors = [item for item in _flat((args, kwargs)) if isinstance(item, Tensor)]
        fake = any(isinstance(tensor, FakeCuda) for tensor in tensors)
        name = getattr(func, "__name__", "")
        if name in _INFORMS and args and isinstance(args[0], FakeCuda):
            if func == Tensor.device.__get__:
                return CUDA
            if func == Tensor.is_cuda.__get__:
                return True
            if func == Tensor.is_cpu.__get__:
                return False
        if func in (Tensor.numpy, Tensor.__array__) and fake:
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")
        if func is Tensor.cpu:
            return args[0].as_subclass(Tensor)
        if func is Tensor.cuda:
            return to_fake(args[0])
        wanted, args, kwargs = _without_device(func, args, kwargs)
        if fake and func not in MAY_MIX:
            _check_devices(func, tensors)
        result = func(*args, **kwargs)
        if wanted is not None:
            fake = wanted.type == "cuda"
        elif func in (Tensor.copy_, Tensor.__setitem__, Tensor.__getitem__):
            fake = isinstance(args[0], FakeCuda)
        return _disguised(result, fake)


def _without_device(func, args, kwargs):
    """(the device that a call asks for or None, its arguments for the CPU)."""
    if "device" in kwargs:
        wanted = kwargs.pop("device")
        if wanted is None:
            return None, args, kwargs
        wanted = torch.device(wanted) if not isinstance(wanted, torch.device) else wanted
        return (
            (None if wanted.type == "meta" else wanted),
            args,
            {**kwargs, "device": torch.device("meta" if wanted.type == "meta" else "cpu")},
        )
    if func is Tensor.to and len(args) > 1:
        if isinstance(args[1], Tensor):
            return torch.device("cuda" if isinstance(args[1], FakeCuda) else "cpu"), args, kwargs
        if isinstance(args[1], (str, torch.device)):
            return torch.device(args[1]), (args[0], "cpu", *args[2:]), kwargs
    return None, args, kwargs


def _check_devices(func, tensors: list[Tensor]) -> None:
    # A single number on the CPU may meet a GPU's tensors.
    plain = [tensor for tensor in tensors if not isinstance(tensor, FakeCuda) and tensor.ndim > 0]
    if plain:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and "
            f"cpu! (in {getattr(func, '__name__', func)}, shape {tuple(plain[0].shape)})"
        )


def _disguised(result, fake: bool):
    if isinstance(result, Tensor):
        return to_fake_result(result) if fake else result.as_subclass(Tensor) if type(result) is FakeCuda else result
    if type(result) in (tuple, list):
        return type(result)(_disguised(item, fake) for item in result)
    if type(result).__module__ == "torch.return_types":  # such as of max() along an axis
        return type(result)([_disguised(item, fake) for item in result])
    return result


def to_fake_result(tensor: Tensor) -> Tensor:
    """Unlike to_fake, without leaving the graph of gradients."""
    return tensor if isinstance(tensor, (FakeCuda, nn.Parameter)) else tensor.as_subclass(FakeCuda)


def _flat(values) -> Iterator:
    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, (tuple, list, dict)):
            yield from _flat(value)
        else:
            yield value


def _move(module: nn.Module, *args, **kwargs) -> nn.Module:
    """nn.Module.to for the false device: parameters and buffers are replaced, and moved back for "cpu"."""
    where = torch.device(kwargs.get("device", args[0] if args else "cpu"))
    for part in module.modules():
        for kept in (part._parameters, part._buffers):
            for name, tensor in kept.items():
                if tensor is None:
                    continue
                if where.type == "cuda":
                    kept[name] = to_fake(tensor)
                elif isinstance(tensor, FakeCuda):
                    plain = tensor.detach().as_subclass(Tensor)
                    kept[name] = nn.Parameter(plain, tensor.requires_grad) if kept is part._parameters else plain
    return module


@contextlib.contextmanager
def fake_cuda() -> Iterator[torch.device]:
    """Everything inside, worker threads included, sees one CUDA device, the false one."""
    run = threading.Thread.run

    def inside(thread: threading.Thread) -> None:
        with FakeCudaMode():
            run(thread)

    patches = [
        mock.patch.object(threading.Thread, "run", inside),
        mock.patch.object(nn.Module, "to", _move),
        mock.patch.object(torch.cuda, "is_available", lambda: True),
        mock.patch.object(torch.cuda, "device_count", lambda: 1),
        mock.patch.object(torch.cuda, "synchronize", lambda device=None: None),
    ]
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        with FakeCudaMode():
            yield CUDA
