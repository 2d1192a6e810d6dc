"""A GPU that is simulated on the CPU, for what no test without a GPU shows.

Tensors on it lie in the memory of the CPU, and say that they are on ``cuda:0``. What a GPU would
refuse is refused: operations over two devices, arrays of NumPy of its memory, waiting while a graph
is recorded. What a GPU does at some time is done as late as it may: copies that nobody waited for
have not happened, and one reads its source when it happens. Kernels of Triton run in its
interpreter, so ``TRITON_INTERPRET=1`` must be set. ``pytest -p simulated_gpu`` installs it.
"""

import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


GPU = torch.device("cuda:0")
MEMORY = 8 << 30
FACTORIES = names(
    "arange as_tensor empty empty_like empty_strided eye full full_like linspace ones ones_like "
    "rand rand_like randint randn randn_like randperm tensor zeros zeros_like"
)
MADE_OF_HOST = {"as_tensor", "tensor"}
WAITING = names(
    "item tolist cpu numpy nonzero argwhere masked_select unique unique_consecutive bincount equal "
    "allclose __bool__ __int__ __float__ __index__ __array__ __contains__ __format__"
)
OF_NO_WORK = names(
    "__get__ __len__ dim size numel nelement stride data_ptr untyped_storage element_size "
    "is_contiguous storage_offset view view_as narrow select unsqueeze squeeze expand split chunk "
    "unbind permute transpose t detach as_strided diagonal"
)
CROSSING = {"copy_", "to", "cpu", "set_"}
OF_FLOATS = {"matmul", "mm", "bmm", "addmm", "baddbmm", "__matmul__", "__rmatmul__", "cdist"}
INTEGERS = {torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool}

_plainly = torch._C.DisableTorchFunctionSubclass
_local = threading.local()
_pinned: set[int] = set()
_kept: list[torch.Tensor] = []
_streams: weakref.WeakSet["Stream"] = weakref.WeakSet()


class Stream:
    """Work of a GPU in order. Copies stand in it until somebody waits, or later work sees them."""

    def __init__(self, device: object = None, **options: object) -> None:
        self.device = GPU
        self.pending: list[tuple[bool, Callable[[], object]]] = []
        self.lock = threading.RLock()
        _streams.add(self)

    def go_on(self, upto: list[Any] | None = None, *, waited: bool) -> None:
        """Do what was put off: what later work sees, or all of it where the host waits."""
        with self.lock:
            due = [
                copy
                for copy in self.pending
                if (waited or copy[0]) and (upto is None or any(copy is old for old in upto))
            ]
            self.pending[:] = [copy for copy in self.pending if not any(copy is d for d in due)]
            for _, run in due:
                run()

    def synchronize(self) -> None:
        refuse_while_recording("synchronize")
        self.go_on(waited=True)

    def wait_stream(self, other: "Stream") -> None:
        other.go_on(waited=False)


class Event:
    def __init__(self, **options: object) -> None:
        self._stream: Stream | None = None
        self._before: list[Any] = []

    def record(self, stream: Stream | None = None) -> None:
        self._stream = stream or current_stream()
        self._before = list(self._stream.pending)

    def synchronize(self) -> None:
        refuse_while_recording("synchronize")
        if self._stream is not None:
            self._stream.go_on(self._before, waited=True)

    def elapsed_time(self, end: "Event") -> float:
        return 1.0


_default = Stream()


def current_stream(device: object = None) -> Stream:
    return getattr(_local, "stream", _default)


@contextlib.contextmanager
def on_stream(stream: Stream | None) -> Iterator[None]:
    before = current_stream()
    _local.stream = stream or before
    try:
        yield
    finally:
        _local.stream = before


def synchronize(device: object = None) -> None:
    refuse_while_recording("synchronize")
    for stream in list(_streams):
        stream.go_on(waited=True)


class Graph:
    """What a thread asks between begin and end, asked again with the same memory by `replay`."""

    def capture_begin(self, *args: object, **options: object) -> None:
        if current_stream() is _default:
            raise RuntimeError("CUDA graphs must be captured on a non-default stream")
        self._work: list[tuple[Callable[..., Any], Any, Any, Any]] = []
        _local.graph = self

    def capture_end(self) -> None:
        _local.graph = None

    def add(self, run: Callable[..., Any], args: Any, kwargs: Any, result: Any) -> None:
        self._work.append((run, args, kwargs, result))

    def replay(self) -> None:
        with _plainly():
            for run, args, kwargs, result in self._work:
                current_stream().go_on(waited=False)
                again = run(*args, **kwargs)
                for old, new in zip(tensors_of(result), tensors_of(again), strict=True):
                    if old.data_ptr() != new.data_ptr():
                        old.copy_(new)


