#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports a model to ONNX, with the weights and example inputs that export_torch.py gives it.

Input:  SPEC, as for export_torch.py (torchvision:NAME or FILE.py:FUNCTION), the same seed.
Output: DIR/NAME.onnx, opset 14 or 16, batch norms as PyTorch folds them in evaluation mode. Inputs and
outputs are called as in DIR/NAME.inputs.safetensors and DIR/NAME.outputs.safetensors, if those are
there, so that npu-run takes them.

Only the peers of vs_peers.sh need this. --eager N times the model in PyTorch itself, instead, and
prints one JSON object; --outputs FILE keeps what it computed.
"""

import argparse
import json
import math
import os
import resource
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from export.errors import UserError  # noqa: E402
from export.interpreter import require_torch  # noqa: E402

OPSETS = (14, 16)  # the second for models that the first cannot say, such as those with grid_sample


def plain_attention(torch):
    """Scaled dot-product attention in terms of ops that the exporter knows."""

    def attention(query, key, value, attn_mask=None, dropout_p=0.0, *_, is_causal=False):
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
        if is_causal:
            attn_mask = torch.full(scores.shape[-2:], float("-inf")).triu(1)
        if attn_mask is not None:
            scores = scores + attn_mask
        weights = torch.softmax(scores, -1)
        return torch.matmul(weights, value), weights

    return attention


def build_model(spec, seed, batch):
    source, _, what = spec.rpartition(":")
    require_torch(source == "torchvision")
    import torch
    from export import models

    torch.manual_seed(seed)
    if source == "torchvision":
        model, inputs = models.load_torchvision(what, batch)
    else:
        model, inputs = models.load_function(source, what, batch)
    model.eval()
    with torch.no_grad():
        models.calibrate_batch_norms(model, inputs, seed)
    return torch, model, inputs.args, what


def tensor_names(path):
    """The names in a safetensors file, in its order; none if there is no such file."""
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        return [name for name in json.loads(file.read(size)) if name != "__metadata__"]


def write_onnx(torch, model, example, path):
    stem = path.removesuffix(".onnx")
    names = {
        "input_names": tensor_names(stem + ".inputs.safetensors"),
        "output_names": tensor_names(stem + ".outputs.safetensors"),
    }
    backend = torch._C._nn
    original = getattr(backend, "_scaled_dot_product_attention", None)
    if original is not None:
        backend._scaled_dot_product_attention = plain_attention(torch)
    try:
        from export.patches import ordinary_attention

        for opset in OPSETS:
            try:
                with torch.no_grad(), ordinary_attention():
                    torch.onnx.export(model, example, path + ".part", opset_version=opset, **names)
                break
            except torch.onnx.errors.OnnxExporterError:
                if opset == OPSETS[-1]:
                    raise
    finally:
        if original is not None:
            backend._scaled_dot_product_attention = original
    os.replace(path + ".part", path)


def time_eager(torch, model, example, runs, threads, outputs):
    torch.set_num_threads(threads)
    times = []
    with torch.no_grad():
        for _ in range(runs + 2):
            begin = time.perf_counter()
            results = model(*example)
            times.append((time.perf_counter() - begin) * 1000)
    if outputs:
        from export.structure import named_outputs
        from export.torch_tensors import write_safetensors

        tensors = [tensor for _, tensor in named_outputs(results)]
        with open(outputs, "wb") as file:
            write_safetensors(file, {str(i): t for i, t in enumerate(tensors)})
    timed = sorted(times[2:])
    middle = len(timed) // 2
    median = timed[middle] if len(timed) % 2 else (timed[middle - 1] + timed[middle]) / 2
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"median_ms": median, "min_ms": timed[0], "first_ms": times[0], "peak_rss_bytes": peak}


def main(argv):
    parser = argparse.ArgumentParser(description="Export a model to ONNX, or time it in PyTorch.")
    parser.add_argument("spec", metavar="SPEC", help="torchvision:NAME or FILE.py:FUNCTION")
    parser.add_argument("-o", "--output", metavar="DIR", default=".", help="folder to write to")
    parser.add_argument("--seed", type=int, default=0, help="as given to export_torch.py")
    parser.add_argument("--batch", type=int, help="batch size, as given to export_torch.py")
    parser.add_argument("--eager", type=int, metavar="N", help="time N runs in PyTorch instead")
    parser.add_argument("--threads", type=int, default=2, help="threads of --eager")
    parser.add_argument("--outputs", metavar="FILE", help="safetensors file for --eager's results")
    options = parser.parse_args(argv)
    try:
        torch, model, example, name = build_model(options.spec, options.seed, options.batch)
        if options.eager:
            result = time_eager(
                torch, model, example, options.eager, options.threads, options.outputs
            )
            print(json.dumps(result))
        else:
            write_onnx(torch, model, example, os.path.join(options.output, name + ".onnx"))
    except UserError as error:
        print(f"export_onnx: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
