# SPDX-License-Identifier: Apache-2.0
"""The sampler of npu-generate(7), without libraries: the same logits give the same ids as npu-run."""

import functools
import math
import operator

MASK = (1 << 64) - 1


def mixed(z):
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def exp(x):
    if x < -700:
        return 0.0
    k = (x * float.fromhex("0x1.71547652b82fep+0") + 1.5 * 2.0**52) - 1.5 * 2.0**52
    r = (x - k * float.fromhex("0x1.62e42fee00000p-1")) - k * float.fromhex("0x1.a39ef35793c76p-33")
    total = 1.0 / math.factorial(13)
    for n in range(12, -1, -1):
        total = total * r + 1.0 / math.factorial(n)
    return math.ldexp(total, int(k))


def pick(logits, request, step, temperature=0.0, top_k=0, top_p=1.0, seed=0):
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    if temperature == 0:
        return order[0]
    order = order[: top_k or len(order)]
    top = logits[order[0]]
    if math.isinf(top):
        weight = {i: float(logits[i] == top) for i in order}
    else:
        weight = {i: exp(logits[i] / temperature - top / temperature) for i in order}
    # Not sum(), which compensates since Python 3.12.
    total, running = functools.reduce(operator.add, (weight[i] for i in sorted(order)), 0.0), 0.0
    if top_p < 1:
        share, count = top_p * total, 0
        while count < len(order) and running < share:
            running, count = running + weight[order[count]], count + 1
        order, total, running = order[:count], running, 0.0
    bound = (mixed(mixed(mixed(seed) ^ request) ^ step) >> 11) * 2.0**-53 * total
    for i in order[:-1]:
        running += weight[i]
        if running > bound:
            return i
    return order[-1]
