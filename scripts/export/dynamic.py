# SPDX-License-Identifier: Apache-2.0
"""Documents whose sizes vary: --dynamic INPUT:DIM=NAME[:MIN..MAX[/STEP]].

The model is exported at several sizes. The documents must agree but for integers, and each integer that differs becomes
an expression: the one that torch.export states for it, what the op's own formula gives, one that the tensors before it
have, or one that is found for the numbers: a sum of multiples of the symbols, a product of sizes that are known, a
division if only one is possible. It must hold at every size; what follows no expression is named, with its node and
argument.
"""

import copy
import itertools
import math
import random
import re

import torch

from export.document import make_document
from export.errors import UserError
from export.sizes import Size, parse_size

MOST_DIVISOR = 64  # of divisions that are looked for
MOST_FACTORS = 64  # sizes that are looked at as factors of products of three
FEWEST = 6  # sizes at which a model is exported: three that follow each other, which catch roundings, and others


class Symbol:
    def __init__(self, name):
        self.name = name
        self.least, self.largest, self.step = 1, None, 1
        self.places = []  # (name of the input, dimension)
        self.sizes = []  # at which the model is exported, one for each export

    def ends(self):
        """Ends of the stated range that the model is not exported at otherwise."""
        ends = [self.least, self.largest]
        return [size for size in ends if size and size % self.step == 0 and not min(self.sizes) <= size <= max(self.sizes)]


def parse_dynamic(texts):
    """The symbols of the options, by name."""
    symbols = {}
    for text in texts:
        match = re.fullmatch(r"([^:=]+):(\d+)=([A-Za-z_][\w.]*)(?::(\d+)\.\.(\d+)(?:/(\d+))?)?", text)
        if not match:
            raise UserError(f"--dynamic {text}: expected INPUT:DIM=NAME or INPUT:DIM=NAME:MIN..MAX, such as ids:1=S:1..512")
        name, dim, symbol = match[1], int(match[2]), symbols.setdefault(match[3], Symbol(match[3]))
        if match[4]:
            limits = (int(match[4]), int(match[5]), int(match[6] or 1))
            known = (symbol.least, symbol.largest, symbol.step)
            if symbol.largest is not None and known != limits:
                raise UserError(f"--dynamic {text}: {symbol.name} has the range {known[0]}..{known[1]} already")
            symbol.least, symbol.largest, symbol.step = limits
            if symbol.step < 1 or symbol.least > symbol.largest:
                raise UserError(f"--dynamic {text}: the range is empty")
        if any((name, dim) in other.places for other in symbols.values()):
            raise UserError(f"--dynamic {text}: dimension {dim} of '{name}' has a name already")
        symbol.places.append((name, dim))
    return symbols


class SeveralSizes:
    """The sizes at which a model is exported, and its inputs at each of them."""

    def __init__(self, symbols, inputs):
        self.symbols, self.inputs = symbols, inputs
        for symbol in symbols.values():
            for name, dim in symbol.places:
                if name not in inputs.names:
                    known = ", ".join(inputs.names)
                    raise UserError(f"--dynamic: the model has no input '{name}', it has {known}")
                rank = inputs.tensors[inputs.names.index(name)].dim()
                if dim >= rank:
                    raise UserError(f"--dynamic {name}:{dim}={symbol.name}: '{name}' has {rank} dimensions")
        self.count = FEWEST + 2 * (len(symbols) - 1)
        for place, symbol in enumerate(symbols.values()):
            symbol.sizes = self.choose(symbol, place)

    def choose(self, symbol, place):
        """Consecutive sizes, which catch roundings, and larger ones; in another order for each symbol.

        A size of 0 or 1 may be another model to PyTorch, so none is taken where there are others.
        """
        name, dim = symbol.places[0]
        example = self.inputs.tensors[self.inputs.names.index(name)].shape[dim]
        step = symbol.step
        largest = symbol.largest if symbol.largest is not None else max(example, (11 + 2 * place) * step)
        least = max(symbol.least, min(5 * step, max(2, largest - 8 * step)))
        least += -least % step
        known = list(range(least, largest + 1, step))
        if len(known) > self.count:
            far = [known[min(len(known) - 1, 3 + 8 * (i + 1) + 5 * place)] for i in range(self.count - 3)]
            known = list(dict.fromkeys(known[:3] + far + known[3:]))[: self.count]
        if not known:
            raise UserError(f"--dynamic: {symbol.name} has no size in {symbol.least}..{largest}")
        taken = [known[i % len(known)] for i in range(self.count)]
        if place > 0:
            random.Random(place).shuffle(taken)
        return taken

    def values(self, index):
        return {symbol.name: symbol.sizes[index] for symbol in self.symbols.values()}

    def at(self, point):
        """The example inputs with other sizes, by symbol: what they have, over and over."""
        tensors = list(self.inputs.tensors)
        for symbol in self.symbols.values():
            for name, dim in symbol.places:
                place = self.inputs.names.index(name)
                tensor = tensors[place]
                if tensor.shape[dim] == 0:  # an empty past, say
                    tensor = tensor.new_zeros([1 if d == dim else extent for d, extent in enumerate(tensor.shape)])
                tensors[place] = tensor.index_select(dim, torch.arange(point[symbol.name]) % tensor.shape[dim])
        inputs = copy.copy(self.inputs)
        inputs.tensors = tensors
        return inputs

    def dimensions_of(self, name):
        return [dim for symbol in self.symbols.values() for input_name, dim in symbol.places if input_name == name]

    def section(self, inputs):
        """npu.symbols; `inputs` are the names that the document has for the inputs."""
        names = dict(zip(self.inputs.names, inputs))
        section = {}
        for symbol in self.symbols.values():
            entry = {"min": symbol.least}
            if symbol.largest is not None:
                entry["max"] = symbol.largest
            if symbol.step != 1:
                entry["multiple_of"] = symbol.step
            entry["of"] = [[names.get(name, name), dim] for name, dim in symbol.places]
            section[symbol.name] = entry
        return section


