# SPDX-License-Identifier: Apache-2.0
"""Errors that a user can act on, and warnings."""

import os
import sys
import traceback


class UserError(Exception):
    """An error that the user can act on; printed as one message, without a traceback."""


class TraceError(UserError):
    """A UserError that says already where in the model it is."""


def program():
    """The name of the running program, which its messages begin with."""
    return os.path.splitext(os.path.basename(sys.argv[0]))[0]


def warn(text):
    print(f"{program()}: warning: {text}", file=sys.stderr)


def warn_of_choice(path, line):
    """Of a line of the model that reads a tensor's value in Python."""
    place = f"{os.path.basename(path)}:{line}"
    warn(f"{place}: a tensor's value decides what runs; only this input's choice is exported")


def first_line(error):
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__


def last_line_of(error):
    """first_line with the innermost line of the exporter that it came through."""
    own = os.path.dirname(os.path.abspath(__file__))
    frames = [(f.f_code.co_filename, line) for f, line in traceback.walk_tb(error.__traceback__)]
    own_frames = [(path, line) for path, line in frames if os.path.abspath(path).startswith(own)] or frames
    path, line = own_frames[-1]
    return f"{first_line(error)} ({os.path.basename(path)}:{line})"
