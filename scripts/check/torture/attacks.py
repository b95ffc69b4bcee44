# SPDX-License-Identifier: Apache-2.0
"""What is done to the tools. An attack is a function of a random generator and a Lab; it raises Failure."""

import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import time

import mutate
from sandbox import Failure, Sandbox

MODELS = ["mlp", "residual", "residual_bf16", "conv_kinds", "bert_tiny", "depthwise", "dtypes", "gru", "in_place_view"]
SPECIAL = [0.0, -0.0, 1e-45, 1e-38, 1e3, 1e20, 1e30, 3e38, float("inf"), float("-inf"), float("nan")]
SLOW_PROBE = 40  # seconds: a library that hangs is given up after less
GNN_DEVICES = ["--device", "gpu=onednn", "--device", "cpu=onednn", "--device", "npu=onednn"]


def fewest(mutations, fails):
    """Takes mutations away as long as the case still fails."""
    changed = True
    while changed and len(mutations) > 1:
        changed = False
        for i in range(len(mutations)):
            fewer = mutations[:i] + mutations[i + 1:]
            if fails(fewer):
                mutations, changed = fewer, True
                break
    return mutations


class Lab:
    """What attacks start from: valid documents of every stage, bundles and plans. Made once."""

    def __init__(self, programs, testdata, keep):
        self.programs, self.testdata, self.keep = pathlib.Path(programs), pathlib.Path(testdata), pathlib.Path(keep)
        self.digest = mutate.xxh3()
        self.documents, self.bundles, self.gnn, self.libraries = {}, {}, {}, {}
        self.runs = 0
        with self.sandbox() as box:
            for name in MODELS:
                self.add_model(box, name)
            self.add_gnn(box)

    def sandbox(self, environment=None):
        return Sandbox(self.programs, environment)

    def add_model(self, box, name):
        source = self.testdata / "models/small" / f"{name}.json"
        if not source.exists():
            return
        stages = [("raw", source.read_bytes())]
        for stage, command in (("tagged", ["npu-tag"]), ("fused", ["npu-fuse"]), ("planned", ["npu-partition", "-s", "blocks"]),
                               ("aligned", ["npu-align"])):
            result = box.run(command, stdin=stages[-1][1], seconds=60)
            if result.code != 0:
                raise SystemExit(f"torture: {command[0]} failed on {name}: {result.stderr.decode()}")
            stages.append((stage, result.stdout))
        for stage, text in stages:
            self.documents[name, stage] = json.loads(text)
        result = box.run(["npu-compile", "--no-cache", "--random-weights", "0", source, "-o", f"{name}.npub"], seconds=60)
        if result.code == 0:
            self.bundles[name] = (box.path / f"{name}.npub").read_bytes()

    def add_gnn(self, box):
        folder = self.testdata / "gnn"
        for name in ("graph.mtx", "graphsage.json", "gcn.json", "gat.json", "profile.json", "subgraphs.json", "published.json",
                     "x.npy", "graphsage.safetensors"):
            self.gnn[name] = (folder / name).read_bytes()
        result = box.run(["npu-plan", folder / "graph.mtx", "--model", folder / "graphsage.json", "--profile",
                          folder / "profile.json", "-k", "2"], seconds=60)
        if result.code != 0:
            raise SystemExit(f"torture: npu-plan failed: {result.stderr.decode()}")
        self.gnn["plan.json"] = result.stdout

    def library(self, name, source):
        """Compiles a shared object once; None without a compiler."""
        if name not in self.libraries:
            self.libraries[name] = None
            compiler = shutil.which("c++")
            if compiler:
                folder = self.keep / "libraries"
                folder.mkdir(parents=True, exist_ok=True)
                target = folder / f"npu_backend_{name}.so"
                code = subprocess.run([compiler, "-shared", "-fPIC", "-x", "c++", "-", "-o", target], input=source.encode(),
                                      check=False).returncode
                self.libraries[name] = target if code == 0 else None
        return self.libraries[name]

    def mutated_json(self, rng, document, attack):
        """Runs `attack` on a damaged document; on a failure, on ever smaller damage."""
        mutations = []
        for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
            mutations.append(mutate.json_mutation(rng, mutate.apply(document, mutations)))
        try:
            attack(mutate.text_of(mutate.apply(document, mutations)))
        except Failure as failure:
            def fails(changed):
                try:
                    attack(mutate.text_of(mutate.apply(document, changed)))
                except Failure:
                    return True
                return False
            mutations = fewest(mutations, fails)
            kept = self.save("case.json", mutate.text_of(mutate.apply(document, mutations)))
            raise Failure(f"{failure}\n    the document: {kept}; what was changed: {mutations!r}"[:4000]) from None

    def mutated_bytes(self, rng, data, attack, name="case.bin"):
        """Runs `attack` on damaged bytes; on a failure, on ever less damage."""
        mutations = mutate.byte_mutations(rng, len(data))
        try:
            attack(mutate.damaged(data, mutations))
        except Failure as failure:
            def fails(changed):
                try:
                    attack(mutate.damaged(data, changed))
                except Failure:
                    return True
                return False
            mutations = fewest(mutations, fails)
            kept = self.save(name, mutate.damaged(data, mutations))
            raise Failure(f"{failure}\n    the file: {kept}; what was changed: {mutations!r}"[:4000]) from None

    def save(self, name, data):
        self.keep.mkdir(parents=True, exist_ok=True)
        for number in range(10_000):
            path = self.keep / f"{number:04}-{name}"
            if not path.exists():
                path.write_bytes(data)
                return path
        raise SystemExit(f"torture: {self.keep} is full")


