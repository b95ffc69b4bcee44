#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weakens the rules of padding one by one, and checks that their tests find it out.

Input:  the sources in libcore/src/passes/padding, without changes that git does not know.
Output: a line for each mutant; exit 1 if one passes all tests. The sources are put back.

Needs build/, as scripts/quickstart.sh makes it. A mutant takes one or two minutes.

Usage: padding_mutants.py [NUMBER...]     default: all
"""

import os
import subprocess
import sys

ROOT = os.path.abspath(f"{os.path.dirname(__file__)}/../..")
FOLDER = "libcore/src/passes/padding"
PROGRAMS = ("npu_unit_backends", "npu_unit_passes")
TESTS = ("unit.backends.padding", "unit.passes.padding")
# Source, what it says, and what it says then; the first place counts.
MUTANTS = [
    ("products", ".accepted = {kZeros}, .fill", ".accepted = {kFinites}, .fill"),
    ("products", "{is_bool ? kZeros : kLowests}", "{is_bool ? kRepeats : kRepeats}"),
    ("products", "product.addends.empty() ? Keep::kAny : Keep::kNo", "Keep::kAny"),
    ("products", "rule.rewriting = Rewriting::kAttentionMask;", ""),
    ("reductions", "need_at({0, d}, {kLowests}", "need_at({0, d}, {kRepeats}"),
    ("reductions", "need_at({0, d}, {kZeros}", "need_at({0, d}, {kRepeats}"),
    ("reductions", "if (is_padded && is_mean)", "if (is_padded && is_mean && rank > 9)"),
    ("reductions", "same_place, Keep::kNo, Keep::kAll", "same_place, Keep::kAll, Keep::kAll"),
    ("reductions", "along.repeat = Keep::kNo;\n        along.zero = Keep::kNo;", "along.zero = Keep::kNo;"),
    ("reductions", "if (runs_along(d) && !is_scan)", "if (runs_along(d) && !is_scan && rank > 9)"),
    ("windows", "need_at(place, {kZeros}, Fill::kZero));\n  }\n  return true", "need_at(place, {kRepeats}, Fill::kEdge));\n  }\n  return true"),
    ("windows", "need_at(place, {kZeros}, Fill::kZero));\n    }\n  }\n  return rule", "need_at(place, {kRepeats}, Fill::kEdge));\n    }\n  }\n  return rule"),
    ("windows", "has_bias ? Keep::kNo : Keep::kAll", "has_bias ? Keep::kAll : Keep::kAll"),
    ("windows", "rule.needs.push_back(need_at(place, {kRepeats}, Fill::kEdge));", ""),
    ("movement", "rule.needs.push_back(need_at(place, {kRepeats}, Fill::kEdge));\n    rule.rewriting", "rule.rewriting"),
    ("movement", "need_at(place, {kZeros}, Fill::kZero)", "need_at(place, {kRepeats}, Fill::kEdge)"),
    ("pointwise", "ResultDim along = moved_dim(result, dim, from);\n  along.repeat = Keep::kNo;", "ResultDim along = moved_dim(result, dim, from);"),
    ("pointwise", "*fill == Fill::kEdge ? Keep::kYes : Keep::kNo", "Keep::kYes"),
    ("indexing", "{adds ? kZeros : kRepeats}", "{kRepeats}"),
    ("indexing", "{kRepeats, kZeros}, Fill::kEdge));\n  }", "{kFinites}, Fill::kZero));\n  }"),
]  # fmt: skip


def run(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def outcome():
    """What became of a mutant; empty: nobody noticed."""
    build = run("cmake", "--build", "build", "--parallel", str(os.cpu_count()), "--target", *PROGRAMS)
    if build.returncode != 0:
        raise SystemExit(build.stdout[-3000:] + build.stderr)
    for test in TESTS:
        if run("ctest", "--test-dir", "build", "--no-tests=error", "-R", f"^{test}$").returncode != 0:
            return test
    return ""


def main():
    if run("git", "diff", "--quiet", "--", FOLDER).returncode != 0:
        raise SystemExit(f"{FOLDER} has changes; commit them first")
    missed = 0
    wanted = [int(number) for number in sys.argv[1:]] or range(1, len(MUTANTS) + 1)
    for number in wanted:
        family, old, new = MUTANTS[number - 1]
        path = f"{ROOT}/{FOLDER}/rules_{family}.cpp"
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if old not in text:
            raise SystemExit(f"{path}: does not say {old!r}")
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(old, new, 1))
            found = outcome()
        finally:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        missed += not found
        print(f"{number:2} of {len(MUTANTS)}: rules_{family}: {' '.join(old.split())}: {found or 'NOT FOUND'}", flush=True)
    run("cmake", "--build", "build", "--parallel", str(os.cpu_count()), "--target", *PROGRAMS)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
