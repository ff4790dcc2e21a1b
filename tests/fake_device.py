"""A device that computes on the CPU but says cuda:0 or mps:0, and refuses what a GPU would refuse.

`fake_device()` is a context: inside it, tensors made with such a device, or moved to one, are Fake. They report the
device and raise where one meets a tensor of the CPU, as PyTorch's own do, and that of Apple where one would be float64.
Threads that are started inside
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

FAKES = ("cuda:0", "mps:0")
# Between devices a GPU allows these: copies, and indices that lie on the CPU.
MAY_MIX = {Tensor.copy_, Tensor.to, Tensor.__getitem__, Tensor.__setitem__}
_INFORMS = {"__get__"}


class Fake(torch.Tensor):
    """A CPU tensor in disguise. What torch computes from one is one, too."""


def to_fake(tensor: Tensor) -> Tensor:
    """The tensor on the false device; a parameter stays one."""
    if isinstance(tensor, Fake):
        return tensor
    fake = tensor.detach().as_subclass(Fake)
    return nn.Parameter(fake, requires_grad=tensor.requires_grad) if isinstance(tensor, nn.Parameter) else fake


class FakeDevice(TorchFunctionMode):
    """Sees every call of torch: answers for the device, and checks that tensors met on one."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        with torch._C.DisableTorchFunctionSubclass():
            return self._called(func, args, kwargs)

    def _called(self, func, args, kwargs):
        tensors = [item for item in _flat((args, kwargs)) if isinstance(item, Tensor)]
        fake = any(isinstance(tensor, Fake) for tensor in tensors)
        name = getattr(func, "__name__", "")
        if name in _INFORMS and args and isinstance(args[0], Fake):
            if func == Tensor.device.__get__:
                return self.device
            if func in (Tensor.is_cuda.__get__, Tensor.is_mps.__get__):
                return func.__self__.__name__ == f"is_{self.device.type}"
            if func == Tensor.is_cpu.__get__:
                return False
        if func in (Tensor.numpy, Tensor.__array__) and fake:
            raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() first.")
        if func is Tensor.cpu:
            return args[0].as_subclass(Tensor)
        if func is Tensor.cuda:
            return to_fake(args[0])
        wanted, args, kwargs = _without_device(func, args, kwargs, self.device)
        if fake and func not in MAY_MIX:
            self._check_devices(func, tensors)
        result = func(*args, **kwargs)
        if wanted is not None:
            fake = wanted.type != "cpu"
        elif func in (Tensor.copy_, Tensor.__setitem__, Tensor.__getitem__):
            fake = isinstance(args[0], Fake)
        disguised = _disguised(result, fake)
        self._check_width(disguised)
        return disguised

    def _check_devices(self, func, tensors: list[Tensor]) -> None:
        # A single number on the CPU may meet a GPU's tensors.
        plain = [tensor for tensor in tensors if not isinstance(tensor, Fake) and tensor.ndim > 0]
        if plain:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {self.device} and "
                f"cpu! (in {getattr(func, '__name__', func)}, shape {tuple(plain[0].shape)})"
            )

    def _check_width(self, result) -> None:
        """What Apple says of any float64."""
        for found in _flat((result,)):
            if self.device.type == "mps" and isinstance(found, Fake) and found.dtype == torch.float64:
                raise TypeError(
                    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. "
                    "Please use float32 instead."
                )


def _without_device(func, args, kwargs, device: torch.device):
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
            return (device if isinstance(args[1], Fake) else torch.device("cpu")), args, kwargs
        if isinstance(args[1], (str, torch.device)):
            return torch.device(args[1]), (args[0], "cpu", *args[2:]), kwargs
    return None, args, kwargs


def _disguised(result, fake: bool):
    if isinstance(result, Tensor):
        return to_fake_result(result) if fake else result.as_subclass(Tensor) if type(result) is Fake else result
    if type(result) in (tuple, list):
        return type(result)(_disguised(item, fake) for item in result)
    if type(result).__module__ == "torch.return_types":  # such as of max() along an axis
        return type(result)([_disguised(item, fake) for item in result])
    return result


def to_fake_result(tensor: Tensor) -> Tensor:
    """Unlike to_fake, without leaving the graph of gradients."""
    return tensor if isinstance(tensor, (Fake, nn.Parameter)) else tensor.as_subclass(Fake)


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
                if where.type != "cpu":
                    kept[name] = to_fake(tensor)
                elif isinstance(tensor, Fake):
                    plain = tensor.detach().as_subclass(Tensor)
                    kept[name] = nn.Parameter(plain, tensor.requires_grad) if kept is part._parameters else plain
    return module


@contextlib.contextmanager
def fake_device(name: str = "cuda:0") -> Iterator[torch.device]:
    """Everything inside, worker threads included, sees one such device, the false one."""
    run, device = threading.Thread.run, torch.device(name)

    def inside(thread: threading.Thread) -> None:
        with FakeDevice(device):
            run(thread)

    cuda = device.type == "cuda"
    patches = [
        mock.patch.object(threading.Thread, "run", inside),
        mock.patch.object(nn.Module, "to", _move),
        mock.patch.object(torch.cuda, "is_available", lambda: cuda),
        mock.patch.object(torch.cuda, "device_count", lambda: int(cuda)),
        mock.patch.object(torch.backends.mps, "is_available", lambda: not cuda),
        mock.patch.object(torch.accelerator, "synchronize", lambda device=None: None),
    ]
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        with FakeDevice(device):
            yield device
