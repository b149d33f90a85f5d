"""Models of families that users have (see README.md)."""

from . import audio, narrow, sequence, tables, vision  # noqa: F401  (importing them registers their models)
from .build import MODELS, make  # noqa: F401