def recording() -> Graph | None:
    return getattr(_local, "graph", None)


def refuse_while_recording(name: str) -> None:
    if recording() is not None:
        raise RuntimeError(f"CUDA error: operation not permitted when stream is capturing: {name}")


def tensors_of(values: Any) -> list[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, dict):
        values = values.values()
    elif not isinstance(values, (tuple, list)):
        return []
    return [tensor for value in values for tensor in tensors_of(value)]


def mapped(change: Callable[[torch.Tensor], torch.Tensor], values: Any) -> Any:
    if isinstance(values, torch.Tensor):
        return change(values)
    if isinstance(values, dict):
        return {name: mapped(change, value) for name, value in values.items()}
    if isinstance(values, (tuple, list)) and not isinstance(values, torch.Size):
        return type(values)([mapped(change, value) for value in values])
    return values


def plain(values: Any) -> Any:
    return mapped(
        lambda tensor: tensor.as_subclass(torch.Tensor) if isinstance(tensor, OnGPU) else tensor,
        values,
    )


def on_gpu(values: Any) -> Any:
    return mapped(placed, values)


def placed(tensor: torch.Tensor) -> "OnGPU":
    """Count the memory of a tensor as that of the GPU, which has no more than it has."""
    if tensor.layout != torch.strided:  # of which there can be no subclass
        return tensor
    with _counting:
        _held[tensor.untyped_storage()] = tensor.untyped_storage().nbytes()
        held = allocated()
        _peak[0] = max(_peak[0], held)
    if held > MEMORY:
        raise torch.OutOfMemoryError(f"CUDA out of memory. {held} bytes of {MEMORY}.")
    return tensor.as_subclass(OnGPU)


_counting = threading.Lock()
_held: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_peak = [0]


def allocated(device: object = None) -> int:
    return sum(_held.values())


def _forget_peak(device: object = None) -> None:
    _peak[0] = allocated()


def is_gpu(device: object) -> bool:
    if isinstance(device, int) and not isinstance(device, bool):
        return True
    return device is not None and torch.device(device).type == "cuda"


class OnGPU(torch.Tensor):
    """A tensor whose memory a GPU is said to have."""

    device = GPU  # type: ignore[assignment]
    is_cuda = True
    is_cpu = False

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with _plainly():
            return run(func, args, kwargs or {})

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu().")

    def __dlpack__(self, **options: object) -> Any:
        raise BufferError("the memory of a GPU")

    def __reduce_ex__(self, proto: object) -> Any:
        raise TypeError("tensors on a GPU are not pickled here")

    def __deepcopy__(self, memo: object) -> Any:
        return self.clone()


def run(func: Any, args: Any, kwargs: Any) -> Any:
    """Run a function of torch some of whose tensors lie on the GPU, as a GPU would."""
    name = getattr(func, "__name__", str(func))
    if name == "numpy" and not (kwargs.get("force") or args[1:2] == (True,)):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu().")
    check_devices(name, args, kwargs)
    stream = current_stream()
    if name == "copy_":
        return copied(stream, *args, **kwargs)
    is_back = name in ("cpu", "numpy", "tolist")
    if name == "to":
        device = goal_of(args[1:], kwargs)
        is_back = device is not None and not is_gpu(device)
        if is_back or not isinstance(args[0], OnGPU):
            refuse_while_recording(name)
            if is_back and (kwargs.get("non_blocking") or args[2:3] == (True,)):
                raise RuntimeError("copies to the host must block, or nobody can wait for one")
            stream.go_on(waited=True)
        args, kwargs = (args[0], *map(host_of, args[1:])), {**kwargs}
        if "device" in kwargs:
            kwargs["device"] = host_of(kwargs["device"])
    elif waits(name, args, kwargs):
        refuse_while_recording(name)
        stream.go_on(waited=True)
    elif not (name in OF_NO_WORK or (name == "__getitem__" and not tensors_of(args[1:]))):
        stream.go_on(waited=False)
    if (name in FACTORIES or name.startswith("new_")) and "device" in kwargs:
        is_back = not is_gpu(kwargs["device"])
        kwargs = {**kwargs, "device": host_of(kwargs["device"])}
    args, kwargs = plain(args), plain(kwargs)
    result = func(*args, **kwargs)
    if is_back:
        if isinstance(result, torch.Tensor):
            return result.clone()
        return result.copy() if name == "numpy" else result
    graph = recording()
    if graph is not None and name not in OF_NO_WORK:
        graph.add(func, args, kwargs, result)
    return on_gpu(result)


