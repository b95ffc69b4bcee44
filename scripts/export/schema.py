# SPDX-License-Identifier: Apache-2.0
"""ATen schemas: the arguments of an overload with their real types and defaults."""

import re

import torch


class Argument:
    def __init__(self, schema_argument, type_text):
        self.name = schema_argument.name
        self.type = type_text  # without alias annotation: "Tensor", "Tensor?[]", "ScalarType?"
        self.keyword_only = schema_argument.kwarg_only
        self.has_default = schema_argument.has_default_value()
        self.default = plain(schema_argument.default_value, type_text) if self.has_default else None
        alias = schema_argument.alias_info
        self.is_written = alias is not None and alias.is_write

    @property
    def is_tensor(self):
        return self.type in ("Tensor", "Tensor?")

    @property
    def is_tensor_list(self):
        return re.fullmatch(r"Tensor\??\[\d*\]\??", self.type) is not None


def schema_arguments(schema):
    """Arguments with their real types: the bindings say `int` for ScalarType, the text does not."""
    text = str(schema)
    begin = text.index("(") + 1
    pieces, depth, quoted, piece = [], 0, False, ""
    for char in text[begin:]:
        quoted ^= char == '"'
        if not quoted and char in "([":
            depth += 1
        elif not quoted and char in ")]":
            if depth == 0:
                break
            depth -= 1
        if char == "," and depth == 0 and not quoted:
            pieces.append(piece)
            piece = ""
        else:
            piece += char
    pieces.append(piece)
    types = []
    for piece in (piece.strip() for piece in pieces):
        if piece and piece != "*":
            type_text = re.match(r"(.+?) \w+(=.*)?$", piece).group(1)
            types.append(re.sub(r"\(.*?\)", "", type_text))
    return [Argument(argument, kind) for argument, kind in zip(schema.arguments, types)]


_arguments = {}


def arguments_of(op):
    if op not in _arguments:
        _arguments[op] = schema_arguments(op._schema)
    return _arguments[op]


def plain(value, type_text):
    """Turns the integers by which TorchScript writes dtypes, layouts and formats into objects."""
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    base = type_text.rstrip("?")
    if base == "ScalarType":
        kinds = "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128"
        names = kinds.split() + ["bool", "qint8", "quint8", "qint32", "bfloat16"]
        return getattr(torch, names[value])
    if base == "Layout":
        return {0: torch.strided, 1: torch.sparse_coo}.get(value, value)
    if base == "MemoryFormat":
        formats = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
        return getattr(torch, formats[value])
    return value
