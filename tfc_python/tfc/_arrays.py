"""numpy's arrays as libtfc's, libtfc's as numpy's; errors."""

import collections
import ctypes

import numpy

from tfc._library import MAX_RANK, Array, Text, lib

Event = collections.namedtuple("Event", "node op device to_device start_us duration_us bytes")
STRING, BFLOAT16 = 7, 14
_TYPES = {1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 8: "complex64", 9: "int64",
          10: "bool", 17: "uint16", 18: "complex128", 19: "float16", 22: "uint32", 23: "uint64"}
_KINDS = {1: "cancelled", 2: "invalid argument", 3: "unimplemented", 4: "not found", 5: "out of range",
          6: "failed precondition", 7: "resource exhausted", 8: "deadline exceeded", 9: "unavailable", 10: "data loss",
          11: "aborted", 12: "internal"}


class Error(Exception):
    """What libtfc says went wrong; `kind` is a word for it ("not found")."""

    def __init__(self, text, code=2):
        super().__init__(text)
        self.code, self.kind = code, _KINDS.get(code, "internal")


def check(error):
    if not error:
        return
    raised = Error(lib.tfc_error_text(error).decode("utf-8", "replace"), lib.tfc_error_code(error))
    lib.tfc_error_free(error)
    raise raised


def numpy_type(dtype):
    """bfloat16 has no type in numpy itself: ml_dtypes' where that is installed, else its bits as uint16."""
    if dtype == BFLOAT16:
        try:
            import ml_dtypes
            return numpy.dtype(ml_dtypes.bfloat16)
        except ImportError:
            return numpy.dtype("uint16")
    if dtype not in _TYPES:
        raise Error("tensors of TensorFlow's type number %d have no value as an array" % dtype, 3)
    return numpy.dtype(_TYPES[dtype])


def to_library(value, dtype, out):
    """Fills `out` for a feed of TensorFlow's type `dtype`; returns what has to live as long as `out` is used."""
    if dtype == STRING:
        value = numpy.asarray(value, dtype=object)
        texts = [t.encode() if isinstance(t, str) else bytes(t) for t in value.ravel()]
        keep = (Text * len(texts))()
        buffers = [ctypes.create_string_buffer(t, max(len(t), 1)) for t in texts]
        for i, text in enumerate(texts):
            keep[i] = Text(ctypes.addressof(buffers[i]), len(text))
        kept, address, size = (keep, buffers), ctypes.addressof(keep) if texts else None, ctypes.sizeof(keep)
    else:
        value = numpy.ascontiguousarray(value, dtype=numpy_type(dtype)).reshape(numpy.shape(value))
        kept, address, size = value, value.ctypes.data, value.nbytes
    if value.ndim > MAX_RANK:
        raise Error("an array of %d dimensions: %d are possible" % (value.ndim, MAX_RANK))
    out.dtype, out.rank, out.data, out.bytes, out.owner = dtype, value.ndim, address, size, None
    for i, size in enumerate(value.shape):
        out.dims[i] = size
    return kept


class _Owner:  # of memory that the library allocated; numpy's arrays hold it
    def __init__(self, array):
        self.array = Array.from_buffer_copy(array)

    def __del__(self):
        lib.tfc_array_clear(ctypes.byref(self.array))


def from_library(array):
    """A numpy array over the library's memory, which goes when the array does. Strings are copied, as bytes."""
    owner = _Owner(array)
    shape = tuple(array.dims[i] for i in range(array.rank))
    if array.dtype == STRING:
        texts = ctypes.cast(array.data, ctypes.POINTER(Text))
        out = numpy.empty(shape, dtype=object)
        flat = out.reshape(-1)
        for i in range(flat.size):
            flat[i] = ctypes.string_at(texts[i].data, texts[i].size) if texts[i].size else b""
        return out if shape else out[()]
    kind = numpy_type(array.dtype)
    if array.bytes == 0:
        return numpy.empty(shape, dtype=kind)
    buffer = (ctypes.c_char * array.bytes).from_address(array.data)
    buffer.owner = owner
    out = numpy.frombuffer(buffer, dtype=kind).reshape(shape)
    return out if shape else out[()]
