# SPDX-License-Identifier: Apache-2.0
"""The loop of scripts/check/torture.sh."""

import argparse
import collections
import os
import pathlib
import random
import sys
import time

import attacks
import attacks_of_plans
from sandbox import Failure

ROOT = pathlib.Path(__file__).resolve().parents[3]


def arguments():
    parser = argparse.ArgumentParser(prog="torture.sh")
    parser.add_argument("minutes", nargs="?", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, help="so many attacks, however long they take")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin with attack N, to repeat one")
    parser.add_argument("--only", help="one kind of attack")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("torture-failures"))
    parser.add_argument("--list", action="store_true", help="print the kinds of attacks and end")
    return parser.parse_args()


def main():
    options = arguments()
    kinds = [row for row in (*attacks.ATTACKS, *attacks_of_plans.ATTACKS) if options.only in (None, row[0])]
    if options.list or not kinds:
        for name, function, _ in (*attacks.ATTACKS, *attacks_of_plans.ATTACKS):
            print(f"{name:14}{function.__doc__}")
        return 0 if kinds else 2
    if not (options.bin / "npu-tag").exists():
        print(f"torture.sh: {options.bin}/npu-tag not found; build first, or say --bin DIR", file=sys.stderr)
        return 2
    lab = attacks.Lab(options.bin.resolve(), ROOT / "testdata", options.keep.resolve())
    if lab.digest is None:
        print("torture.sh: without libxxhash, bundles are only damaged as they are", file=sys.stderr)
    if os.geteuid() != 0:
        print("torture.sh: not root: foreign owners of a cache are skipped", file=sys.stderr)
    counts, failures = collections.Counter(), 0
    end = time.monotonic() + 60 * options.minutes
    number = options.first
    while number < options.first + options.cases if options.cases is not None else time.monotonic() < end:
        # Each attack has a seed of its own, so that one can be repeated alone.
        rng = random.Random(f"{options.seed}.{number}")
        name, function, _ = rng.choices(kinds, weights=[row[2] for row in kinds])[0]
        counts[name] += 1
        try:
            function(rng, lab)
        except Failure as failure:
            failures += 1
            print(f"attack {number} of seed {options.seed}, {name}: {failure}", flush=True)
        number += 1
    for name in sorted(counts):
        print(f"{name:14}{counts[name]:8}")
    print(f"{number - options.first} attacks, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