def tool_for_document(rng):
    return rng.choice([
        ["npu-tag", "d.json"], ["npu-tag", "--keep-tags", "--report", "d.json"], ["npu-fuse", "--report", "d.json"],
        ["npu-partition", "-s", rng.choice(["contiguous", "convex", "mincut", "blocks", "resources", "metis"]), "d.json"],
        ["npu-partition", "--verify", "d.json"], ["npu-partition", "--dot", "d.json"], ["npu-align", "--report", "d.json"],
        ["npu-compile", "--no-cache", "--random-weights", "0", "d.json", "-o", "d.npub"],
        ["npu-run", "--no-cache", "--random-weights", "0", "--random-inputs", "0", "d.json"],
    ])


def documents(rng, lab):
    """Documents of every stage, changed in a few places, through a tool."""
    document = lab.documents[rng.choice(sorted(lab.documents))]
    command = tool_for_document(rng)

    def attack(text):
        with lab.sandbox() as box:
            box.write("d.json", text)
            box.check(command, leaves=("d.npub",))
    lab.mutated_json(rng, document, attack)


def texts(rng, lab):
    """Documents damaged as bytes."""
    text = mutate.text_of(lab.documents[rng.choice(sorted(lab.documents))])
    command = tool_for_document(rng)

    def attack(damaged):
        with lab.sandbox() as box:
            box.write("d.json", damaged)
            box.check(command, leaves=("d.npub",))
    lab.mutated_bytes(rng, text, attack, "case.json")


def bundles(rng, lab):
    """Bundles: damaged as they are, and with a changed manifest or section whose digests are right."""
    data = lab.bundles[rng.choice(sorted(lab.bundles))]
    kind = rng.randrange(4) if lab.digest else 0

    def attack(changed):
        with lab.sandbox() as box:
            box.write("m.npub", changed)
            box.check(["npu-run", "--random-inputs", "0", "m.npub"])

    if kind == 0:
        return lab.mutated_bytes(rng, data, attack, "case.npub")
    bundle = mutate.Bundle(data)
    if kind == 1:
        return lab.mutated_json(rng, bundle.manifest,
                                lambda text: attack(bundle.bytes(lab.digest, manifest=json.loads(text))))
    index = rng.randrange(len(bundle.sections))
    sections = list(bundle.sections)

    def with_section(section):
        sections[index] = section
        attack(bundle.bytes(lab.digest, sections=sections))

    if kind == 2 and sections[index][:1] == b"{":
        return lab.mutated_json(rng, json.loads(bundle.sections[index]), with_section)
    lab.mutated_bytes(rng, bundle.sections[index], with_section, "case.section")


