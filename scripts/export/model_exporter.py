# SPDX-License-Identifier: Apache-2.0
"""Exports one model to its files."""

import sys

import torch

from export.check import check_files
from export.document import format_document, make_document
from export.errors import TraceError, UserError, first_line, program
from export.files import write_files
from export.from_export import build_with_export, has_torch_export
from export.from_trace import build_with_trace
from export.models import (
    calibrate_batch_norms,
    flatten_tensors,
    load_function,
    load_torchvision,
    run_model,
)
from export.patches import ordinary_attention
from export.places import place_of_error
from export.torch_tensors import write_safetensors


def export_model(options):
    """Reads the model that the options name, and writes its document and tensors."""
    torch.manual_seed(options.seed)
    if options.source == "torchvision":
        model, example = load_torchvision(options.what, options.batch)
    else:
        model, example = load_function(options.source, options.what, options.batch)
    model.eval()
    if not options.trained:
        calibrate_batch_norms(model, example, options.seed)
    if options.dtype:
        dtype = getattr(torch, options.dtype)
        model.to(dtype)
        example = tuple(t.to(dtype) if t.is_floating_point() else t for t in example)
    # Copies, so that a model that writes to its inputs or outputs later cannot change the files.
    reference = [tensor.clone() for tensor in flatten_tensors(run_model(model, example))]
    build = build_with_export if has_torch_export() else build_with_trace
    try:
        with ordinary_attention():
            builder, outputs = build(model, tuple(tensor.clone() for tensor in example))
    except TraceError:
        raise
    except Exception as error:
        place = place_of_error(model, error)
        what = str(error) if isinstance(error, UserError) else f"cannot trace the model: {first_line(error)}"
        raise UserError(what + (f" ({place})" if place else "")) from None
    if not outputs:
        raise UserError("forward() returns no tensor")
    if len(outputs) != len(reference):
        raise UserError(f"the trace has {len(outputs)} outputs, the model {len(reference)}")
    name = options.name
    text = format_document(make_document(name, builder, outputs, not options.structure_only))
    writers = {f"{name}.json": lambda file: file.write(text.encode())}
    if not options.structure_only:
        weights = {value.key: value.tensor for value in builder.weights}
        inputs = {value.name: tensor for value, tensor in zip(builder.inputs, example)}
        results = {value.name: tensor for value, tensor in zip(outputs, reference)}
        writers[f"{name}.safetensors"] = lambda file: write_safetensors(file, weights)
        writers[f"{name}.inputs.safetensors"] = lambda file: write_safetensors(file, inputs)
        writers[f"{name}.outputs.safetensors"] = lambda file: write_safetensors(file, results)
    write_files(options.output, writers)
    if options.check:
        print(f"{program()}: {name}: {check_files(options.output, name)}", file=sys.stderr)