def export_template(name, sizes, build, output_names, with_files):
    """The template of a model, of which `build` gives (builder, results) for inputs."""
    documents, stated = [], {}

    def document_at(point):
        builder, results = build(sizes.at(point))
        outputs = builder.finish(results, output_names)
        return builder, make_document(name, builder, outputs, with_files)

    for index in range(sizes.count):
        builder, document = document_at(sizes.values(index))
        documents.append(document)
        values = [value for node in builder.nodes for value in node.outputs] + builder.inputs
        stated = {value.name: value.stated for value in values if value.stated}
    template = Unification(sizes, stated).unify(documents)
    template.setdefault("npu", {"version": 1})["symbols"] = sizes.section([value.name for value in builder.inputs])
    for symbol in sizes.symbols.values():
        for size in symbol.ends():
            point = {**sizes.values(0), symbol.name: size}
            other = difference(template, document_at(point)[1], point)
            if other:
                raise UserError(
                    f"--dynamic: at {symbol.name}={size} the model is another one than at {min(symbol.sizes)} to "
                    f"{max(symbol.sizes)}: {other}; state a range of {symbol.name} that it is the same in"
                )
    return template


# What may be missing where it does nothing, as for a size of 1.
IDLE = {"clone", "contiguous", "expand", "permute", "reshape", "slice", "squeeze", "transpose", "unsqueeze", "view"}


def difference(template, document, point):
    """What a document says otherwise than the template at its sizes; None if nothing."""
    symbols = {name: Size.symbol(name) for name in point}

    def is_same(stated, given):
        if isinstance(stated, str) and isinstance(given, int):
            return parse_size(stated, symbols).value(point) == given
        if isinstance(stated, dict) and isinstance(given, dict):
            return stated.keys() == given.keys() and all(is_same(stated[key], given[key]) for key in stated)
        if isinstance(stated, list) and isinstance(given, list):
            return len(stated) == len(given) and all(map(is_same, stated, given))
        return stated == given

    def is_idle(node):
        kind = node["op_type"].split(".")[1] if node["op_type"].startswith("aten.") else ""
        shapes = [mention["shape"] for mention in (*node["inputs"][:1], *node["outputs"])]
        return kind in IDLE and len(shapes) == 2 and len(shapes[0]) == len(shapes[1]) and all(map(is_equal, *shapes))

    def is_equal(a, b):
        a, b = (parse_size(size, symbols).value(point) if isinstance(size, str) else size for size in (a, b))
        return a == b

    ours, theirs = template["nodes"], document["nodes"]
    keys = ["op_type", "attrs", "outputs"]
    if [node["op_type"] for node in ours] != [node["op_type"] for node in theirs]:
        ours, theirs = ([node for node in nodes if not is_idle(node)] for nodes in (ours, theirs))
        keys = ["op_type"]
    for stated, given in itertools.zip_longest(ours, theirs):
        if stated is None or given is None:
            return f"node '{(stated or given)['name']}' is there at one of them alone"
        shapes = [[mention["shape"] for mention in node["outputs"]] for node in (stated, given)]
        if not is_same(*shapes) or not all(is_same(stated.get(key), given.get(key)) for key in keys):
            return f"node '{stated['name']}' ({stated['op_type']}) is {given['op_type']} of shape {shapes[1][0]} there"
    return None


