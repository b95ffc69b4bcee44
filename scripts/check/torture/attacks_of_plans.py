# SPDX-License-Identifier: Apache-2.0
"""Attacks by what else the tools read: ranges and quantized documents, ONNX files, targets, tables of times, binary
graphs, plans with ranks, and folders of compiled units. As in attacks.py, each is a function of a generator and a Lab."""

import json

from attacks import GNN_DEVICES

QUANTIZED = ["residual", "mlp"]
PLAN = ["npu-plan", "graph.mtx", "--model", "graphsage.json", "--profile", "profile.json", "-k", "4", "--pad", "16"]


class Material:
    """Valid files that these attacks start from. Made when the first one needs them."""

    def __init__(self, lab):
        self.ranges, self.quantized, self.onnx = {}, {}, {}
        small = lab.testdata / "models/small"
        with lab.sandbox() as box:
            for name in QUANTIZED:
                model, samples = small / f"{name}.json", small / f"{name}.inputs.safetensors"
                self.ranges[name] = made(box, ["npu-profile", "--calibrate", samples, model])
                box.write("ranges.json", self.ranges[name])
                self.quantized[name] = made(box, ["npu-align", "--quantize", "int8", "--ranges", "ranges.json", model])
            self.target = made(box, ["npu-tag", "--print-target"])
            self.times = made(box, ["npu-profile", small / "mlp.json"])
            for file in sorted(lab.testdata.rglob("*.onnx")):
                if file.stat().st_size < 1 << 20:
                    self.onnx[file.name] = file.read_bytes()
            for file, data in lab.gnn.items():
                box.write(file, data)
            made(box, [*PLAN, "--csr", "graph.csr", "--ranks", "2", "-o", "ranks.json"])
            self.graph = (box.path / "graph.csr").read_bytes()
            self.rank_plan = {name: (box.path / name).read_bytes() for name in ("ranks.json", "ranks.part")}
            made(box, [*PLAN, "-o", "plan.json"])
            self.plan = {name: (box.path / name).read_bytes() for name in ("plan.json", "plan.part")}
            made(box, ["npu-compile", "plan.json", *GNN_DEVICES, "-o", "units"])
            self.units = {path.name: path.read_bytes() for path in sorted((box.path / "units").iterdir())}


def made(box, command):
    result = box.run(command, seconds=120)
    if result.code != 0:
        raise SystemExit(f"torture: {' '.join(map(str, command))} failed: {result.stderr.decode()}")
    return result.stdout


def material(lab):
    if not hasattr(lab, "material"):
        lab.material = Material(lab)
    return lab.material


def quantized(rng, lab):
    """Ranges and quantized documents."""
    name = rng.choice(QUANTIZED)
    model = lab.testdata / "models/small" / f"{name}.json"
    if rng.randrange(2):
        data = material(lab).ranges[name]
        method = rng.choice([["int8"], ["mixed", "--max-error", "1e-2"]])
        command = ["npu-align", "--quantize", *method, "--ranges", "d.json", model]
    else:
        data = material(lab).quantized[name]
        command = rng.choice([["npu-align", "--verify", "d.json"], ["npu-fuse", "d.json"],
                              ["npu-compile", "--no-cache", "--random-weights", "0", "d.json", "-o", "d.npub"]])

    def attack(text):
        with lab.sandbox() as box:
            box.write("d.json", text)
            box.check(command, leaves=("d.npub",))
    lab.mutated_json(rng, json.loads(data), attack)


def onnx(rng, lab):
    """ONNX files damaged as bytes."""
    files = material(lab).onnx
    if not files:
        return
    name = rng.choice(sorted(files))
    command = rng.choice([["npu-tag", "m.onnx"], ["npu-compile", "--no-cache", "m.onnx", "-o", "m.npub"]])

    def attack(data):
        with lab.sandbox() as box:
            box.write("m.onnx", data)
            box.check(command, leaves=("m.npub",))
    lab.mutated_bytes(rng, files[name], attack, "case.onnx")


def targets(rng, lab):
    """Target files and tables of times."""
    model = lab.testdata / "models/small" / f"{rng.choice(['mlp', 'residual', 'conv_kinds'])}.json"
    by_time = rng.randrange(2) == 1
    data = material(lab).times if by_time else material(lab).target

    def attack(text):
        with lab.sandbox() as box:
            box.write("t.json", text)
            if by_time:
                tagged = box.run(["npu-tag", lab.testdata / "models/small/mlp.json"]).stdout
                box.check(["npu-partition", "-s", "mincut", "--profile", "t.json"], stdin=tagged)
            else:
                box.check(["npu-tag", "--target", "./t.json", model])
    lab.mutated_json(rng, json.loads(data), attack)


def graphs(rng, lab):
    """Graphs in binary form."""
    def attack(data):
        with lab.sandbox() as box:
            for file, content in lab.gnn.items():
                box.write(file, content)
            box.write("graph.csr", data)
            box.check(["npu-plan", "graph.csr", *PLAN[2:]])
    lab.mutated_bytes(rng, material(lab).graph, attack, "case.csr")


def ranks(rng, lab):
    """Plans with ranks, as they are checked and as they are run."""
    command = rng.choice([["npu-plan", "--verify", "ranks.json"], ["npu-run", "--simulate", "ranks.json"]])

    def attack(text):
        with lab.sandbox() as box:
            for file, content in {**lab.gnn, "graph.csr": material(lab).graph, **material(lab).rank_plan}.items():
                box.write(file, content)
            box.write("ranks.json", text)
            box.check(command)
    lab.mutated_json(rng, json.loads(material(lab).rank_plan["ranks.json"]), attack)


def units(rng, lab):
    """Folders of compiled units: the index, and one of the files."""
    files = material(lab).units
    name = rng.choice(sorted(files))

    def attack(data):
        with lab.sandbox() as box:
            for file, content in {**lab.gnn, **material(lab).plan}.items():
                box.write(file, content)
            (box.path / "units").mkdir()
            for file, content in files.items():
                box.write(f"units/{file}", data if file == name else content)
            box.check(["npu-run", "plan.json", "--units", "units", *GNN_DEVICES, "--features", "x.npy"])
    if name.endswith(".json") and rng.randrange(4):
        return lab.mutated_json(rng, json.loads(files[name]), attack)
    lab.mutated_bytes(rng, files[name], attack, f"case-{name}")


ATTACKS = [("quantized", quantized, 8), ("onnx", onnx, 6), ("targets", targets, 8), ("graphs", graphs, 4), ("ranks", ranks, 6),
           ("units", units, 4)]
