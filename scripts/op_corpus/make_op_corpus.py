#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the corpus of single-op and small-model cases: documents, inputs and PyTorch's results.

Output: CATEGORY.json     {"category": ..., "cases": [{"name", "rtol", "atol", "ir"}, ...]}, one
                          case a line; "exact": true where every bit has to agree
        CATEGORY.safetensors  CASE/in/NAME by graph input, CASE/weight/KEY by state-dict key,
                          CASE/out/NAME by graph output

A case is a graph of calls of ATen overloads. Each is executed as it is added, and written by the
code that exports whole models (export_torch.py), so arguments have the form of a real export:
tensors flattened, trailing defaults left out, a number in place of a tensor where a model has one.
Some cases then change that form in ways that other exporters use.

Ops that PyTorch 2 has and the installed version lacks are described by PyTorch 2's schema and a
reference in plain arithmetic, in float64 where results are rounded.

Values come from integers that a seed and the case's name give, so a new case changes no other, and
files are the same on every CPU but for the last bits of results. Tensors are tiny.
"""

import argparse
import importlib
import pathlib
import sys

sys.dont_write_bytecode = True  # leave no __pycache__ beside the scripts
# Instead of this folder, whose modules are parts of the package: export/ and op_corpus/ are found there.
sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
from export.errors import UserError  # noqa: E402
from export.interpreter import require_torch  # noqa: E402

PROGRAM = "make_op_corpus"

# Name of the file pair, function of the same module, whether results are copies and so exact.
CATEGORIES = [
    ("convolution", "convolution", False),
    ("linear", "linear", False),
    ("activation", "activation", False),
    ("normalization", "normalization", False),
    ("pooling", "pooling", False),
    ("elementwise", "elementwise", False),
    ("shape", "shape", True),
    ("concat_split", "concat_split", True),
    ("reduction", "reduction", False),
    ("softmax_attention", "softmax_attention", False),
    ("embedding", "embedding", False),
    ("indexing", "indexing", False),
    ("comparison", "comparison", False),
    ("casts_memory", "casts_memory", True),
    ("rnn", "rnn", False),
    ("misc", "misc", False),
    ("creation", "creation", True),
    ("structure", "structure", False),
    ("after_convolution", "after_convolution", False),
    ("newer_ops", "newer", False),
    ("models", "models", False),
]


def parse_options(argv):
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Make the corpus of op cases: documents, inputs and PyTorch's results.",
        epilog="""\
Examples:
  make_op_corpus.py -o testdata/ops
  make_op_corpus.py -o scratch --category pooling --category rnn

Needs PyTorch 1.13 (Debian: python3-torch). If this interpreter cannot import it, $PYTHON, python3
and /usr/bin/python3 are tried.

Exit status: 0 done; 1 a case cannot be made, or I/O; 2 wrong usage.""",
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", required=True, help="folder to write to; made if missing"
    )
    parser.add_argument(
        "--category",
        action="append",
        metavar="NAME",
        choices=[name for name, _, _ in CATEGORIES],
        help="write this one only; repeatable (default: all)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of all values (default %(default)s)")
    return parser.parse_args(argv)


def make_corpus(options):
    from export.files import write_files
    from export.torch_tensors import write_safetensors
    from op_corpus.category import Category

    writers = {}
    total = 0
    for name, function, exact in CATEGORIES:
        if options.category and name not in options.category:
            continue
        category = Category(name, options.seed, exact)
        getattr(importlib.import_module(f"op_corpus.{function}"), function)(category)
        total += len(category.cases)
        print(f"{PROGRAM}: {name}: {len(category.cases)} cases", file=sys.stderr)
        text, tensors = category.text(), category.tensors
        writers[f"{name}.json"] = lambda file, text=text: file.write(text.encode())
        writers[f"{name}.safetensors"] = lambda file, tensors=tensors: write_safetensors(
            file, tensors
        )
    write_files(options.output, writers)
    print(f"{PROGRAM}: {total} cases", file=sys.stderr)


def main(argv):
    options = parse_options(argv)
    try:
        require_torch()
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(options.seed)
        with torch.no_grad():
            make_corpus(options)
    except UserError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
