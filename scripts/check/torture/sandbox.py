# SPDX-License-Identifier: Apache-2.0
"""Runs a tool under limits and judges how it ended."""

import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading

SECONDS = 10
MEMORY = 2 << 30  # of resident pages; libtorch alone takes 200 MB
# What a terminal acts on: C0 but line ends and tabs, DEL, C1, and marks that turn the direction of text.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
FILTERS = ("npu-tag", "npu-fuse", "npu-partition", "npu-align", "npu-plan", "npu-profile")


class Failure(Exception):
    """A tool did what none may do."""


@dataclasses.dataclass
class Result:
    command: list
    code: int
    stdout: bytes
    stderr: bytes
    peak: int  # bytes
    hung: bool


class Sandbox:
    """A scratch folder with the programs on the path."""

    def __init__(self, programs, environment=None):
        self.folder = tempfile.TemporaryDirectory(prefix="npu-torture-")
        self.path = pathlib.Path(self.folder.name)
        self.programs = pathlib.Path(programs)
        self.runs = 0
        self.environment = dict(os.environ, LC_ALL="C", XDG_CACHE_HOME=str(self.path / "home"),
                                OMP_WAIT_POLICY="PASSIVE", **(environment or {}))
        sanitizer = "exitcode=99:allocator_may_return_null=1:detect_leaks=0"
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            self.environment[name] = ":".join(filter(None, [os.environ.get(name), sanitizer]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def write(self, name, data):
        path = self.path / name
        if path.is_symlink() or path.exists():
            path.unlink()
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return name

    def start(self, command, before=None, environment=None, **streams):
        line = [str(self.programs / command[0]), *map(str, command[1:])]
        streams.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(line, cwd=self.path, env=dict(self.environment, **(environment or {})),
                                preexec_fn=before, start_new_session=True, **streams)

    def run(self, command, stdin=b"", seconds=SECONDS, before=None, environment=None, stdout=subprocess.PIPE):
        """Runs to the end, or to the limit."""
        self.runs += 1
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as errors:
            source.write(stdin)
            source.seek(0)
            process = self.start(command, before, environment, stdin=source, stdout=stdout, stderr=errors)
            hung = threading.Event()

            def stop():
                hung.set()
                os.killpg(process.pid, signal.SIGKILL)

            timer = threading.Timer(seconds, stop)
            timer.start()
            output = process.stdout.read() if stdout == subprocess.PIPE else b""
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            return Result(command, process.returncode, output, errors.read(), usage.ru_maxrss * 1024, hung.is_set())

    def files(self):
        return {str(path.relative_to(self.path)) for path in self.path.rglob("*")}

    def check(self, command, *, signals=(), codes=(), leaves=(), memory=MEMORY, **options):
        """Runs a tool and raises Failure if it did not end as tools have to."""
        before = self.files()
        result = self.run(command, **options)
        fault = judge(result, signals, codes, memory)
        # A name that ends in a slash stands for a folder and all in it.
        left = {name for name in self.files() - before if name not in leaves and
                not any(f"{name}/".startswith(folder) for folder in ("home/", *leaves) if folder.endswith("/"))}
        if fault is None and left:
            fault = f"left {', '.join(sorted(left))}"
        if fault is not None:
            raise Failure(f"{fault}\n    {' '.join(map(str, command))}\n    " +
                          result.stderr[-600:].decode("utf-8", "backslashreplace").replace("\n", "\n    "))
        return result


def judge(result, signals=(), codes=(), memory=MEMORY):
    """What is wrong with how a tool ended; None if nothing is."""
    if result.hung:
        return "did not end in time"
    if result.code < 0 and -result.code not in (signal.SIGPIPE, *signals):
        return f"was killed by signal {-result.code}"
    if result.code > 4 and result.code not in codes:
        return f"ended with exit status {result.code}"
    try:
        text = result.stderr.decode()
    except UnicodeDecodeError:
        return "wrote what is no UTF-8 to standard error"
    if CONTROL.search(text):
        return "wrote control characters to standard error"
    if result.code > 0 and not text.strip():
        return f"ended with exit status {result.code} and no message"
    if len(text) > 200_000:
        return f"wrote {len(text)} characters to standard error"
    if result.code in (1, 2, 3) and result.stdout and result.command[0] in FILTERS:
        return f"wrote {len(result.stdout)} bytes to standard output and failed"
    if result.peak > memory:
        return f"took {result.peak >> 20} MiB"
    return None
