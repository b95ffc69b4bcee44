# SPDX-License-Identifier: Apache-2.0
"""Exports one model to its files."""

import sys

import torch

from export.check import check_files, check_steps
from export.document import format_document, make_document
from export.dynamic import SeveralSizes, export_template, names_of_sizes, parse_dynamic, take_ranges
from export.entries import check_dynamic, dynamic_of, share_states
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
    """Reads the model that the options name, and writes its documents and tensors."""
    torch.manual_seed(options.seed)
    if options.source == "torchvision":
        return export_one(options, options.name, *load_torchvision(options.what, options.batch), options.dynamic)
    loaded = load_function(options.source, options.what, options.batch)
    if options.start and not isinstance(loaded, dict):
        raise UserError("--start is for models of several entries, whose decoder is one of them")
    if not isinstance(loaded, dict):
        return export_one(options, options.name, *loaded, options.dynamic)
    export_entries(options, loaded)


def export_entries(options, entries):
    """A document NAME.ENTRY of each entry; see entries.py."""
    if not options.state or options.check or options.dtype:
        raise UserError("a model of several entries needs --state, and goes with neither --check nor --dtype")
    check_dynamic([(name, inputs) for name, (_, inputs) in entries.items()], options.dynamic)
    memories = []
    for model, inputs in entries.values():
        model.eval()
        memories.append(Memory(model, inputs))
        run_model(model, inputs)  # what it leaves is what the next one reads
    for memory in memories:
        memory.put_back()
    share_states(memories)
    for memory in memories:
        memory.start = options.start
    for (name, (model, inputs)), memory in zip(entries.items(), memories):
        dynamic = dynamic_of(name, inputs, options.dynamic)
        export_one(options, f"{options.name}.{name}", model, inputs, dynamic, memory)
        run_model(model, inputs)


def export_one(options, name, model, inputs, dynamic, memory=None):
    """Writes the document and the tensors of one model; `memory` is given for an entry of several."""
    is_entry = memory is not None
    model.eval()
    if options.state and not is_entry:
        memory = Memory(model, inputs)
    if not options.trained and not is_entry:
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
    if not reference and not (is_entry and memory.kept):
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
                check_steps(make_document(name, builder, outputs, False), builder, memory, inputs)
            template = template_of(name, model, inputs, names, dynamic, options, memory) if dynamic else None
    except TraceError:
        raise
    except Exception as error:
        what = str(error) if isinstance(error, UserError) else f"cannot trace the model: {first_line(error)}"
        raise UserError(with_place(what, place_of_error(model, error))) from None
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


def template_of(name, model, inputs, names, dynamic, options, memory):
    """The document of a model whose sizes vary."""
    sizes = SeveralSizes(parse_dynamic(dynamic), inputs)
    if has_torch_export():
        program = program_of(model, inputs, sizes, memory)
        symbols = names_of_sizes(sizes, shapes_of_inputs(program, inputs.names))
        take_ranges(sizes, symbols, getattr(program, "range_constraints", {}))

        def build(resized):
            return read_program(program, model, resized, symbols, memory)

    else:

        def build(resized):
            run_model(model, resized)  # what the model does not take is its own message
            if memory:
                memory.put_back()
            return build_with_trace(model, resized, memory)

    return export_template(name, sizes, build, names, not options.structure_only)
