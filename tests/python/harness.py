# SPDX-License-Identifier: Apache-2.0
"""Runs the exporters in this process, since importing PyTorch takes seconds, and the programs beside it."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys

SOURCE, BIN = sys.argv[1], sys.argv[2]
HAS_CPU = os.path.exists(f"{BIN}/../lib/npu/backends/npu_backend_aten.so")
sys.dont_write_bytecode = True
sys.path.insert(0, f"{SOURCE}/scripts")


def run_exporter(main, name, *arguments):
    """(exit status, what it wrote to stderr)."""
    stderr, argv = io.StringIO(), sys.argv
    sys.argv = [f"{name}.py", *arguments]
    try:
        with contextlib.redirect_stderr(stderr):
            status = main()
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 1 if leaving.code else 0
        stderr.write("" if isinstance(leaving.code, int) else str(leaving.code or ""))
    finally:
        sys.argv = argv
    return status or 0, stderr.getvalue()


def take(main, name, *arguments):
    status, text = run_exporter(main, name, *arguments)
    assert status == 0, f"{name} {' '.join(arguments)}: exit {status}: {text}"
    return text


def refuse(main, name, wanted, pattern, *arguments):
    status, text = run_exporter(main, name, *arguments)
    assert status == wanted, f"{name} {' '.join(arguments)}: exit {status}, expected {wanted}: {text}"
    assert re.search(pattern, text) and "Traceback" not in text, f"{name} {' '.join(arguments)}: {text}"


def names_of(path):
    """The names of a document's inputs and outputs."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    return [entry["name"] for key in ("graph_inputs", "graph_outputs") for entry in document[key]]


def run_program(name, *arguments):
    """Runs one of the programs, where this build has the device cpu."""
    if HAS_CPU:
        result = subprocess.run([f"{BIN}/{name}", "-q", *arguments], capture_output=True, text=True, check=False)
        assert result.returncode == 0, f"{name} {' '.join(arguments)}: exit {result.returncode}: {result.stderr}"


def run_document(stem):
    """Whether npu-run computes what PyTorch did."""
    expected = ["--inputs", f"{stem}.inputs.safetensors", "--expect", f"{stem}.outputs.safetensors"]
    run_program("npu-run", f"{stem}.json", *expected)