def weights(rng, lab):
    """Weight files: header and payload."""
    name = rng.choice(["mlp", "residual", "bert_tiny"])
    folder = lab.testdata / "models/small"
    data = (folder / f"{name}.safetensors").read_bytes()

    def attack(changed):
        with lab.sandbox() as box:
            box.write("w.safetensors", changed)
            box.check(["npu-run", "--no-cache", "--random-inputs", "0", "--weights", "w.safetensors", folder / f"{name}.json"])

    if rng.randrange(2):
        return lab.mutated_bytes(rng, data, attack, "case.safetensors")
    header, payload = mutate.safetensors_of(data)
    lab.mutated_json(rng, header, lambda text: attack(mutate.safetensors(json.loads(text), payload)))


def gnn(rng, lab):
    """Graphs, staged models, stage tables, parts and features."""
    name = rng.choice(["graph.mtx", "graphsage.json", "gat.json", "profile.json", "subgraphs.json", "published.json", "x.npy",
                       "plan.json", "plan.json"])

    def attack(changed):
        with lab.sandbox() as box:
            for file, data in lab.gnn.items():
                box.write(file, changed if file == name else data)
            model = name if name in ("graphsage.json", "gat.json") else "graphsage.json"
            plan = ["npu-plan", "graph.mtx", "--model", model, "--profile", "profile.json", "-k", "2"]
            if name == "subgraphs.json":
                plan = ["npu-plan", "--subgraphs", "subgraphs.json", "--model", model, "--profile", "profile.json"]
            elif name == "published.json":
                plan = ["npu-profile", "--import", "published.json"]
            elif name in ("plan.json", "x.npy"):
                plan = ["npu-run", *(rng.choice([["--simulate"], ["--features", "x.npy"]]) if name == "plan.json"
                                     else ["--features", "x.npy"]), *GNN_DEVICES, "plan.json"]
            box.check(plan)

    if name.endswith(".json") and rng.randrange(4):
        return lab.mutated_json(rng, json.loads(lab.gnn[name]), attack)
    lab.mutated_bytes(rng, lab.gnn[name], attack, f"case-{name}")


