# SPDX-License-Identifier: Apache-2.0
"""Finds an interpreter that has PyTorch or numpy if the first python3 on the PATH does not."""

import importlib
import os
import shlex
import subprocess
import sys

from export.errors import UserError, first_line

# Set in the environment of the second run, to prevent a third.
RETRY_MARK = "NPU_EXPORT_RETRY"


def require(modules, advice):
    """Imports modules, or executes the running program again with an interpreter that can.

    $PYTHON, python3 and /usr/bin/python3 are tried. Raises UserError with `advice` if none can.
    """
    try:
        for name in modules:
            importlib.import_module(name)
    except ImportError as error:
        if not os.environ.get(RETRY_MARK):
            for candidate in (os.environ.get("PYTHON"), "python3", "/usr/bin/python3"):
                command = shlex.split(candidate) if candidate else None
                if command and can_import(command, modules):
                    os.environ[RETRY_MARK] = "1"
                    os.execvp(command[0], command + [os.path.abspath(sys.argv[0])] + sys.argv[1:])
        raise UserError(
            f"no Python interpreter here can import {' and '.join(modules)} ({first_line(error)}); {advice}"
        ) from None


def can_import(command, modules):
    try:
        probe = subprocess.run(
            command + ["-c", "import " + ", ".join(modules)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except OSError:
        return False
    return probe.returncode == 0


def require_torch(needs_torchvision=False):
    require(
        ["torch"] + (["torchvision"] if needs_torchvision else []),
        "on Debian: apt-get install python3-torch python3-torchvision, or name an interpreter in $PYTHON",
    )