def host_of(value: Any) -> Any:
    if isinstance(value, torch.device) or (isinstance(value, str) and "cuda" in value):
        return torch.device("cpu")
    return value


def goal_of(args: Any, kwargs: Any) -> Any:
    """Return the device that ``to`` is given, if any."""
    for value in (*args[:1], kwargs.get("device"), kwargs.get("other")):
        if isinstance(value, OnGPU):
            return GPU
        if isinstance(value, torch.Tensor):
            return value.device
        if isinstance(value, (torch.device, str)):
            return torch.device(value)
    return None


def waits(name: str, args: Any, kwargs: Any) -> bool:
    if name == "__getitem__" or name == "__setitem__":
        index = args[1] if isinstance(args[1], tuple) else (args[1],)
        return any(
            isinstance(part, list)
            or (isinstance(part, torch.Tensor) and (part.dtype == torch.bool or on_host(part)))
            for part in index
        )
    if name == "repeat_interleave":
        return len(tensors_of((args, kwargs))) > 1 and kwargs.get("output_size") is None
    if name == "where":
        return len(args) == 1
    return name in WAITING


def on_host(tensor: torch.Tensor) -> bool:
    return not isinstance(tensor, OnGPU) and tensor.layout == torch.strided


def check_devices(name: str, args: Any, kwargs: Any) -> None:
    tensors = tensors_of((args, kwargs))
    if name in OF_FLOATS and any(tensor.dtype in INTEGERS for tensor in tensors):
        raise RuntimeError(f'"{name}_cuda" not implemented for integers')
    if name in CROSSING:
        return
    owner = args[0] if args and isinstance(args[0], torch.Tensor) else None
    if name in ("__getitem__", "__setitem__"):
        given = tensors_of(args[2:])
        index = tensors_of(args[1]) or isinstance(args[1], list)
        wrong = (
            any(on_host(value) and value.dim() for value in given) and bool(index)
            if isinstance(owner, OnGPU)
            else any(not on_host(part) and part.dim() for part in tensors_of(args[1]))
            or (bool(index) and any(not on_host(value) for value in given))
        )
    else:
        wrong = any(on_host(tensor) and tensor.dim() for tensor in tensors) or (
            name.endswith("_") and not name.endswith("__") and owner is not None and on_host(owner)
        )
    if wrong:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"cuda:0 and cpu! ({name})"
        )


def copied(
    stream: Stream, to: torch.Tensor, source: torch.Tensor, non_blocking: bool = False
) -> torch.Tensor:
    """Copy, at once or as late as a stream may."""
    goal, origin = plain(to), plain(source)
    graph = recording()
    is_out, is_in = on_host(to), on_host(source)
    if is_out or is_in:
        host = goal if is_out else origin
        if not (non_blocking and is_pinned(host)):
            refuse_while_recording("copy_ of memory that is not pinned, or waits")
            stream.go_on(waited=True)
            goal.copy_(origin)
        elif graph is not None:
            graph.add(_put_off, (goal, origin, is_out), {}, None)
        else:
            _put_off(goal, origin, is_out)
        return to
    stream.go_on(waited=False)
    goal.copy_(origin)
    if graph is not None:
        graph.add(torch.Tensor.copy_, (goal, origin), {}, None)
    return to


def _put_off(goal: torch.Tensor, origin: torch.Tensor, is_out: bool) -> None:
    stream = current_stream()
    if is_out:
        stream.go_on(waited=False)
        origin = origin.clone()
    with stream.lock:
        stream.pending.append((not is_out, functools.partial(_copy, goal, origin)))


def _copy(goal: torch.Tensor, origin: torch.Tensor) -> None:
    with _plainly():
        goal.copy_(origin)


def is_pinned(tensor: torch.Tensor) -> bool:
    return tensor.untyped_storage().data_ptr() in _pinned