def kills(rng, lab):
    """Four compilers with one cache, stopped at random moments; then one has to work as if nothing had been."""
    model = lab.testdata / "models/small" / f"{rng.choice(sorted(lab.bundles))}.json"
    how = rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    with lab.sandbox() as box:
        compile_to = ["npu-compile", "--random-weights", "0", model, "--cache-dir", "cache", "-o"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        processes = [box.start([*compile_to, f"{i}.npub"], **quiet) for i in range(4)]
        for process in processes:
            time.sleep(rng.random() * 0.05)
            process.send_signal(how)
        for process in processes:
            process.wait()
        left = [name for name in box.files() if "." in name and not name.startswith(("cache", "home"))]
        if how != signal.SIGKILL and any(not name.endswith(".npub") for name in left):
            raise Failure(f"{how.name} left {left}")
        for name in left:
            if name.endswith(".npub"):
                box.check(["npu-run", "--random-inputs", "0", name])
        box.check([*compile_to, "after.npub"], leaves=("after.npub", "cache/"), seconds=30)
        box.run(["npu-compile", "--no-cache", "--random-weights", "0", model, "-o", "fresh.npub"], seconds=30)
        if (box.path / "after.npub").read_bytes() != (box.path / "fresh.npub").read_bytes():
            raise Failure(f"after {how.name}, a bundle by way of the cache differs from one without: {model}")


HOSTILE = {
    "exits": "#include <unistd.h>\n__attribute__((constructor)) void f() { _exit(0); }",
    "leaves": "#include <cstdlib>\n__attribute__((constructor)) void f() { exit(0); }",
    "aborts": "#include <cstdlib>\n__attribute__((constructor)) void f() { abort(); }",
    "crashes": "__attribute__((constructor)) void f() { *(volatile int*)0 = 1; }",
    "throws": "__attribute__((constructor)) void f() { throw 1; }",
    "prints": "#include <cstdio>\n__attribute__((constructor)) void f() { puts(\"{}\"); fflush(stdout); }",
    "sleeps": "#include <csignal>\n#include <unistd.h>\n"
              "__attribute__((constructor)) void f() { signal(SIGALRM, SIG_IGN); for (;;) sleep(1000); }",
    "empty": "",
    "lies": "extern \"C\" const void* npu_backend_get_api(unsigned) { return (const void*)8; }",
}


def libraries(rng, lab):
    """Backends and libraries of ops that crash, end, hang, print or throw when they are loaded."""
    name = rng.choice(sorted(HOSTILE))
    library = lab.library(name, HOSTILE[name])
    if library is None:
        return
    mlp = lab.testdata / "models/small/mlp.json"
    with lab.sandbox({"NPU_BACKEND_PATH": str(library.parent)}) as box:
        target = json.loads(box.run(["npu-tag", "--print-target"]).stdout)
        target["devices"][0]["backend"] = name
        box.write("t.json", json.dumps(target))
        result = box.check(rng.choice([["npu-compile", "--no-cache", "--no-fallback", "--random-weights", "0", mlp, "--target",
                                        "./t.json", "-o", "m.npub"], ["npu-tag", "--load-ops", library, mlp]]),
                           codes=(70,), seconds=SLOW_PROBE, leaves=("m.npub",))
        if result.code == 0 and result.command[0] == "npu-tag":
            json.loads(result.stdout)
        elif result.code == 0:
            raise Failure(f"a backend that {name} compiled a model")


def values(rng, lab):
    """Inputs with outliers, infinities and NaN: no tool crashes, and the answer comes in time."""
    name = rng.choice(["mlp", "residual", "conv_kinds", "bert_tiny", "depthwise", "encoder"])
    folder = lab.testdata / "models/small"
    header, payload = mutate.safetensors_of((folder / f"{name}.inputs.safetensors").read_bytes())
    payload = bytearray(payload)
    floats = [v for k, v in header.items() if k != "__metadata__" and v["dtype"] == "F32"]
    for tensor in floats:
        begin, end = tensor["data_offsets"]
        for _ in range(rng.choice([1, 3, (end - begin) // 4])):
            struct.pack_into("<f", payload, begin + 4 * rng.randrange((end - begin) // 4), rng.choice(SPECIAL))
    with lab.sandbox() as box:
        box.write("i.safetensors", mutate.safetensors(header, bytes(payload)))
        box.check(["npu-run", "--no-cache", "--inputs", "i.safetensors", folder / f"{name}.json", "--verify", "cpu"], seconds=30)


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def surroundings(rng, lab):
    """Full disks, closed pipes, limits on files, FIFOs, links, files that shrink, foreign owners."""
    mlp = lab.testdata / "models/small/mlp.json"
    compile_mlp = ["npu-compile", "--random-weights", "0", mlp]
    kind = rng.choice(["full", "closed", "limit", "limit-cache", "fifo-weights", "fifo-cache", "link", "shrinks", "foreign"])
    with lab.sandbox() as box:
        if kind == "full":
            with open("/dev/full", "wb") as full:
                if box.check([rng.choice(["npu-tag", "npu-partition"]), mlp], stdout=full).code == 0:
                    raise Failure("a full disk went by without a message")
        elif kind == "closed":
            process = box.start(["npu-tag", mlp], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            process.stdout.close()
            if process.wait(10) not in (0, -signal.SIGPIPE) or process.stderr.read():
                raise Failure("a closed pipe is no error")
        elif kind == "limit":
            box.write("out.json", b"old")
            link = rng.random() < 0.5
            if link:
                (box.path / "link.json").symlink_to("out.json")
            result = box.check(["npu-tag", mlp, "-o", "link.json" if link else "out.json"], before=limit_files)
            if result.code != 1 or (box.path / "out.json").read_bytes() != b"old":
                raise Failure(f"a limit on files gave {result.code} and spoiled the old file")
        elif kind == "limit-cache":
            box.check([*compile_mlp, "--cache-dir", "cc", "-o", "x.npub"], before=limit_files, leaves=("cc/", "x.npub"))
        elif kind == "fifo-weights":
            os.mkfifo(box.path / "w")
            if box.check(["npu-run", "--random-inputs", "0", "--weights", "w", mlp]).code != 1:
                raise Failure("a FIFO was taken for a weight file")
        elif kind == "fifo-cache":
            box.run([*compile_mlp, "--cache-dir", "cache", "-o", "a.npub"])
            for entry in (box.path / "cache").iterdir():
                entry.unlink()
                os.mkfifo(entry)
            box.check([*compile_mlp, "--cache-dir", "cache", "-o", "b.npub"], leaves=("b.npub",))
        elif kind == "link":
            box.write("real.json", b"old")
            (box.path / "link.json").symlink_to("real.json")
            box.check(["npu-tag", mlp, "-o", "link.json"])
            if not (box.path / "link.json").is_symlink():
                raise Failure("-o replaced a link by a file")
            json.loads((box.path / "real.json").read_bytes())
        elif kind == "shrinks":
            shrink(box, lab)
        else:
            foreign(box, compile_mlp)


def shrink(box, lab):
    """A bundle is cut while it runs."""
    box.write("m.npub", lab.bundles[sorted(lab.bundles)[0]])
    process = box.start(["npu-run", "m.npub", "--random-inputs", "0", "--bench", "1000000"], stdout=subprocess.DEVNULL,
                        stderr=subprocess.PIPE)
    time.sleep(1)
    os.truncate(box.path / "m.npub", 4096)
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:  # what was cut is not read again
        process.kill()
        process.wait()
        return
    if process.returncode < 0 or process.returncode > 4 or not process.stderr.read().strip():
        raise Failure(f"a bundle that shrank ended the run with {process.returncode}")


def foreign(box, compile_mlp):
    """Somebody else puts an entry of other weights into a cache that all may write."""
    if os.geteuid() != 0:
        return
    cache = box.path / "cache"
    cache.mkdir()
    cache.chmod(0o1777)
    other = [*compile_mlp[:2], "1", *compile_mlp[3:]]
    box.run([*compile_mlp, "--no-cache", "-o", "right.npub"])
    box.run([*compile_mlp, "--cache-dir", "mine", "-o", "a.npub"])
    box.run([*other, "--cache-dir", "theirs", "-o", "b.npub"])
    mine = sorted((box.path / "mine").glob("*.npublob"))
    theirs = sorted((box.path / "theirs").glob("*.npublob"))
    if len(mine) != 1 or len(theirs) != 1:
        return
    entry = cache / mine[0].name
    shutil.copy(theirs[0], entry)
    os.chown(entry, 65534, 65534)
    box.check([*compile_mlp, "--cache-dir", "cache", "-o", "c.npub"], leaves=("c.npub",))
    if (box.path / "c.npub").read_bytes() != (box.path / "right.npub").read_bytes():
        raise Failure("an entry of another user in a shared cache decided what was compiled")


# Name, function, how often among the attacks.
ATTACKS = [("documents", documents, 30), ("texts", texts, 8), ("bundles", bundles, 20), ("weights", weights, 8), ("gnn", gnn, 14),
           ("kills", kills, 4), ("libraries", libraries, 4), ("values", values, 6), ("surroundings", surroundings, 6)]
