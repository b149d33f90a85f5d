"""tfc's programs as a wheel has them: commands that start the program that lies in this package."""

import os
import sys


def _start(name):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    os.execv(program, [name] + sys.argv[1:])


def tfc_place():
    _start("tfc-place")


def tfc_run():
    _start("tfc-run")


def tfc_report():
    _start("tfc-report")


def tfc_export():
    _start("tfc-export")
