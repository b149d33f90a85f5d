"""Runs TensorFlow graphs without TensorFlow, and finds out where their operations should run.

    import tfc
    model = tfc.load("nmt.pb")
    loss = model.run("loss:0", {"source:0": batch}, targets=["train_op"])

    placement = tfc.place("nmt.pb", devices=4)
    model = tfc.load("nmt.pb", placement=placement)

Arrays are numpy's. Feeds are read where they lie and results are not copied. Several threads may run one model.
"""

from tfc._arrays import Error, Event
from tfc._model import Model, load
from tfc._place import Placement, place
from tfc import _library

__version__ = _library.lib.tfc_library_version().decode()
__all__ = ["Error", "Event", "Model", "Placement", "load", "place"]
