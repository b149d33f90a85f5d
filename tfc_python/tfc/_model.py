"""Models: load a graph, run it."""

import ctypes
import os
import threading

from tfc._arrays import Event, check, from_library, to_library
from tfc._library import Array, CallSpec, ModelOptions, lib


def load(graph, devices=None, placement=None, checkpoint=None, execution=None, initialise=True):
    """A model from a graph file (.pb, .pbtxt, .meta, SavedModel directory).

    devices: as tfc-run's --devices ("cpu:0-3", 4). placement: a placement file, or what tfc.place returned.
    checkpoint: prefix of a TensorFlow V2 checkpoint. execution: as tfc-run's flags ("--rewrites all --seed 1").
    initialise=False leaves the variables to the caller.
    """
    return Model(graph, devices, placement, checkpoint, execution, initialise)


def _encode(text):
    return None if text is None else os.fsencode(text if isinstance(text, (str, bytes, os.PathLike)) else str(text))


def _names(names):
    return (ctypes.c_char_p * max(len(names), 1))(*[n.encode() for n in names])


class Model:
    def __init__(self, graph, devices=None, placement=None, checkpoint=None, execution=None, initialise=True):
        self._handle, self._calls, self._lock = ctypes.c_void_p(), {}, threading.Lock()
        if hasattr(placement, "path"):
            placement = placement.path
        options = ModelOptions(devices=_encode(devices), placement=_encode(placement), checkpoint=_encode(checkpoint),
                               execution=_encode(execution), uninitialised=not initialise)
        check(lib.tfc_model_open(_encode(graph), ctypes.byref(options), ctypes.byref(self._handle)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()

    def close(self):
        """Frees everything now. No run may be under way."""
        for call in getattr(self, "_calls", {}).values():
            lib.tfc_call_free(call.handle)
        self._calls = {}
        if getattr(self, "_handle", None):
            lib.tfc_model_close(self._handle)
        self._handle = None

    @property
    def devices(self):
        """Names of the devices in use."""
        count = lib.tfc_model_device_count(self._open())
        return [lib.tfc_model_device_name(self._handle, i).decode() for i in range(count)]

    def save(self, prefix):
        """Variables into a TensorFlow V2 checkpoint."""
        check(lib.tfc_model_save(self._open(), _encode(prefix)))

    def restore(self, prefix):
        """Variables from a TensorFlow V2 checkpoint."""
        check(lib.tfc_model_restore(self._open(), _encode(prefix)))

    def run(self, fetches=(), feeds=None, targets=()):
        """One step. fetches: a tensor's name, whose value is returned, or a list of names, whose values are. feeds: values
        by tensor name. targets: operations that run for what they do."""
        return self._run(fetches, feeds, targets, False)[0]

    def profile(self, fetches=(), feeds=None, targets=()):
        """The same, and every operation of the step timed: (what run returns, list of Event)."""
        return self._run(fetches, feeds, targets, True)

    def _open(self):
        if not self._handle:
            raise ValueError("the model is closed")
        return self._handle

    def _run(self, fetches, feeds, targets, profiled):
        feeds = feeds or {}
        single = isinstance(fetches, str)
        fetches = (fetches,) if single else tuple(fetches)
        targets = (targets,) if isinstance(targets, str) else tuple(targets)
        key = (fetches, tuple(feeds), targets)
        self._open()
        with self._lock:
            call = self._calls.get(key)
            if call is None:
                call = self._calls[key] = _Call(self._handle, *key)
        values, events = call.run(list(feeds.values()), profiled)
        return values[0] if single else values, events


class _Call:
    def __init__(self, model, fetches, feeds, targets):
        self.handle, self.fetch_count, self.types = ctypes.c_void_p(), len(fetches), []
        for name in feeds:
            dtype = ctypes.c_int32()
            check(lib.tfc_model_tensor_type(model, name.encode(), ctypes.byref(dtype)))
            self.types.append(dtype.value)
        spec = CallSpec(feeds=_names(feeds), feed_count=len(feeds), fetches=_names(fetches), fetch_count=len(fetches),
                        targets=_names(targets), target_count=len(targets))
        check(lib.tfc_call_prepare(model, ctypes.byref(spec), ctypes.byref(self.handle)))

    def run(self, values, profiled):
        arrays, results = (Array * max(len(values), 1))(), (Array * max(self.fetch_count, 1))()
        kept = [to_library(v, t, a) for v, t, a in zip(values, self.types, arrays)]
        profile, events = ctypes.c_void_p(), None
        if profiled:
            check(lib.tfc_call_profile(self.handle, arrays, results, ctypes.byref(profile)))
            events = _events(profile)
        else:
            check(lib.tfc_call_run(self.handle, arrays, results))
        del kept  # what the feeds were read from lived until here
        return [from_library(results[i]) for i in range(self.fetch_count)], events


def _events(profile):
    raw = lib.tfc_profile_events(profile)
    try:
        return [Event(e.node.decode(), e.op.decode(), e.device.decode(), e.to_device.decode() if e.to_device else None,
                      e.start_us, e.duration_us, e.bytes)
                for e in (raw[i] for i in range(lib.tfc_profile_count(profile)))]
    finally:
        lib.tfc_profile_free(profile)
