# SPDX-License-Identifier: Apache-2.0
"""Says where in a model something is: module, file and line, and what is called there."""

import os
import re
import traceback

import torch

FOREIGN = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(os.path.abspath(__file__)) + os.sep)
STANDARD = os.path.dirname(os.__file__) + os.sep


def is_of_model(path):
    """Whether a file is neither PyTorch's nor the exporter's nor of Python itself."""
    path = os.path.abspath(path) if not path.startswith("<") else ""
    is_standard = path.startswith(STANDARD) and "-packages" not in path
    return path != "" and not path.startswith(FOREIGN) and not is_standard


def module_text(model, module):
    """Empty for what is no module of the model."""
    for name, known in model.named_modules() if model is not None else ():
        if known is module:
            return describe_module(name, type(module).__name__)
    return ""


def describe_module(name, kind):
    return f"module '{name}' ({kind})" if name else f"module {kind}"


def with_place(what, *places):
    """A message and, in brackets, those of the places that are known and that it does not name already."""
    known = ", ".join(place for place in places if place and place not in what)
    return f"{what} ({known})" if known else what


def place_of_error(model, error):
    """Of an exception that came while the model ran: the innermost module and line, and what that line calls.

    torch.export says in the text of its own errors where they came from.
    """
    module, place, called = "", "", ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch.nn.Module):
            module = module_text(model, owner) or module
        if is_of_model(code.co_filename):
            place, called = f"{os.path.basename(code.co_filename)}:{line}", ""
        elif place and not called and code.co_name not in ("_call_impl", "_slow_forward", "_wrapped_call_impl"):
            called = code.co_name
    text = str(error)
    place = place or (place_of_source(text) if 'File "' in text else "")
    return ", ".join(filter(None, [module, place, called]))


def place_of_source(ranges):
    """The innermost line of the model in a stack as Python, torch.export or the tracer writes it."""
    of_python = re.findall(r'^\s*File "([^"\n]+)", line (\d+)', ranges or "", re.MULTILINE)
    of_tracer = re.findall(r'^([^"\n(]+?)\((\d+)\)', ranges or "", re.MULTILINE)
    # The tracer begins with the innermost, Python ends with it.
    for path, line in of_python[::-1] or of_tracer:
        if is_of_model(path):
            return f"{os.path.basename(path)}:{line}"
    return ""
