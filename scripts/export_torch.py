#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports a PyTorch model as an IR document with weights, example inputs and reference outputs.

Input:  torchvision:NAME, or FILE.py:FUNCTION with a function that returns (model, args) or
        (model, args, kwargs): tensors, or tuples, lists, mappings and dataclasses of them.
Output: NAME.json (the IR of npu-ir(5)), NAME.safetensors (weights by state-dict key),
        NAME.inputs.safetensors and NAME.outputs.safetensors (by graph input and output name).

Inputs have the names of the parameters of forward(), outputs those of the keys where forward()
returns a mapping or a dataclass; None is left out, and tuples are numbered (hidden_states_0).

The IR has the names and arguments that torch.export gives. PyTorch 2.1 and later are asked for
exactly that; PyTorch 1.13 has no torch.export, so there a torch.jit trace is rewritten to the same
names. Regions that torch.export keeps apart, without gradients or with autocast, are inlined, and
what autocast converts becomes ops; its checks are left out. Where a tensor's value decides what
runs, or a size, the choice for the example inputs is exported, with a warning. Either way every op
is executed once while the graph is built: that gives exact shapes and dtypes and shows which tensors
share memory, which in-place ops need. In the document an in-place op is functional, so writes
through views become scatters and later readers of any alias are rewired.

The reference outputs come from the original model, run eagerly, never from the trace.

No weights are downloaded: models are initialised at random from --seed. Batch-norm statistics are
then set from one pass over the example inputs, with some noise, rounded to bfloat16: at their
defaults deep networks fade to zero or blow up, and batch norm would not matter. For the same reason
the zero heads and tiny layer scales of some torchvision models are drawn anew.
"""

import argparse
import re
import sys

sys.dont_write_bytecode = True  # leave no __pycache__ beside the scripts
from export.errors import UserError, last_line_of  # noqa: E402
from export.interpreter import require_torch  # noqa: E402

PROGRAM = "export_torch"


def parse_options(argv):
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Export a PyTorch model as an IR document with weights, inputs and results.",
        epilog="""\
SPEC is one of
  torchvision:NAME      a torchvision model that classifies images (torchvision:resnet18), segments them
                        (fcn_resnet50), classifies videos (r3d_18) or estimates optical flow (raft_small)
  FILE.py:FUNCTION      a function without required arguments that returns (model, args) or (model,
                        args, kwargs) with example inputs; --batch is passed as its parameter `batch`

Inputs are named by the parameters of forward(), outputs by the keys of what it returns (a mapping or
a dataclass, as transformers has it), with numbers for the parts of tuples: hidden_states_0. Where a
tensor's value decides what runs, the choice for the example inputs is exported, with a warning.

Files in DIR: NAME.json (the IR), NAME.safetensors (weights), NAME.inputs.safetensors and
NAME.outputs.safetensors (the example inputs, and what PyTorch itself computes from them).

With --dynamic the model is exported at several sizes, which must be one graph whose numbers follow expressions
over the names; equal names are one size. /STEP behind the range admits only multiples, as x:2=H:64..512/32. A range
whose ends are another graph, as where forward() pads what is short, is refused. The files of inputs and outputs are
for the example's sizes.

With --state a tensor of the model that forward() writes, or puts another one in place of, is a state: an input that
begins with zeros and an output that is its next value, a pair of npu.states, which npu-run keeps on the device. One that
is overwritten before it is read is none. A model that reads tokens at positions and writes rows of its states there gets
npu.generate, for a loop over tokens. The files of inputs and outputs are those of the first step, without states.

A function may return a mapping of entries instead, {"encode": (model.encode, args), "decode": (model.decode, args)}:
modules that share buffers, or methods of one module. With --state each becomes the documents NAME.ENTRY; what one of them
writes and another one reads is a state of both, for npu-compile --entry. ENTRY.INPUT says which one --dynamic is for.

No weights are downloaded; they are random, from --seed. Running statistics and affine
parameters of batch norms are set near those of the example inputs with some noise, so that
activations stay sane and batch norm matters; --trained leaves them as the model has them.

