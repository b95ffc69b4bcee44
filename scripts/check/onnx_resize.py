#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks random Resize and Upsample nodes against the formulas of ONNX's specification.

Input:  none; a seed.
Output: a line for each case that differs, and the counts; exit 1 if one differs.

A hundred nodes share a model, so one run of npu-run checks them. The expected result is computed
axis by axis in float64, element by element, from the text of Resize-19.
"""

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx_writer as onnx

PLACES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


class Case:
    """The attributes of a node, and its operands."""

    def __init__(self, opset, rng):
        self.opset = opset
        self.op = "Upsample" if opset < 10 else "Resize"
        self.shape = [rng.randint(1, 9) for _ in range(rng.randint(1, 4))]
        self.attributes = {"mode": rng.choice(["nearest", "linear"])}
        self.axes = list(range(len(self.shape)))
        self.sizes = self.roi = None
        self.scales = [rng.choice([1.0, 2.0, 3.0, 1.5, 0.5, 0.7, 0.3, 2.3]) for _ in self.shape]
        if opset < 10:
            self.scales = [max(scale, 1.0) for scale in self.scales]
        if opset >= 11:
            self.choose_newer(rng)
        self.scales = [float(np.float32(scale)) for scale in self.scales]
        for i, axis in enumerate(self.axes):
            if math.floor(np.float32(self.shape[axis]) * np.float32(self.scales[i])) < 1:
                self.scales[i] = 1.0

    def choose_newer(self, rng):
        attributes = self.attributes
        attributes["mode"] = rng.choice(["nearest", "linear", "cubic"])
        places = PLACES + (["tf_half_pixel_for_nn"] if self.opset < 13 else [])
        places += ["half_pixel_symmetric"] if self.opset >= 19 else []
        attributes["coordinate_transformation_mode"] = rng.choice(places)
        attributes["nearest_mode"] = rng.choice(ROUNDINGS)
        if rng.random() < 0.5:
            attributes["cubic_coeff_a"] = rng.choice([-0.5, -0.75, -0.6])
        if rng.random() < 0.3 and attributes["mode"] == "cubic":
            attributes["exclude_outside"] = 1
        if self.opset >= 18:
            if rng.random() < 0.4:
                attributes["antialias"] = 1
            if rng.random() < 0.5:
                count = rng.randint(1, len(self.axes))
                self.axes = rng.sample(self.axes, count)
                attributes["axes"] = list(self.axes)
                self.scales = self.scales[:count]
        if rng.random() < 0.5:
            self.sizes = [rng.randint(1, 14) for _ in self.axes]
            if self.opset >= 18 and rng.random() < 0.5:
                attributes["keep_aspect_ratio_policy"] = rng.choice(["not_larger", "not_smaller"])
        if attributes["coordinate_transformation_mode"] == "tf_crop_and_resize":
            low = [rng.uniform(-0.2, 0.4) for _ in self.axes]
            self.roi = low + [begin + rng.uniform(0.2, 1.0) for begin in low]
            self.roi = [float(np.float32(number)) for number in self.roi]
            attributes["extrapolation_value"] = rng.choice([0.0, 7.5])

    def axis(self, i):
        """(extent, size, scale, roi) of the i-th axis that is resized."""
        extent = self.shape[self.axes[i]]
        roi = (self.roi[i], self.roi[i + len(self.axes)]) if self.roi else (0.0, 1.0)
        if self.sizes is None:
            size = math.floor(np.float32(extent) * np.float32(self.scales[i]))
            return extent, size, self.scales[i], roi
        policy = self.attributes.get("keep_aspect_ratio_policy", "stretch")
        if policy == "stretch":
            return extent, self.sizes[i], self.sizes[i] / extent, roi
        ratios = [size / self.shape[axis] for size, axis in zip(self.sizes, self.axes)]
        scale = min(ratios) if policy == "not_larger" else max(ratios)
        return extent, math.floor(scale * extent + 0.5), scale, roi

    def fits(self):
        return all(1 <= self.axis(i)[1] <= 64 for i in range(len(self.axes)))


def place(mode, i, extent, size, scale, roi):
    length = scale * extent
    if mode == "align_corners":
        return 0.0 if length == 1 else i * (extent - 1) / (length - 1)
    if mode == "asymmetric":
        return i / scale
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if mode == "tf_crop_and_resize":
        if length == 1:
            return 0.5 * (roi[0] + roi[1]) * (extent - 1)
        step = (roi[1] - roi[0]) * (extent - 1) / (length - 1)
        return roi[0] * (extent - 1) + i * step
    if mode == "pytorch_half_pixel" and size == 1:
        return 0.0
    if mode == "half_pixel_symmetric":
        return extent / 2 * (1 - size / length) + (i + 0.5) / scale - 0.5
    return (i + 0.5) / scale - 0.5


def nearest(rounding, x):
    if rounding == "floor":
        return math.floor(x)
    if rounding == "ceil":
        return math.ceil(x)
    if x - math.floor(x) == 0.5:
        return math.floor(x) if rounding == "round_prefer_floor" else math.ceil(x)
    return math.floor(x + 0.5)


def cubic(a, x):
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def row(case, x, extent, scale):
    """The weight of each element of an axis."""
    attributes = case.attributes
    weights = np.zeros(extent)
    kind = attributes["mode"]
    if kind == "nearest":
        rounding = attributes.get("nearest_mode", "floor" if case.opset < 11 else "round_prefer_floor")
        weights[min(max(nearest(rounding, x), 0), extent - 1)] = 1
        return weights
    antialias = attributes.get("antialias", 0)
    shrink = min(scale, 1.0) if antialias else 1.0
    a = float(np.float32(attributes.get("cubic_coeff_a", -0.75)))
    reach = 1 if kind == "linear" else 2
    total = 0.0
    for at in range(math.floor(x - reach / shrink) - 1, math.ceil(x + reach / shrink) + 2):
        distance = (at - x) * shrink
        weight = max(1 - abs(distance), 0.0) if kind == "linear" else cubic(a, distance)
        if attributes.get("exclude_outside", 0) and not 0 <= at < extent:
            continue
        weights[min(max(at, 0), extent - 1)] += weight
        total += weight
    return weights / total if antialias or attributes.get("exclude_outside", 0) else weights


def expected(case, x):
    mode = case.attributes.get("coordinate_transformation_mode", "")
    mode = mode or ("asymmetric" if case.opset < 11 else "half_pixel")
    y = x.astype(np.float64)
    for i in sorted(range(len(case.axes)), key=lambda i: case.axes[i]):
        extent, size, scale, roi = case.axis(i)
        y = np.moveaxis(y, case.axes[i], -1)
        parts = []
        for j in range(size):
            at = place(mode, j, extent, size, scale, roi)
            if mode == "tf_crop_and_resize" and not 0 <= at <= extent - 1:
                parts.append(np.full(y.shape[:-1], case.attributes.get("extrapolation_value", 0.0)))
            else:
                parts.append(y @ row(case, at, extent, scale))
        y = np.moveaxis(np.stack(parts, -1), -1, case.axes[i])
    return y.astype(np.float32)


def is_tie(case):
    """Whether rounding of a place decides: then float32 and float64 may both be right."""
    mode = case.attributes.get("coordinate_transformation_mode", "")
    if case.attributes["mode"] != "nearest" and mode != "tf_crop_and_resize":
        return False
    mode = mode or ("asymmetric" if case.opset < 11 else "half_pixel")
    for i in range(len(case.axes)):
        extent, size, scale, roi = case.axis(i)
        for j in range(size):
            doubled = 2 * place(mode, j, extent, size, scale, roi)
            if 0 < abs(doubled - round(doubled)) < 1e-6:
                return True
    return False


def operands(case, name, constants):
    """The names of a node's operands; those beside the data become constants."""
    names = [f"{name}.x"]
    empty = np.zeros(0, np.float32)
    scales = empty if case.sizes is not None else np.array(case.scales, np.float32)
    if case.opset >= 11:
        roi = empty if case.roi is None else np.array(case.roi, np.float32)
        constants.append(onnx.tensor(f"{name}.roi", roi))
        names.append(f"{name}.roi")
    if case.opset >= 9 and case.sizes is None:
        constants.append(onnx.tensor(f"{name}.scales", scales))
        names.append(f"{name}.scales")
    if case.sizes is not None:
        constants.append(onnx.tensor(f"{name}.sizes", np.array(case.sizes)))
        names += ["", f"{name}.sizes"]
    return names


