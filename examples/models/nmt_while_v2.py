"""The model of nmt_while with functional While loops, tensor lists and resource variables."""

from common import Example
from models import nmt_while


def example():
    return Example("nmt_while_v2", nmt_while.build, [nmt_while.feeds(0), nmt_while.feeds(1)],
                   resource_variables=True, control_flow_v2=True)
