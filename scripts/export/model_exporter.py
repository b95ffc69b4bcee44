# SPDX-License-Identifier: Apache-2.0
"""Exports one model to its files."""

import sys

import torch

from export.check import check_files, check_steps
from export.document import format_document, make_document
from export.dynamic import SeveralSizes, export_template, names_of_sizes, parse_dynamic
from export.errors import TraceError, UserError, first_line, program
from export.files import write_files
from export.from_export import build_with_export, has_torch_export, program_of, read_program, shapes_of_inputs
from export.from_trace import build_with_trace
from export.memory import Memory
from export.models import calibrate_batch_norms, load_function, load_torchvision, run_model
from export.patches import ordinary_attention
from export.places import place_of_error, with_place
from export.states import check_states
from export.structure import named_outputs
from export.torch_tensors import write_safetensors


def export_model(options):
    """Reads the model that the options name, and writes its document and tensors."""
    torch.manual_seed(options.seed)
    if options.source == "torchvision":
        model, inputs = load_torchvision(options.what, options.batch)
    else:
        model, inputs = load_function(options.source, options.what, options.batch)
    model.eval()
    memory = Memory(model, inputs) if options.state else None
    if not options.trained:
        calibrate_batch_norms(model, inputs, options.seed)
    if options.dtype:
        dtype = getattr(torch, options.dtype)
        model.to(dtype)
        inputs.convert(dtype)
        memory = Memory(model, inputs) if options.state else None
    if memory:
        memory.put_back()
    # Copies, so that a model that writes to its inputs or outputs later cannot change the files.
    reference = [(key, tensor.clone()) for key, tensor in named_outputs(run_model(model, inputs))]
    if memory:
        memory.put_back()
    if not reference:
        raise UserError("forward() returns no tensor")
    build = build_with_export if has_torch_export() else build_with_trace
    names = [key for key, _ in reference]
    try:
        with ordinary_attention():
            builder, results = build(model, inputs, memory)
            if len(results) != len(reference):
                raise UserError(f"the trace has {len(results)} outputs, the model {len(reference)}")
            outputs = builder.finish(results, names)
            if memory:
                check_states(builder, memory)
                check_steps(make_document(options.name, builder, outputs, False), builder, memory, inputs)
            template = template_of(model, inputs, names, options, memory) if options.dynamic else None
    except TraceError:
        raise
    except Exception as error:
        what = str(error) if isinstance(error, UserError) else f"cannot trace the model: {first_line(error)}"
        raise UserError(with_place(what, place_of_error(model, error))) from None
    name = options.name
    text = format_document(template or make_document(name, builder, outputs, not options.structure_only))
    writers = {f"{name}.json": lambda file: file.write(text.encode())}
    if not options.structure_only:
        weights = {value.key: value.tensor for value in builder.weights}
        inputs = {value.name: tensor for value, tensor in zip(builder.inputs, inputs.tensors)}
        results = {value.name: tensor for value, (_, tensor) in zip(outputs, reference)}
        writers[f"{name}.safetensors"] = lambda file: write_safetensors(file, weights)
        writers[f"{name}.inputs.safetensors"] = lambda file: write_safetensors(file, inputs)
        writers[f"{name}.outputs.safetensors"] = lambda file: write_safetensors(file, results)
    write_files(options.output, writers)
    if options.check and template is None:
        print(f"{program()}: {name}: {check_files(options.output, name)}", file=sys.stderr)


def template_of(model, inputs, names, options, memory):
    """The document of a model whose sizes vary."""
    sizes = SeveralSizes(parse_dynamic(options.dynamic), inputs)
    if has_torch_export():
        program = program_of(model, inputs, sizes, memory)
        symbols = names_of_sizes(sizes, shapes_of_inputs(program, inputs.names))

        def build(resized):
            return read_program(program, model, resized, symbols, memory)

    else:

        def build(resized):
            run_model(model, resized)  # what the model does not take is its own message
            if memory:
                memory.put_back()
            return build_with_trace(model, resized, memory)

    return export_template(options.name, sizes, build, names, not options.structure_only)
