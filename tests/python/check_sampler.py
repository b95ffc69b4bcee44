# SPDX-License-Identifier: Apache-2.0
"""Checks the draws that testdata/sampler.json has against the reference of the sampler; a unit test checks the same of
the library, so both agree.

Usage: check_sampler.py FILE [--write]    --write replaces the draws by the reference's
"""

import json
import sys

from sampler_reference import mixed, pick

MASK = (1 << 64) - 1


def logits_of(case):
    """As the unit test makes them: multiples of 2^-20 in [-8, 8), or of 1/2 so that many are equal, or masked."""
    values = []
    for i in range(case["vocabulary"]):
        bits = mixed((case["logits"] * 0x100000001B3 + i) & MASK)
        if case["kind"] == "coarse":
            values.append(((bits >> 60) - 8) * 0.5)
        elif case["kind"] == "masked" and bits % 3 != 0:
            values.append(float("-inf"))
        else:
            values.append(((bits >> 40) - (1 << 23)) * 2.0**-20)
    return values


def draws_of(case):
    """The first ids, and FNV-1a of all of them."""
    logits = logits_of(case)
    options = {key: case[key] for key in ("temperature", "top_k", "top_p", "seed")}
    ids = [pick(logits, case["request"], step, **options) for step in range(case["draws"])]
    digest = 0xCBF29CE484222325
    for id_ in ids:
        digest = (digest ^ id_) * 0x100000001B3 & MASK
    return ids[:16], f"{digest:016x}"


def main():
    path = sys.argv[1]
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)
    faults = 0
    for number, case in enumerate(cases):
        first, digest = draws_of(case)
        if "--write" in sys.argv[2:]:
            case["first"], case["digest"] = first, digest
        elif (first, digest) != (case["first"], case["digest"]):
            print(f"case {number}: the reference draws {first} ({digest}), the file has {case['first']}")
            faults += 1
    if "--write" in sys.argv[2:]:
        with open(path, "w", encoding="utf-8") as file:
            file.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
    print(f"{len(cases)} cases, {sum(case['draws'] for case in cases)} draws, {faults} differ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
