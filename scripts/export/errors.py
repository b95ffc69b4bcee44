# SPDX-License-Identifier: Apache-2.0
"""Errors that a user can act on, and warnings."""

import os
import sys


class UserError(Exception):
    """An error that the user can act on; printed as one message, without a traceback."""


def program():
    """The name of the running program, which its messages begin with."""
    return os.path.splitext(os.path.basename(sys.argv[0]))[0]


def warn(text):
    print(f"{program()}: warning: {text}", file=sys.stderr)


def first_line(error):
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__
