# SPDX-License-Identifier: Apache-2.0
"""Sizes that vary: integer expressions over symbols, as npu-ir(5) defines them.

A size is a sum of products of symbols and of divisions, kept as libcore keeps it, so that a chain of strided
convolutions is one division.
"""

import ast
import math


class Size:
    def __init__(self, terms=None, constant=0):
        self.terms = terms or {}  # factor by sorted tuple of atoms; an atom is a name or a Quotient
        self.constant = constant

    @staticmethod
    def symbol(name):
        return Size({(name,): 1})

    @staticmethod
    def of(value):
        return value if isinstance(value, Size) else Size(constant=value)

    def __add__(self, other):
        other = Size.of(other)
        terms = dict(self.terms)
        for atoms, factor in other.terms.items():
            terms[atoms] = terms.get(atoms, 0) + factor
        return Size({atoms: factor for atoms, factor in terms.items() if factor}, self.constant + other.constant)

    def __sub__(self, other):
        return self + Size.of(other) * -1

    def __mul__(self, other):
        other = Size.of(other)
        pairs = [[*size.terms.items(), *([((), size.constant)] if size.constant else [])] for size in (self, other)]
        result = Size()
        for one, factor in pairs[0]:
            for two, scale in pairs[1]:
                atoms = tuple(sorted(one + two, key=str))
                result += Size({atoms: factor * scale}) if atoms else Size(constant=factor * scale)
        return result

    def __floordiv__(self, divisor):
        whole = Size({a: f // divisor for a, f in self.terms.items() if f // divisor}, self.constant // divisor)
        rest = {a: f % divisor for a, f in self.terms.items() if f % divisor}
        if not rest:
            return whole
        common = math.gcd(divisor, *rest.values())
        rest = Size({a: f // common for a, f in rest.items()}, self.constant % divisor // common)
        divisor //= common
        (atoms, factor), *others = rest.terms.items()
        if not others and factor == 1 and len(atoms) == 1 and isinstance(atoms[0], Quotient):
            inner = atoms[0]
            return whole + (inner.numerator + inner.divisor * rest.constant) // (inner.divisor * divisor)
        return whole + Size({(Quotient(rest, divisor),): 1})

    def __mod__(self, divisor):
        return self - (self // divisor) * divisor

    def __eq__(self, other):
        return isinstance(other, Size) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))

    def is_constant(self):
        return not self.terms

    def value(self, symbols):
        total = self.constant
        for atoms, factor in self.terms.items():
            for atom in atoms:
                factor *= atom.value(symbols) if isinstance(atom, Quotient) else symbols[atom]
            total += factor
        return total

    def __str__(self):
        parts = []
        for atoms, factor in sorted(self.terms.items(), key=lambda term: (-len(term[0]), [str(atom) for atom in term[0]])):
            is_alone = len(atoms) == 1 and factor == 1
            names = [f"({atom})" if isinstance(atom, Quotient) and not is_alone else str(atom) for atom in atoms]
            parts.append((factor, "*".join(names)))
        if self.constant or not parts:
            parts.append((self.constant, ""))
        # What is added stands first, so that no text begins with a sign that need not.
        parts.sort(key=lambda part: part[0] < 0)
        text = ""
        for factor, of in parts:
            number = str(abs(factor)) if not of else of if abs(factor) == 1 else f"{abs(factor)}*{of}"
            sign = ("-" if factor < 0 else "") if not text else (" - " if factor < 0 else " + ")
            text += sign + number
        return text


class Quotient:
    def __init__(self, numerator, divisor):
        self.numerator, self.divisor = numerator, divisor

    def value(self, symbols):
        return self.numerator.value(symbols) // self.divisor

    def __str__(self):
        text = str(self.numerator)
        return f"{text} // {self.divisor}" if text.isidentifier() else f"({text}) // {self.divisor}"

    def __eq__(self, other):
        return str(self) == str(other)

    def __hash__(self):
        return hash(str(self))


def parse_size(text, names):
    """A size as torch.export writes it, with `names` for its symbols; None for one that has no form here."""

    def convert(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return Size(constant=node.value)
        if isinstance(node, ast.Name) and node.id in names:
            return names[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return convert(node.operand) * -1
        if isinstance(node, ast.BinOp):
            kind = type(node.op)
            if kind in (ast.FloorDiv, ast.Mod):
                return divided(kind, node.left, node.right)
            operations = {ast.Add: Size.__add__, ast.Sub: Size.__sub__, ast.Mult: Size.__mul__}
            return operations[kind](convert(node.left), convert(node.right))
        if isinstance(node, ast.Call) and not node.keywords and len(node.args) == 2:
            kinds = {"FloorDiv": ast.FloorDiv, "CleanDiv": ast.FloorDiv, "Mod": ast.Mod, "PythonMod": ast.Mod}
            return divided(kinds[node.func.id], *node.args)
        raise ValueError(text)

    def divided(kind, left, right):
        divisor = convert(right)
        if divisor.terms or divisor.constant < 1:
            raise ValueError(text)
        return convert(left) // divisor.constant if kind is ast.FloorDiv else convert(left) % divisor.constant

    try:
        return convert(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, KeyError, AttributeError):
        return None
