# SPDX-License-Identifier: Apache-2.0
"""Says where in a model something is: module, file and line, and what is called there."""

import os
import re
import traceback

import torch

FOREIGN = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(os.path.abspath(__file__)) + os.sep)


def is_of_model(path):
    """Whether a file is neither PyTorch's nor the exporter's."""
    return not os.path.abspath(path).startswith(FOREIGN)


def module_text(model, module):
    """Empty for what is no module of the model."""
    for name, known in model.named_modules():
        if known is module:
            return f"module '{name}' ({type(module).__name__})" if name else f"module {type(module).__name__}"
    return ""


def place_of_error(model, error):
    """Of an exception that came while the model ran: the innermost module and line, and what that line calls."""
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
    return ", ".join(filter(None, [module, place, called]))


def place_of_source(ranges):
    """The innermost line of the model in a stack as the tracer or torch.export writes it."""
    found = ""
    for path, line in re.findall(r'^(?:\s*File ")?([^"\n(]+?)(?:", line |\()(\d+)', ranges or "", re.MULTILINE):
        if is_of_model(path):
            found = f"{os.path.basename(path)}:{line}"
            if "File" not in ranges:  # the tracer begins with the innermost, Python ends with it
                break
    return found