def run(options, opset, cases, folder):
    """Runs one model; returns the names of cases that differ."""
    nodes, inputs, outputs, constants, arguments = [], [], [], [], []
    numbers = np.random.default_rng(options.seed)
    for name, case in cases.items():
        x = numbers.standard_normal(case.shape).astype(np.float32)
        y = expected(case, x)
        attributes = dict(case.attributes)
        if opset < 9:
            attributes["scales"] = list(case.scales)
        names = operands(case, name, constants)
        nodes.append(onnx.node(case.op, names, [name], **attributes))
        inputs.append(onnx.value(f"{name}.x", x.shape))
        outputs.append(onnx.value(name, y.shape))
        for label, array, flag in ((f"{name}.x", x, "--inputs"), (name, y, "--expect")):
            path = os.path.join(folder, f"{label}.pb")
            with open(path, "wb") as file:
                file.write(onnx.tensor(label, array))
            arguments += [flag, f"{label}={path}"]
    path = os.path.join(folder, "model.onnx")
    with open(path, "wb") as file:
        file.write(onnx.model(onnx.graph(nodes, inputs, outputs, constants), opset))
    command = [os.path.join(options.bin, "npu-run"), "-q", "--no-cache", "--threads", "1"]
    command += ["--devices", options.devices, "--rtol", "1e-3", "--atol", "2e-5", path]
    done = subprocess.run(command + arguments, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 4):
        print(done.stderr.strip())
        return list(cases)
    lines = done.stderr.splitlines()
    return [name for name in cases if any(f"output '{name}'" in line for line in lines)]


def main(argv):
    parser = argparse.ArgumentParser(description="Check Resize and Upsample.")
    parser.add_argument("--bin", required=True, help="folder of the programs")
    parser.add_argument("--cases", type=int, default=3000, help="number of cases")
    parser.add_argument("--seed", type=int, default=1, help="seed of the cases")
    parser.add_argument("--devices", default="cpu", help="devices for npu-run")
    options = parser.parse_args(argv)
    rng = random.Random(options.seed)
    groups = {}
    made = 0
    while made < options.cases:
        case = Case(rng.choice([7, 9, 10, 11, 11, 13, 13, 18, 18, 19, 19]), rng)
        if case.fits() and not is_tie(case):
            groups.setdefault(case.opset, {})[f"c{made}"] = case
            made += 1
    differing = 0
    for opset, cases in sorted(groups.items()):
        names = list(cases)
        for start in range(0, len(names), 100):
            part = {name: cases[name] for name in names[start : start + 100]}
            with tempfile.TemporaryDirectory() as folder:
                for name in run(options, opset, part, folder):
                    case = cases[name]
                    differing += 1
                    print(
                        f"differs {name}: {case.op}-{opset} of {case.shape}, axes {case.axes}, "
                        f"scales {case.scales}, sizes {case.sizes}, roi {case.roi}: {case.attributes}"
                    )
    print(f"{made} cases: {differing} differ", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