def names_of_sizes(sizes, shapes):
    """The symbols of torch.export, whose shapes of inputs are given as texts by name, as ours."""
    names = {}
    for symbol in sizes.symbols.values():
        for name, dim in symbol.places:
            text = str(shapes[name][dim])
            if text.isdigit():
                raise UserError(f"torch.export takes dimension {dim} of '{name}' for the constant {text}: it cannot vary")
            known = names.setdefault(text, Size.symbol(symbol.name))
            if known != Size.symbol(symbol.name):
                raise UserError(f"--dynamic: {known} and {symbol.name} must be equal, as torch.export says; give them one name")
    return names


# The least size that torch.export states whatever the model is: 0 and 1 are other models to it.
LEAST_STATED = 2
LARGEST_STATED = 1 << 31


def take_ranges(sizes, names, ranges):
    """Keeps symbols in the ranges that torch.export states, by its symbols: beyond them the program is another one."""
    for place, symbol in enumerate(sizes.symbols.values()):
        stated = [ranges[key] for key in ranges if names.get(str(key)) == Size.symbol(symbol.name)]
        if not stated:
            continue
        least = int(stated[0].lower) if stated[0].lower > LEAST_STATED else 1
        largest = int(stated[0].upper) if stated[0].upper < LARGEST_STATED else None
        if symbol.largest is None:
            symbol.least, symbol.largest = max(least, symbol.least), largest
        elif symbol.least < least or (largest is not None and symbol.largest > largest):
            raise UserError(
                f"--dynamic: {symbol.name} is {symbol.least}..{symbol.largest}, but torch.export takes the model for "
                f"{least}..{largest if largest is not None else 'any'}; state a range within"
            )
        symbol.sizes = sizes.choose(symbol, place)


