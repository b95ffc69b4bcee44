#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports a torchvision model to ONNX with quantize and dequantize nodes, for speed comparisons.

Input:  SPEC, as for export_onnx.py, the same seed.
Output: DIR/NAME.qdq.onnx, opset 13: batch norms folded, int8 weights with a scale for each channel,
uint8 activations with the least and the largest value of eight random inputs as their range, behind
every op but those whose result goes into an activation only. The same file runs in npu-run and in
ONNX Runtime. Accuracy is nothing that this script cares for.
"""

import argparse
import operator
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import export_onnx  # noqa: E402  finds an interpreter that has torch, too


def quantized(torch, model, inputs):
    """The model with fake quantization of weights and results."""
    from torch.fx.experimental import optimization

    nn = torch.nn
    functional = nn.functional
    activations = (nn.ReLU, nn.ReLU6, nn.Hardswish, nn.SiLU, nn.Hardsigmoid, nn.Sigmoid)
    activation_functions = (functional.relu, functional.relu6, torch.relu, torch.sigmoid)
    moving = (nn.Dropout, nn.Identity, torch.flatten, functional.dropout)

    class Quantize(nn.Module):
        def __init__(self):
            super().__init__()
            self.low = self.high = 0.0
            self.observes = True

        def forward(self, x):
            if self.observes:
                self.low = min(self.low, float(x.min()))
                self.high = max(self.high, float(x.max()))
                return x
            scale = max((self.high - self.low) / 255, 1e-12)
            zero = min(max(round(-self.low / scale), 0), 255)
            return torch.fake_quantize_per_tensor_affine(x, scale, zero, 0, 255)

    class Weighted(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer
            largest = layer.weight.detach().flatten(1).abs().amax(1).clamp_min(1e-12)
            self.register_buffer("scales", largest / 127)
            self.register_buffer("zeros", torch.zeros(len(largest), dtype=torch.int32))

        def forward(self, x):
            weight = torch.fake_quantize_per_channel_affine(
                self.layer.weight, self.scales, self.zeros, 0, -128, 127
            )
            if isinstance(self.layer, nn.Linear):
                return functional.linear(x, weight, self.layer.bias)
            return self.layer._conv_forward(x, weight, self.layer.bias)

    traced = optimization.fuse(model)
    graph = traced.graph
    modules = dict(traced.named_modules())

    def kind(node):
        return type(modules[node.target]) if node.op == "call_module" else node.target

    def is_activation(node):
        return kind(node) in activations or kind(node) in activation_functions

    for name, module in list(modules.items()):
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            parent, _, leaf = name.rpartition(".")
            setattr(modules[parent] if parent else traced, leaf, Weighted(module))
    count = 0
    for node in list(graph.nodes):
        if node.op == "output" or kind(node) in moving or node.op == "get_attr":
            continue
        if node.op == "call_function" and node.target in (operator.getitem, getattr):
            continue
        if node.users and all(is_activation(user) for user in node.users):
            continue
        if all(user.op == "output" for user in node.users):
            continue
        name = f"quantize_{count}"
        count += 1
        traced.add_module(name, Quantize())
        with graph.inserting_after(node):
            inserted = graph.call_module(name)
        node.replace_all_uses_with(inserted)
        inserted.args = (node,)
    traced.recompile()
    traced.eval()
    with torch.no_grad():
        for seed in range(8):
            torch.manual_seed(seed)
            traced(*[torch.randn_like(x) for x in inputs])
    for module in traced.modules():
        if isinstance(module, Quantize):
            module.observes = False
    return traced


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("spec", help="torchvision:NAME")
    parser.add_argument("-o", "--output", default=".", metavar="DIR")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch, model, example, name = export_onnx.build_model(arguments.spec, arguments.seed)
    inputs = example if isinstance(example, (tuple, list)) else (example,)
    path = os.path.join(arguments.output, name + ".qdq.onnx")
    model = quantized(torch, model, inputs)
    torch.onnx.export(model, tuple(inputs), path, opset_version=13, input_names=["x"])
    print(path)


if __name__ == "__main__":
    main()
