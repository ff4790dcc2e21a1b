"""A fake device: tensors that are computed on the CPU, but report cuda:0 or mps:0 and raise a GPU's errors.

Inside the context `fake_device()`, tensors created on or moved to the device are `Fake`. As in PyTorch, an operation
that mixes them with CPU tensors raises RuntimeError, and a float64 tensor on mps raises TypeError. The context also
covers threads started inside it. It finds tensors left on the wrong device; it does not show a GPU's numbers or speed.
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
# PyTorch allows these between devices: copies, and indices on the CPU.
MAY_MIX = {Tensor.copy_, Tensor.to, Tensor.__getitem__, Tensor.__setitem__}


class Fake(torch.Tensor):
    """A CPU tensor that claims to be on the fake device, as do the results of operations on it."""


def to_fake(tensor: Tensor) -> Tensor:
    """Return the tensor on the fake device; a parameter remains a parameter."""
    if isinstance(tensor, Fake):
        return tensor
    fake = tensor.detach().as_subclass(Fake)
    return nn.Parameter(fake, requires_grad=tensor.requires_grad) if isinstance(tensor, nn.Parameter) else fake


class FakeDevice(TorchFunctionMode):
    """A torch function mode that answers questions about the device and checks each operation's arguments."""

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
        if name == "__get__" and args and isinstance(args[0], Fake):
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
        requested, args, kwargs = _without_device(func, args, kwargs, self.device)
        if fake and func not in MAY_MIX:
            self._check_devices(func, tensors)
        result = func(*args, **kwargs)
        if requested is not None:
            fake = requested.type != "cpu"
        elif func in (Tensor.copy_, Tensor.__setitem__, Tensor.__getitem__):
            fake = isinstance(args[0], Fake)
        result = _disguised(result, fake)
        self._check_dtypes(result)
        return result

    def _check_devices(self, func, tensors: list[Tensor]) -> None:
        # PyTorch allows a CPU scalar beside a GPU's tensors.
        on_cpu = [tensor for tensor in tensors if not isinstance(tensor, Fake) and tensor.ndim > 0]
        if on_cpu:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {self.device} and "
                f"cpu! (in {getattr(func, '__name__', func)}, shape {tuple(on_cpu[0].shape)})"
            )

    def _check_dtypes(self, result) -> None:
        for tensor in _flat((result,)):
            if self.device.type == "mps" and isinstance(tensor, Fake) and tensor.dtype == torch.float64:
                raise TypeError(
                    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. "
                    "Please use float32 instead."
                )


def _without_device(func, args, kwargs, device: torch.device):
    """Return the device that a call names, or None, and the arguments of the same call on the CPU."""
    if "device" in kwargs:
        name = kwargs.pop("device")
        if name is None:
            return None, args, kwargs
        requested = torch.device(name)
        if requested.type == "meta":
            return None, args, {**kwargs, "device": requested}
        return requested, args, {**kwargs, "device": torch.device("cpu")}
    if func is Tensor.to and len(args) > 1:
        if isinstance(args[1], Tensor):
            return (device if isinstance(args[1], Fake) else torch.device("cpu")), args, kwargs
        if isinstance(args[1], (str, torch.device)):
            return torch.device(args[1]), (args[0], "cpu", *args[2:]), kwargs
    return None, args, kwargs


def _disguised(result, fake: bool):
    if isinstance(result, Tensor):
        if fake:  # unlike to_fake, without leaving the graph of gradients
            return result if isinstance(result, (Fake, nn.Parameter)) else result.as_subclass(Fake)
        return result.as_subclass(Tensor) if type(result) is Fake else result
    if type(result) in (tuple, list):
        return type(result)(_disguised(item, fake) for item in result)
    if type(result).__module__ == "torch.return_types":  # such as the result of max(dim)
        return type(result)([_disguised(item, fake) for item in result])
    return result


def _flat(values) -> Iterator:
    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, (tuple, list, dict)):
            yield from _flat(value)
        else:
            yield value


def _move(module: nn.Module, *args, **kwargs) -> nn.Module:
    """Replace nn.Module.to: swap parameters and buffers for fake tensors, or for plain ones if the device is "cpu"."""
    where = torch.device(kwargs.get("device", args[0] if args else "cpu"))
    for part in module.modules():
        for tensors in (part._parameters, part._buffers):
            for name, tensor in tensors.items():
                if tensor is None:
                    continue
                if where.type != "cpu":
                    tensors[name] = to_fake(tensor)
                elif isinstance(tensor, Fake):
                    plain = tensor.detach().as_subclass(Tensor)
                    tensors[name] = nn.Parameter(plain, tensor.requires_grad) if tensors is part._parameters else plain
    return module


@contextlib.contextmanager
def fake_device(name: str = "cuda:0") -> Iterator[torch.device]:
    """Yield the device, which torch reports as the only accelerator inside the context, worker threads included."""
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
