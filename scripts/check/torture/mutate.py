# SPDX-License-Identifier: Apache-2.0
"""Damages documents and files. A mutation is a value that can be applied again, so that a case can be cut down."""

import copy
import ctypes
import ctypes.util
import json
import struct

NUMBERS = [0, -1, 1, 2, 3, 7, 255, 2**31 - 1, 2**31, 2**32, 2**40, 2**53, 2**63 - 1, 2**63, -2**63, 2**64 - 1, 0.5, -0.0,
           1e-300, 1e300]
TEXTS = ["", "x", "aten.relu.default", "float32", "npu", "cpu", "a\x1b[2J\x07", "\u009b31m", "\u202edlrow", "../../etc/passwd",
         "/", "\ufffe", "n" * 3000, "-inf", "NaN", "%s%n", "<&\">"]
VALUES = [None, True, False, [], {}, [[]], [0], {"name": "x"}, *NUMBERS, *TEXTS]


def places(value, path=()):
    """The path of every value below."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield from places(below, (*path, key))


def at(document, path):
    for key in path:
        document = document[key]
    return document


def json_mutation(rng, document):
    """One change: (kind, path, value)."""
    paths = [path for path in places(document) if path]
    if not paths:
        return ("replace", (), rng.choice(VALUES))
    path = rng.choice(paths)
    kind = rng.choice(["replace", "replace", "replace", "delete", "duplicate", "move", "nudge"])
    if kind == "move":
        return (kind, path, rng.choice(paths))
    if kind == "nudge":
        return (kind, path, rng.choice([-1, 1, 2, -2, 100]))
    return (kind, path, rng.choice(VALUES))


def apply(document, mutations):
    """A changed copy; a mutation whose place is gone does nothing."""
    document = copy.deepcopy(document)
    for kind, path, value in mutations:
        try:
            if not path:
                document = copy.deepcopy(value)
                continue
            parent, key = at(document, path[:-1]), path[-1]
            old = parent[key]
            if kind == "replace":
                parent[key] = copy.deepcopy(value)
            elif kind == "delete":
                del parent[key]
            elif kind == "duplicate" and isinstance(parent, list):
                parent.insert(key, copy.deepcopy(old))
            elif kind == "move":
                parent[key] = copy.deepcopy(at(document, value))
            elif kind == "nudge" and isinstance(old, (int, float)) and not isinstance(old, bool):
                parent[key] = old + value
        except (KeyError, IndexError, TypeError, RecursionError):
            continue
    return document


def text_of(document):
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def byte_mutations(rng, size):
    """Bytes flipped, overwritten, cut, repeated or changed: (kind, place, value) of each, for `size` bytes."""
    mutations = []
    for _ in range(rng.choice([1, 1, 2, 8, 40])):
        kind = rng.choice(["flip", "number", "cut", "repeat", "byte"])
        value = {"flip": 1 << rng.randrange(8), "number": rng.choice([0, 1, 2**31, 2**32, 2**63, 2**64 - 1]), "cut": 0,
                 "repeat": rng.randrange(1, 64), "byte": rng.randrange(256)}[kind]
        mutations.append((kind, rng.randrange(max(1, size)), value))
    return mutations


def damaged(data, mutations):
    """Changed bytes; a mutation whose place is gone does nothing."""
    data = bytearray(data)
    for kind, place, value in mutations:
        if place >= len(data):
            continue
        if kind == "flip":
            data[place] ^= value
        elif kind == "number":
            data[place:place + 8] = struct.pack("<Q", value)
        elif kind == "cut":
            del data[place:]
        elif kind == "repeat":
            data[place:place] = data[place:place + value]
        else:
            data[place] = value
    return bytes(data)


def xxh3():
    """XXH3 of bytes with 64 bits, or None without the library."""
    name = ctypes.util.find_library("xxhash")
    if name is None:
        return None
    function = ctypes.CDLL(name).XXH3_64bits
    function.restype = ctypes.c_uint64
    function.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return lambda data: function(bytes(data), len(data))


class Bundle:
    """A file of npub(5), taken apart so that it can be put together again with right digests."""

    def __init__(self, data):
        size = struct.unpack_from("<Q", data, 32)[0]
        self.manifest = json.loads(data[64:64 + size])
        self.sections = [data[s["offset"]:s["offset"] + s["size"]] for s in self.manifest["sections"]]

    def bytes(self, digest, manifest=None, sections=None):
        manifest = copy.deepcopy(self.manifest if manifest is None else manifest)
        sections = self.sections if sections is None else sections
        rows = manifest.get("sections") if isinstance(manifest, dict) else None
        # The manifest's length moves the sections, whose places are in the manifest: until they stay.
        for _ in range(4):
            text = text_of(manifest)
            place = 64 + len(text)
            layout = []
            for section in sections:
                place = -(-place // 4096) * 4096
                layout.append(place)
                place += len(section)
            if isinstance(rows, list):
                for row, offset, section in zip(rows, layout, sections):
                    if isinstance(row, dict) and {"offset", "size", "xxh3"} <= row.keys():
                        row.update(offset=offset, size=len(section), xxh3=f"{digest(section):016x}")
        data = bytearray(place)
        data[64:64 + len(text)] = text
        for offset, section in zip(layout, sections):
            data[offset:offset + len(section)] = section
        head = b"\x89NPUB\r\n\x1a" + struct.pack("<6Q", 1, len(data), 64, len(text), digest(text), 0)
        data[:56] = head
        struct.pack_into("<Q", data, 56, digest(head))
        return bytes(data)


def safetensors_of(data):
    """Header and payload."""
    size = struct.unpack_from("<Q", data)[0]
    return json.loads(data[8:8 + size]), data[8 + size:]


def safetensors(header, payload):
    text = text_of(header)
    return struct.pack("<Q", len(text)) + text + payload
