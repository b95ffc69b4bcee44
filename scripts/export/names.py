# SPDX-License-Identifier: Apache-2.0
"""Names of nodes and tensors."""

import builtins
import keyword
import re


WORDS = frozenset({"inf", "nan", "NoneType", "torch", "device", *keyword.kwlist, *dir(builtins)})


class Namespace:
    """Unique names as torch.fx makes them: conv2d, conv2d_1, ...; never a Python word (max_1)."""

    def __init__(self):
        self.used = set()
        self.counts = {}

    def create(self, wanted, reserved=WORDS):
        if re.fullmatch(r"__\w+__", wanted):
            wanted = wanted[2:-2]
        name = re.sub(r"[^0-9a-zA-Z_]+", "_", wanted)
        name = f"_{name}" if name[0].isdigit() else name
        match = re.fullmatch(r"(.*)_(\d+)", name)
        base, number = (match.group(1), int(match.group(2))) if match else (name, 0)
        number = number or self.counts.get(base, 0)
        while name in self.used or name in reserved:
            number += 1
            name = f"{base}_{number}"
        self.used.add(name)
        self.counts[base] = number
        return name
