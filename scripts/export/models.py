# SPDX-License-Identifier: Apache-2.0
"""Models: from torchvision or from a function of the user, their statistics and their results."""

import collections.abc
import difflib
import importlib.util
import inspect
import os
import sys

import torch

from export.entries import are_entries, as_module, check_names
from export.errors import UserError, first_line
from export.patches import ordinary_attention
from export.places import place_of_error, with_place
from export.structure import Inputs

# The image size that a model needs, where it is not 224.
IMAGE_SIZES = {"inception_v3": 299, "swin_v2_t": 256, "swin_v2_s": 256, "swin_v2_b": 256}
# What a model of another kind than classification of images is shown: tensors for a batch of one.
EXAMPLES = {
    "segmentation": [(3, 224, 224)],
    "video": [(3, 16, 112, 112)],
    "optical_flow": [(3, 128, 160), (3, 128, 160)],  # multiples of 8, at least 128
}
VIDEO_SIZES = {"s3d": (3, 16, 224, 224), "mvit_v1_b": (3, 16, 224, 224), "mvit_v2_s": (3, 16, 224, 224)}


def torchvision_models():
    """The functions that make models, by name, each with its kind; no kind: classification of images."""
    import torchvision

    found = {}
    for kind in ("", *EXAMPLES):
        module = getattr(torchvision.models, kind, None) if kind else torchvision.models
        for name, item in vars(module).items() if module else ():
            if inspect.isfunction(item) and "weights" in inspect.signature(item).parameters:
                found.setdefault(name, (item, kind))
    return found


def load_torchvision(name, batch):
    known = torchvision_models()
    if name not in known:
        near = difflib.get_close_matches(name, sorted(known), n=4, cutoff=0.5)
        advice = f"; did you mean {', '.join(near)}?" if near else f"; known: {', '.join(sorted(known))}"
        raise UserError(f"torchvision has no model '{name}'{advice}")
    function, kind = known[name]
    # Their truncated-normal initialisation takes minutes and has no benefit here.
    extra = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    if "weights_backbone" in inspect.signature(function).parameters:
        extra["weights_backbone"] = None  # would be downloaded
    model = function(weights=None, **extra)
    # Heads that start at zero and layer scales that start at 1e-6 would hide everything before them.
    for parameter in model.parameters():
        if parameter.dim() > 1 and parameter.numel() > 1 and parameter.abs().max() < 1e-3:
            torch.nn.init.normal_(parameter, std=0.05)
    size = IMAGE_SIZES.get(name, 224)
    shapes = [(3, size, size)] if not kind else EXAMPLES[kind]
    if name in VIDEO_SIZES:
        shapes = [VIDEO_SIZES[name]]
    return model, Inputs(model, [torch.randn(batch or 1, *shape) for shape in shapes])


def load_function(path, function_name, batch):
    """(model, inputs), or such a pair for each entry, by its name."""
    if not os.path.isfile(path):
        raise UserError(f"{path}: no such file")
    sys.dont_write_bytecode = True  # leave no __pycache__ beside the model
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise UserError(f"{path}: not a Python file (expected FILE.py:FUNCTION)")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)  # dataclasses look up their module
    guarded(f"{path}: cannot load", lambda: spec.loader.exec_module(module))
    function = getattr(module, function_name, None)
    if not callable(function):
        own = [k for k, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == name]
        own = [key for key in own if not key.startswith("_")]
        near = difflib.get_close_matches(function_name, own, n=3, cutoff=0.5) or own
        raise UserError(f"{path}: no function '{function_name}'; it has {', '.join(near) or 'none'}")
    if batch is not None and "batch" not in inspect.signature(function).parameters:
        raise UserError(f"{path}:{function_name} takes no `batch`, so --batch {batch} cannot be met")
    result = guarded(f"{path}:{function_name} failed", lambda: function(**({} if batch is None else {"batch": batch})))
    whose = f"{path}:{function_name}"
    if not are_entries(result):
        return model_and_inputs(result, whose)
    check_names(result, whose)
    return {name: model_and_inputs(entry, f"{whose}['{name}']") for name, entry in result.items()}


def guarded(what, run):
    """Runs code of the user; whatever goes wrong in it becomes one line, with the place."""
    try:
        return run()
    except (Exception, SystemExit) as error:
        raise UserError(with_place(f"{what}: {first_line(error)}", place_of_error(None, error))) from None


def model_and_inputs(result, whose):
    """What a user's function returned: (model, args), (model, args, kwargs), or (model, kwargs)."""
    model = as_module(result[0]) if isinstance(result, tuple) and len(result) in (2, 3) else None
    if not isinstance(model, torch.nn.Module):
        raise UserError(f"{whose} must return (model, example inputs) or (model, args, kwargs), or a mapping of such entries")
    args = result[1]
    kwargs = (result[2] if len(result) == 3 else None) or {}
    if isinstance(args, collections.abc.Mapping) and not kwargs:
        args, kwargs = (), args
    if args is None or isinstance(args, torch.Tensor):
        args = () if args is None else (args,)
    if not isinstance(args, (list, tuple)):
        raise UserError(f"{whose}: the example inputs are a {type(args).__name__}, expected a tuple")
    if not isinstance(kwargs, collections.abc.Mapping) or not all(isinstance(key, str) for key in kwargs):
        raise UserError(f"{whose}: kwargs must be a mapping from names to inputs")
    try:
        return model, Inputs(model, args, kwargs)
    except UserError as error:
        raise UserError(f"{whose}: {error}") from None


def calibrate_batch_norms(model, inputs, seed):
    """Sets running statistics near those of the example; see export_torch.py."""
    generator = torch.Generator().manual_seed(seed + 1)
    kinds = torch.nn.modules.batchnorm._BatchNorm
    modules = [m for m in model.modules() if isinstance(m, kinds) and m.running_mean is not None]

    def jitter(like, low, high):
        return torch.rand(like.shape, generator=generator).to(like.dtype) * (high - low) + low

    def before(module, inputs):
        x = inputs[0].transpose(0, 1).flatten(1)
        if x.shape[1] < 4:  # too few values per channel for a variance
            x = x.reshape(1, -1).expand(x.shape[0], -1)
        variance = x.var(dim=1, unbiased=False).clamp_min(1e-3) * jitter(module.running_var, 0.8, 1.25)
        mean = x.mean(dim=1) + variance.sqrt() * jitter(module.running_mean, -0.2, 0.2)
        # Rounded, so that the last bits of another CPU's sums do not change the files.
        module.running_mean.copy_(mean.bfloat16())
        module.running_var.copy_(variance.bfloat16())

    for module in modules:
        if module.affine:
            module.weight.copy_(jitter(module.weight, 0.9, 1.1))
            module.bias.copy_(jitter(module.bias, -0.1, 0.1))
    hooks = [module.register_forward_pre_hook(before) for module in modules]
    if hooks:
        run_model(model, inputs)
    for hook in hooks:
        hook.remove()


def run_model(model, inputs):
    """What the model returns for copies of the example inputs."""
    args, kwargs = inputs.bind(inputs.copies())
    try:
        with ordinary_attention():
            return model(*args, **kwargs)
    except Exception as error:
        raise UserError(with_place(f"forward() failed: {first_line(error)}", place_of_error(model, error))) from None


def model_tensors(model):
    """(key, tensor, kind) of parameters, then buffers; a tied tensor once, under its first key."""
    for key, tensor in model.named_parameters():
        yield key, tensor, "parameter"
    for key, tensor in model.named_buffers():
        yield key, tensor, "buffer"