Examples:
  export_torch.py torchvision:resnet18 -o zoo
  export_torch.py torchvision:mobilenet_v2 -o zoo --dtype bfloat16 --name mobilenet_v2_bf16
  export_torch.py torchvision:vit_b_16 -o testdata/models --structure-only
  export_torch.py testdata/models/bert_base.py:bert_base -o zoo --check
  export_torch.py testdata/models/gpt_small.py:gpt_small -o zoo --dynamic ids:1=S:1..64
  export_torch.py testdata/models/small_decoders.py:decoder_window -o zoo --state \\
    --dynamic input_ids:1=T:1..64 --dynamic cache_position:0=T

  export_torch.py testdata/models/translators.py:translator -o zoo --state --start 1 \\
    --dynamic source_ids:1=S:1..24 --dynamic input_ids:1=T:1..32 --dynamic cache_position:0=T

Needs PyTorch 1.13 or later (Debian: python3-torch python3-torchvision). If this interpreter
cannot import it, $PYTHON, python3 and /usr/bin/python3 are tried.

Exit status: 0 done; 1 the model cannot be exported, or I/O; 2 wrong usage.""",
    )
    parser.add_argument("spec", metavar="SPEC", help="the model (see below)")
    parser.add_argument(
        "-o", "--output", metavar="DIR", required=True, help="folder to write to; made if missing"
    )
    parser.add_argument(
        "--dtype",
        choices=["float32", "bfloat16", "float16", "float64"],
        help="convert weights and floating-point inputs (default: as the model is, usually float32)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of weights and inputs (default %(default)s)"
    )
    parser.add_argument(
        "--trained", action="store_true", help="leave the statistics of batch norms as the model has them"
    )
    parser.add_argument("--batch", type=int, help="batch size (default: 1, or the function's own)")
    parser.add_argument(
        "--dynamic",
        metavar="INPUT:DIM=NAME[:MIN..MAX]",
        action="append",
        default=[],
        help="let a dimension of an input vary, as the size NAME: the document is a template, for --bind; repeatable",
    )
    parser.add_argument(
        "--state",
        action="store_true",
        help="let the buffers that forward() changes be states: npu.states of the document",
    )
    parser.add_argument(
        "--start",
        metavar="ID,...",
        help="of a model of several entries: ids that its decoder begins with, for npu-run without --tokens",
    )
    parser.add_argument("--name", help="model name and file name (default: from SPEC)")
    parser.add_argument(
        "--structure-only", action="store_true", help="write NAME.json only, without weights"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="execute the written files op by op and compare with the reference outputs",
    )
    options = parser.parse_args(argv)
    source, colon, what = options.spec.rpartition(":")
    if not colon or not source or not what:
        parser.error(f"SPEC '{options.spec}' is neither torchvision:NAME nor FILE.py:FUNCTION")
    if source != "torchvision" and not source.endswith(".py"):
        parser.error(f"SPEC '{options.spec}': '{source}' is neither 'torchvision' nor a .py file")
    if options.batch is not None and options.batch < 1:
        parser.error(f"--batch: {options.batch} is not positive")
    if not 0 <= options.seed < 2**63:
        parser.error(f"--seed: {options.seed} is not in 0..2^63-1")
    if options.check and options.dynamic:
        parser.error("--check is for sizes that do not vary")
    if options.check and options.structure_only:
        parser.error("--check needs weights and outputs, which --structure-only leaves out")
    if options.start is not None and not re.fullmatch(r"\d{1,9}(,\d{1,9})*", options.start):
        parser.error(f"--start: '{options.start}' is no list of ids, such as 0 or 2,107")
    options.start = [int(text) for text in options.start.split(",")] if options.start else []
    options.name = options.name or what
    if not re.fullmatch(r"[\w][\w.+-]*", options.name):
        parser.error(f"--name: '{options.name}' is no plain file name")
    options.source, options.what = source, what
    return options


def main(argv):
    options = parse_options(argv)
    try:
        require_torch(options.source == "torchvision")
        import torch
        from export.model_exporter import export_model

        with torch.no_grad():
            export_model(options)
    except UserError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        print(f"{PROGRAM}: error: {last_line_of(error)}; please report", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