def _making(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> torch.Tensor:
        pin = kwargs.pop("pin_memory", False)
        if is_gpu(kwargs.get("device")):
            if make.__name__ in MADE_OF_HOST:
                refuse_while_recording(make.__name__)
            with _plainly():
                result = run_factory(make, plain(args), {**plain(kwargs), "device": "cpu"})
            return result
        tensor = make(*args, **kwargs)
        if pin:
            # Kept, so that no other memory comes to lie there.
            _kept.append(tensor)
            _pinned.add(tensor.untyped_storage().data_ptr())
        return tensor

    return made


def run_factory(make: Any, args: Any, kwargs: Any) -> torch.Tensor:
    result = make(*args, **kwargs)
    if make.__name__ in MADE_OF_HOST:
        result = result.clone()
    if make.__name__.startswith("empty") and result.is_contiguous():
        # Memory that nobody wrote holds what it likes.
        result.view(-1).view(torch.uint8).fill_(0xA5)
    graph = recording()
    if graph is not None and not make.__name__.startswith("empty"):
        graph.add(make, args, kwargs, result)
    return on_gpu(result)


def _to(to: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(to)
    def moved(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if isinstance(self, OnGPU) or not is_gpu(goal_of(args, kwargs)):
            return to(self, *args, **kwargs)
        with _plainly():
            refuse_while_recording("to")
            options = {k: v for k, v in kwargs.items() if k not in ("device", "non_blocking")}
            rest = [host_of(plain(value)) for value in args if not isinstance(value, bool)]
            result = to(plain(self), *rest, **options).clone()
            current_stream().go_on(waited=True)
            return on_gpu(result)

    return moved


def install() -> None:
    """Put the GPU in its place."""
    for name in FACTORIES:
        setattr(torch, name, _making(getattr(torch, name)))
    torch.Tensor.to = _to(torch.Tensor.to)  # type: ignore[method-assign]
    torch.Tensor.cuda = lambda self, *_, **__: self.to(GPU)  # type: ignore[method-assign]
    torch.Tensor.pin_memory = _pin  # type: ignore[method-assign]
    torch.Generator = type(  # type: ignore[misc, assignment]
        "Generator", (), {"__new__": lambda cls, device="cpu", make=torch.Generator: make()}
    )
    properties = SimpleNamespace(
        name="simulated", total_memory=MEMORY, major=9, minor=0, multi_processor_count=2
    )
    held = torch.cuda
    for name, value in {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "device": lambda device: contextlib.nullcontext(),
        "get_device_properties": lambda device=None: properties,
        "get_device_name": lambda device=None: properties.name,
        "current_stream": current_stream,
        "default_stream": lambda device=None: _default,
        "stream": on_stream,
        "Stream": Stream,
        "Event": Event,
        "CUDAGraph": Graph,
        "synchronize": synchronize,
        "empty_cache": lambda: None,
        "mem_get_info": lambda device=None: (MEMORY - allocated(), MEMORY),
        "memory_allocated": allocated,
        "max_memory_allocated": lambda device=None: _peak[0],
        "max_memory_reserved": lambda device=None: _peak[0],
        "reset_peak_memory_stats": _forget_peak,
    }.items():
        setattr(held, name, value)
    torch.profiler.profile = _profile  # type: ignore[misc, assignment]
    if os.environ.get("TRITON_INTERPRET") == "1":
        from triton.runtime import interpreter

        interpreter.GridExecutor.__call__ = _launching(interpreter.GridExecutor.__call__)


@contextlib.contextmanager
def _profile(**options: object) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(key_averages=lambda: [SimpleNamespace(self_device_time_total=1.0)])


def _pin(tensor: torch.Tensor, *args: object) -> torch.Tensor:
    copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return copy.copy_(tensor)


_launching_one = threading.RLock()  # the interpreter is for one at a time


def _launching(launch: Callable[..., None]) -> Callable[..., None]:
    def one(self: Any, args: Any, kwargs: Any) -> None:
        with _launching_one:
            launch(self, *args, **kwargs)

    def launched(self: Any, *args: Any, **kwargs: Any) -> None:
        if any(map(on_host, tensors_of((args, kwargs)))):
            raise ValueError("Pointer argument cannot be accessed from Triton (cpu tensor?)")
        with _plainly():
            args, kwargs = plain(args), plain(kwargs)
            current_stream().go_on(waited=False)
            one(self, args, kwargs)
            graph = recording()
            if graph is not None:
                graph.add(one, (self, args, kwargs), {}, None)

    return launched


install()