class Unification:
    """Makes one document of several."""

    def __init__(self, sizes, stated):
        self.points = [sizes.values(index) for index in range(sizes.count)]
        self.names = list(sizes.symbols)
        self.steps = {name: symbol.step for name, symbol in sizes.symbols.items()}
        self.stated = stated  # sizes by name of a tensor, as torch.export states them
        self.known = {}  # sizes by their numbers at the points
        self.shapes = {}  # those found, by name of a tensor
        for name in self.names:
            self.note(Size.symbol(name))

    def numbers(self, size):
        return tuple(size.value(point) for point in self.points)

    def note(self, size):
        return self.known.setdefault(self.numbers(size), size)

    def unify(self, documents):
        first = documents[0]
        self.where = "the document"
        counts = {len(document["nodes"]) for document in documents}
        for nodes in itertools.zip_longest(*(document["nodes"] for document in documents)):
            if any(node is None or node["op_type"] != nodes[0]["op_type"] for node in nodes):
                texts = [f"{n['name']} ({n['op_type']})" if n else "nothing" for n in nodes]
                other = next(text for text in texts if text != texts[0]) if len(set(texts)) > 1 else texts[0]
                raise UserError(f"the model is another one at another size: {texts[0]} at {self.point(0)}, elsewhere {other}")
        assert len(counts) == 1, counts
        result = dict.fromkeys(first)
        # Tensors are known from where they are made on.
        for key in ["graph_inputs", "nodes", *(key for key in first if key not in ("graph_inputs", "nodes"))]:
            values = [document[key] for document in documents]
            if key == "nodes":
                result[key] = [self.node(nodes) for nodes in zip(*values)]
            else:
                self.where = key
                result[key] = self.merge(values, (key,), None)
        return result

    def point(self, index):
        return ", ".join(f"{name}={value}" for name, value in self.points[index].items())

    def node(self, nodes):
        self.where = f"node '{nodes[0]['name']}' ({nodes[0]['op_type']})"
        merged = {}
        for key in ("name", "op_type", "inputs", "outputs", "attrs"):
            if key in nodes[0]:
                merged[key] = self.merge([node.get(key) for node in nodes], (key,), nodes)
        return merged

    def merge(self, values, path, nodes):
        first = values[0]
        if all(type(value) is type(first) for value in values):
            if isinstance(first, dict) and all(value.keys() == first.keys() for value in values):
                if path[0] == "weights" and "name" in first:
                    self.where = f"weight '{first['name']}', which may not vary"
                merged = {key: self.merge([v[key] for v in values], (*path, key), nodes) for key in first if key != "shape" or "name" not in first}
                if "shape" in first and "name" in first:
                    shapes = [value["shape"] for value in values]
                    merged["shape"] = self.shape(first["name"], shapes, (*path, "shape"), nodes)
                    merged = {key: merged[key] for key in first}
                return merged
            if isinstance(first, list) and all(len(value) == len(first) for value in values):
                return [self.merge(list(items), (*path, i), nodes) for i, items in enumerate(zip(*values))]
            if all(value == first for value in values):
                return first
            if isinstance(first, int) and not isinstance(first, bool):
                return str(self.size(tuple(values), path))
        raise self.refusal(path, values)

    def refusal(self, path, values):
        argument = ".".join(str(part) for part in path if part != "attrs")
        if path[0] in ("weights", "constants"):
            argument = str(path[-1])
        texts = [str(value) if len(str(value)) < 40 else str(value)[:37] + "..." for value in values]
        at = "; ".join(f"{text} at {self.point(i)}" for i, text in enumerate(texts))
        return UserError(f"{self.where}: {argument} follows no size: {at}")

    def shape(self, name, shapes, path, nodes):
        """The sizes of a tensor: found once, where it is made."""
        if name in self.shapes and path[0] != "weights":
            return self.shapes[name]
        if any(len(shape) != len(shapes[0]) for shape in shapes):
            raise self.refusal(path, shapes)
        result = []
        for dim, numbers in enumerate(zip(*shapes)):
            if len(set(numbers)) == 1:
                result.append(numbers[0])
                continue
            if path[0] in ("weights", "constants"):
                raise self.refusal(path, shapes)
            hints = [self.stated.get(name, {}).get(dim), *self.formulas(nodes, path, dim)]
            result.append(str(self.size(numbers, (*path, dim), hints)))
        self.shapes[name] = result
        return result

    def size(self, numbers, path, hints=()):
        for size in hints:
            if size is not None and self.numbers(size) == tuple(numbers):
                return self.note(size)
        for find in (self.known.get, self.sum_of_symbols, self.of_known, self.quotient, self.of_products):
            found = find(tuple(numbers))
            if found is not None:
                return self.note(found)
        raise self.refusal(path, numbers)

    def formulas(self, nodes, path, dim):
        """What an op gives by itself, for those that divide: convolutions, pooling, slices with steps."""
        if nodes is None or path[0] != "outputs" or not nodes[0]["inputs"]:
            return []
        rank = len(nodes[0]["outputs"][0]["shape"])
        attrs, shape = nodes[0].get("attrs", {}), self.shapes.get(nodes[0]["inputs"][0]["name"])
        if shape is None or len(shape) != rank:
            return []
        size = shape[dim]
        if not isinstance(size, int):
            size = parse_size(size, {name: Size.symbol(name) for name in self.names})
        if nodes[0]["op_type"] == "aten.slice.Tensor":
            start, step = attrs.get("start") or 0, attrs.get("step", 1)
            behind = isinstance(start, int) and start >= 0 and attrs.get("dim", 0) % rank == dim
            return [(Size.of(size) - start + (step - 1)) // step] if behind else []
        match = re.fullmatch(r"aten\.(conv|max_pool|avg_pool)(\d)d(_with_indices)?\.\w+", nodes[0]["op_type"])
        place = dim - (rank - int(match[2])) if match else -1
        if place < 0 or isinstance(attrs.get("padding"), str):
            return []

        def given(key, otherwise):
            value = attrs.get(key, otherwise)
            value = value if isinstance(value, list) else [value]
            return value[place] if len(value) > place else value[0] if value else otherwise

        kernel = nodes[0]["inputs"][1]["shape"][2 + place] if match[1] == "conv" else given("kernel_size", 1)
        stride = given("stride", 1 if match[1] == "conv" else kernel) or kernel
        covered = Size.of(size) + 2 * given("padding", 0) - given("dilation", 1) * (kernel - 1) - 1
        # Rounded up, the last window may begin in the padding, and is left out then.
        up = (covered + (stride - 1)) // stride
        return [up + 1, up] if attrs.get("ceil_mode") else [covered // stride + 1]

    def sum_of_symbols(self, numbers):
        """a*S + b*T + c with integers, if that is what the numbers are."""
        result, rest = Size(), list(numbers)
        # One symbol after the other: two points that differ in it alone would be needed, so all are solved at once.
        rows = [[point[name] for name in self.names] + [1] for point in self.points]
        solution = solve(rows, rest)
        if solution is None:
            return None
        for name, factor in zip(self.names, solution):
            result += Size.symbol(name) * factor
        result += solution[-1]
        return result if self.numbers(result) == tuple(numbers) else None

    def of_known(self, numbers):
        """A known size times a number, plus another; or the product of two known ones, times a number, plus another."""
        known = [(values, size) for values, size in self.known.items() if len(set(values)) > 1]
        singles = [(values, size) for values, size in known]
        products = [
            (tuple(a * b for a, b in zip(one, two)), (x, y))
            for (one, x), (two, y) in itertools.combinations_with_replacement(known, 2)
        ]
        for values, size in [*singles, *products]:
            fit = line_through(values, numbers)
            if fit is not None:
                size = size[0] * size[1] if isinstance(size, tuple) else size
                return size * fit[0] + fit[1]
        for (one, x), (two, y) in itertools.combinations(known, 2):
            for sign in (1, -1):
                rest = {n - a - sign * b for n, a, b in zip(numbers, one, two)}
                if len(rest) == 1:
                    return x + y * sign + rest.pop()
        return None

    def quotient(self, numbers):
        """(S + b) // c of one symbol, if the numbers leave one choice, or are the same share of each multiple of its step."""
        fits = []
        for divisor, name in itertools.product(range(2, MOST_DIVISOR + 1), self.names):
            # n*c <= S + b < n*c + c at every point.
            low = max(n * divisor - point[name] for n, point in zip(numbers, self.points))
            high = min(n * divisor + divisor - 1 - point[name] for n, point in zip(numbers, self.points))
            if self.steps[name] % divisor == 0 and high - low == divisor - 1:
                return (Size.symbol(name) + (high - high % divisor)) // divisor
            fits += [(Size.symbol(name) + offset) // divisor for offset in range(low, high + 1)]
        return fits[0] if len(fits) == 1 else None

    def of_products(self, numbers):
        """A product of two or three known sizes, or a part of it, as of tiles of images that are rows."""
        known = [(values, size) for values, size in self.known.items() if all(values)][:MOST_FACTORS]
        products = {}
        for (one, x), (two, y) in itertools.combinations_with_replacement(known, 2):
            values = [a * b for a, b in zip(one, two)]
            own = math.gcd(*values)
            products.setdefault(tuple(value // own for value in values), (x, y, own))

        def find(values):
            factor = math.gcd(*values)
            found = products.get(tuple(value // factor for value in values)) if factor else None
            divisor = found[2] // math.gcd(factor, found[2]) if found else MOST_DIVISOR + 1
            if divisor > MOST_DIVISOR:
                return None
            product = found[0] * found[1] * (factor // math.gcd(factor, found[2]))
            return product if divisor == 1 else product // divisor

        rests = [(1, numbers)] + [
            (size, [n // value for n, value in zip(numbers, values)])
            for values, size in known
            if not any(n % value for n, value in zip(numbers, values))
        ]
        for size, rest in rests:
            found = find(rest)
            if found is not None:
                return found * size
        return None


def line_through(values, numbers):
    """(a, b) with a*value + b for every number; None if there is none."""
    (x, n), (y, m) = next(((p, q) for p, q in itertools.combinations(list(zip(values, numbers)), 2) if p[0] != q[0]))
    if (m - n) % (y - x):
        return None
    factor = (m - n) // (y - x)
    offset = n - factor * x
    return (factor, offset) if factor and all(factor * v + offset == k for v, k in zip(values, numbers)) else None


def solve(rows, numbers):
    """Integers x with rows * x = numbers, by elimination; None if there are none, or several."""
    from fractions import Fraction

    table = [[Fraction(value) for value in row] + [Fraction(number)] for row, number in zip(rows, numbers)]
    width, top = len(rows[0]), 0
    for column in range(width):
        pivot = next((i for i in range(top, len(table)) if table[i][column]), None)
        if pivot is None:
            return None
        table[top], table[pivot] = table[pivot], table[top]
        table[top] = [value / table[top][column] for value in table[top]]
        for i, row in enumerate(table):
            if i != top and row[column]:
                table[i] = [a - row[column] * b for a, b in zip(row, table[top])]
        top += 1
    if any(row[-1] for row in table[top:]):
        return None
    solution = [table[i][-1] for i in range(width)]
    return [int(value) for value in solution] if all(value.denominator == 1 for value in solution) else None
