"""libtfc through ctypes: the declarations of tfc.h, and nothing else."""

import ctypes
import ctypes.util
import glob
import os

MAX_RANK = 8


class Array(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * MAX_RANK),
                ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("owner", ctypes.c_void_p)]


class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class ModelOptions(ctypes.Structure):
    _fields_ = [("devices", ctypes.c_char_p), ("placement", ctypes.c_char_p), ("checkpoint", ctypes.c_char_p),
                ("execution", ctypes.c_char_p), ("uninitialised", ctypes.c_int32), ("reserved", ctypes.c_size_t * 8)]


class CallSpec(ctypes.Structure):
    _fields_ = [("feeds", ctypes.POINTER(ctypes.c_char_p)), ("feed_count", ctypes.c_int32),
                ("fetches", ctypes.POINTER(ctypes.c_char_p)), ("fetch_count", ctypes.c_int32),
                ("targets", ctypes.POINTER(ctypes.c_char_p)), ("target_count", ctypes.c_int32),
                ("reserved", ctypes.c_size_t * 4)]


class Event(ctypes.Structure):
    _fields_ = [("node", ctypes.c_char_p), ("op", ctypes.c_char_p), ("device", ctypes.c_char_p),
                ("to_device", ctypes.c_char_p), ("start_us", ctypes.c_double), ("duration_us", ctypes.c_double),
                ("bytes", ctypes.c_uint64)]


def _candidates():
    """Where libtfc may lie: named, inside this package (a wheel), in the tree that this package was installed with."""
    if os.environ.get("TFC_LIBRARY"):
        return [os.environ["TFC_LIBRARY"]]
    here = os.path.dirname(os.path.abspath(__file__))
    paths = glob.glob(os.path.join(here, "lib", "libtfc.so.*"))
    prefix = here
    while prefix != os.path.dirname(prefix):
        prefix = os.path.dirname(prefix)
        paths += glob.glob(os.path.join(prefix, "libtfc.so.0")) + glob.glob(os.path.join(prefix, "*", "libtfc.so.0"))
    return paths + ["libtfc.so.0"]


def _open():
    tried = []
    for path in _candidates():
        try:
            return ctypes.CDLL(path), path
        except OSError as error:
            tried.append(str(error))
    raise ImportError("libtfc was not found; set TFC_LIBRARY to libtfc.so. Tried: " + "; ".join(tried))


lib, path = _open()


def _declare(name, result, *arguments):
    function = getattr(lib, name)
    function.restype, function.argtypes = result, arguments


_pointer, _text, _arrays = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(Array)
_declare("tfc_library_version", _text)
_declare("tfc_error_code", ctypes.c_int, _pointer)
_declare("tfc_error_text", _text, _pointer)
_declare("tfc_error_free", None, _pointer)
_declare("tfc_array_clear", None, _arrays)
_declare("tfc_model_open", _pointer, _text, ctypes.POINTER(ModelOptions), ctypes.POINTER(_pointer))
_declare("tfc_model_close", None, _pointer)
_declare("tfc_model_restore", _pointer, _pointer, _text)
_declare("tfc_model_save", _pointer, _pointer, _text)
_declare("tfc_model_device_count", ctypes.c_int32, _pointer)
_declare("tfc_model_device_name", _text, _pointer, ctypes.c_int32)
_declare("tfc_model_tensor_type", _pointer, _pointer, _text, ctypes.POINTER(ctypes.c_int32))
_declare("tfc_call_prepare", _pointer, _pointer, ctypes.POINTER(CallSpec), ctypes.POINTER(_pointer))
_declare("tfc_call_run", _pointer, _pointer, _arrays, _arrays)
_declare("tfc_call_step_us", ctypes.c_double, _pointer)
_declare("tfc_call_free", None, _pointer)
_declare("tfc_call_profile", _pointer, _pointer, _arrays, _arrays, ctypes.POINTER(_pointer))
_declare("tfc_profile_count", ctypes.c_size_t, _pointer)
_declare("tfc_profile_events", ctypes.POINTER(Event), _pointer)
_declare("tfc_profile_free", None, _pointer)
