# SPDX-License-Identifier: Apache-2.0
"""Positions of a decoder: which input holds them, and masks that say which keys a row sees.

Every node of a finished graph is followed as a formula, where it has one: whole numbers as a sum of indices along
dimensions and of a positions input, truth values as a conjunction of such sums that are at most zero. Then

- `arange(T) + positions[0]`, as torch.export writes static caches, reads the positions themselves, so that positions of
  padded rows reach what is written at them; that is the same where positions follow each other, as the example's must;
- a mask `key <= position`, with `key > position - window` or without, becomes `npu.length_mask`, which a device takes as a
  number and not as a tensor;
- `npu.generate` names the inputs and the output of a token loop.

What is no such formula stays as it is. The mask is compared with the numbers of the example, too.
"""

import torch

from export.errors import UserError, warn
from export.graph import Node, Value, flatten_values
from export.schema import arguments_of

INTEGERS = (torch.int64, torch.int32)
COMPARISONS = ("le", "lt", "ge", "gt")


def length_mask(*tensors, operands, keys, causal=False, window=-1):
    """What npu.length_mask computes; see npu-ir(5)."""
    rows = tensors[0].reshape(-1, 1) if operands != "valid" else torch.zeros(1, 1, dtype=torch.int64)
    columns = torch.arange(keys)
    mask = torch.ones(rows.shape[0], keys, dtype=torch.bool)
    if causal:
        mask = mask & (columns <= rows)
    if window > 0:
        mask = mask & (columns > rows - window)
    if operands != "positions":
        mask = mask & (columns < tensors[-1])
    return mask[None, None]


class LengthMask:
    """The op npu.length_mask, as far as Builder and the document ask ops."""

    _schema = torch._C.parse_schema(
        "npu::length_mask(Tensor positions, *, str operands, int keys, bool causal, int window) -> Tensor"
    )

    def __call__(self, *args, **kwargs):
        return length_mask(*args, **kwargs)


LENGTH_MASK = LengthMask()


class Sum:
    """A whole number per element: `terms` has factors of ("index", dim), ("position", dim, input) and ("first", input).

    Dimensions count from the last, -1, so that broadcasting changes none.
    """

    def __init__(self, terms=None, constant=0):
        self.terms = {term: factor for term, factor in (terms or {}).items() if factor}
        self.constant = constant

    def plus(self, other, factor=1):
        terms = dict(self.terms)
        for term, value in other.terms.items():
            terms[term] = terms.get(term, 0) + factor * value
        return Sum(terms, self.constant + factor * other.constant)

    def times(self, factor):
        return Sum().plus(self, factor)

    def moved(self, dims):
        """With other dimensions; None if one of its own is none of them."""
        terms = {}
        for term, factor in self.terms.items():
            if term[0] == "first":
                terms[term] = factor
            elif term[1] in dims:
                terms[(term[0], dims[term[1]], *term[2:])] = factor
            else:
                return None
        return Sum(terms, self.constant)

    def key(self):
        return frozenset(self.terms.items()), self.constant


def moved(form, dims):
    if form is None or isinstance(form, Sum):
        return form and form.moved(dims)
    parts = [part.moved(dims) for part in form]
    return None if any(part is None for part in parts) else parts


class Forms:
    """The formulas of a graph's Values: a Sum for whole numbers, a list of Sums that are at most zero for truth values."""

    def __init__(self, builder, consecutive):
        self.consecutive = consecutive  # names of inputs whose elements follow each other
        self.known = {}
        self.read_from_first = []  # (Value, position term) of what counts from the first position on
        for value in builder.inputs:
            if value.tensor.dtype == torch.int64 and is_row(value.tensor):
                self.known[value] = Sum({("position", -1, value): 1})
        for node in builder.nodes:
            if node.op is None or len(node.outputs) != 1:
                continue
            for value in flatten_values(node.args):
                if value not in self.known:
                    self.known[value] = constant_form(value)
            form = self.of_node(node)
            if form is not None and self.agrees(form, node.outputs[0].tensor):
                self.known[node.outputs[0]] = form

    def agrees(self, form, tensor):
        """Whether each dimension that a formula has a term of is one that the result has, whole."""
        parts = [form] if isinstance(form, Sum) else form
        dims = [term[1] for part in parts for term in part.terms if term[0] != "first"]
        return all(-dim <= tensor.dim() for dim in dims)

    def of(self, value, like=None):
        """The formula of an operand, whose dimensions a result of the shape of `like` keeps; numbers are constants."""
        if isinstance(value, bool) or value is None:
            return None
        if isinstance(value, int):
            return Sum(constant=value)
        form = self.known.get(value) if isinstance(value, Value) else None
        if form is None or like is None:
            return form
        shape = value.tensor.shape
        kept = {-1 - i: -1 - i for i in range(len(shape)) if i < like.dim() and shape[-1 - i] == like.shape[-1 - i]}
        return moved(form, kept)

    def of_node(self, node):
        name, result = node.op._schema.name.split("::")[-1], node.outputs[0].tensor
        given = dict(zip((argument.name for argument in arguments_of(node.op)), node.args))
        source = next(iter(node.args), None)
        if result.dtype in INTEGERS:
            if name == "arange":
                return self.of_arange(given, result)
            if name in ("add", "sub", "rsub"):
                one, other = self.of(given["self"], result), self.of(given["other"], result)
                alpha = given.get("alpha", 1)
                if one is None or other is None or not isinstance(alpha, int):
                    return None
                total = other.plus(one, -alpha) if name == "rsub" else one.plus(other, alpha if name == "add" else -alpha)
                return self.with_positions(total, node.outputs[0])
            if name == "mul":
                one, other = self.of(given["self"], result), self.of(given["other"], result)
                if one is not None and other is not None and not (one.terms and other.terms):
                    return one.times(other.constant) if one.terms else other.times(one.constant)
            if name == "neg":
                form = self.of(source)
                return form and form.times(-1)
            if name == "select" and is_first(node, self.known.get(source)):
                term = next(iter(self.known[source].terms))
                return Sum({("first", term[2]): 1})
        if result.dtype == torch.bool:
            if name in COMPARISONS:
                one, other = (self.of(given[key], result) for key in ("self", "other"))
                if one is None or other is None or not (isinstance(one, Sum) and isinstance(other, Sum)):
                    return None
                low, high = (one, other) if name in ("le", "lt") else (other, one)
                return [low.plus(high, -1).plus(Sum(constant=int(name in ("lt", "gt"))))]
            if name in ("__and__", "bitwise_and", "logical_and", "mul"):
                one, other = (self.of(given[key], result) for key in ("self", "other"))
                return one + other if isinstance(one, list) and isinstance(other, list) else None
            if name in ("logical_not", "bitwise_not"):
                form = self.of(source)
                return [form[0].times(-1).plus(Sum(constant=1))] if isinstance(form, list) and len(form) == 1 else None
            if name in ("ones", "new_ones", "ones_like") or (name == "full" and given["fill_value"] in (True, 1)):
                return []
            if name in ("index", "index_select"):
                return self.of_table(name, given, result)
        return self.of_view(name, given, result)

    def of_arange(self, given, result):
        start, step = given.get("start", 0), given.get("step", 1)
        whole = all(isinstance(number, int) for number in (start, step, given["end"]))
        return Sum({("index", -1): step}, start) if whole else None

    def with_positions(self, total, value):
        """`index + first position` along a dimension with as many rows as there are positions is the positions."""
        for term, factor in total.terms.items():
            if term[0] != "first" or factor != 1 or term[1].key not in self.consecutive:
                continue
            for other, step in total.terms.items():
                rows = value.tensor.shape[other[1]] if other[0] == "index" else None
                if step == 1 and rows == term[1].tensor.numel():
                    position = ("position", other[1], term[1])
                    terms = {t: f for t, f in total.terms.items() if t not in (term, other)}
                    if not terms and total.constant == 0:
                        self.read_from_first.append((value, position))
                    return Sum({**terms, position: 1}, total.constant)
        return total

    def of_view(self, name, given, result):
        """Ops that keep what an element is."""
        source = given.get("self")
        form = self.known.get(source) if isinstance(source, Value) else None
        if form is None:
            return None
        shape, rank = list(source.tensor.shape), source.tensor.dim()
        if result.dtype != source.tensor.dtype and not (result.dtype in INTEGERS and source.tensor.dtype in INTEGERS):
            return None
        if name in ("alias", "clone", "contiguous", "detach", "to", "type_as", "_to_copy", "lift_fresh", "long"):
            return form
        if name == "expand":
            return self.of(source, result)
        if name == "unsqueeze":
            place = given["dim"] % (rank + 1) - (rank + 1)
            return moved(form, {dim: dim if dim > place else dim - 1 for dim in range(-rank, 0)})
        if name in ("view", "reshape", "_unsafe_view", "squeeze", "flatten", "unflatten", "view_as", "reshape_as"):
            old = [dim - rank for dim, extent in enumerate(shape) if extent != 1]
            new = [dim - result.dim() for dim, extent in enumerate(result.shape) if extent != 1]
            same = [shape[dim] for dim in old] == [result.shape[dim] for dim in new]
            return moved(form, dict(zip(old, new))) if same else None
        if name == "transpose":
            one, other = given["dim0"] % rank - rank, given["dim1"] % rank - rank
            swapped = {one: other, other: one}
            return moved(form, {dim: swapped.get(dim, dim) for dim in range(-rank, 0)})
        if name == "permute":
            return moved(form, {source_dim % rank - rank: dim - rank for dim, source_dim in enumerate(given["dims"])})
        if name == "slice" and given["start"] in (0, None) and result.shape == source.tensor.shape:
            return form
        return None

    def of_table(self, name, given, result):
        """Rows of a constant mask, taken at positions."""
        table = given["self"]
        if name == "index":
            indices = [(dim, index) for dim, index in enumerate(given["indices"]) if index is not None]
            dim, index = indices[0] if len(indices) == 1 else (None, None)
        else:
            dim, index = given["dim"], given["index"]
        form = self.known.get(index) if isinstance(index, Value) else None
        if not isinstance(form, Sum) or not is_constant(table) or table.tensor.dim() < 2 or len(form.terms) != 1 or form.constant:
            return None
        (term, factor), rank = next(iter(form.terms.items())), table.tensor.dim()
        if term[0] != "position" or factor != 1 or index.tensor.dim() != 1 or dim % rank != rank - 2:
            return None
        window = window_of_table(table.tensor)
        if window is None:
            return None
        position, key = Sum({("position", -2, term[2]): 1}), Sum({("index", -1): 1})
        causal = [key.plus(position, -1)]
        return causal if window < 0 else causal + [position.plus(key, -1).plus(Sum(constant=1 - window))]


def is_row(tensor):
    """[T] or [1, T]"""
    return tensor.dim() in (1, 2) and tensor.numel() == tensor.shape[-1] and tensor.numel() > 0


def is_first(node, form):
    """Whether a select takes the first element of a positions input, or its only row."""
    if not isinstance(form, Sum) or len(form.terms) != 1 or form.constant:
        return False
    (term, factor), source = next(iter(form.terms.items())), node.args[0].tensor
    dim = node.args[1] % source.dim() - source.dim()
    return term[0] == "position" and factor == 1 and term[1] == dim and node.args[2] == 0 and source.numel() == source.shape[dim]


def is_constant(value):
    if not isinstance(value, Value):
        return False
    source = source_of(value)
    return source.kind in ("buffer", "constant") and not source.is_written


def constant_form(value):
    """Of a weight: whole numbers that count, or truth values that are all true."""
    if not is_constant(value):
        return None
    tensor = value.tensor
    if tensor.dtype == torch.bool and bool(tensor.all()):
        return []
    if tensor.dtype in INTEGERS and tensor.numel() == 1:
        return Sum(constant=int(tensor))
    if tensor.dtype in INTEGERS and is_row(tensor):
        first = int(tensor.reshape(-1)[0])
        if torch.equal(tensor.reshape(-1), torch.arange(first, first + tensor.numel(), dtype=tensor.dtype)):
            return Sum({("index", -1): 1}, first)
    return None


def window_of_table(table):
    """The window of a causal mask of every row, -1 without one; None for another table."""
    if table.dtype != torch.bool or table.numel() != table.shape[-1] * table.shape[-2]:
        return None
    table = table.reshape(table.shape[-2:])
    positions = torch.arange(table.shape[0])
    seen = int(table[-1].sum())
    for window in (-1, seen):
        if torch.equal(table, length_mask(positions, operands="positions", keys=table.shape[1], causal=True, window=window)[0, 0]):
            return window
    return None


def mask_of(parts, tensor):
    """(positions, causal, window) of a conjunction, if that is what it is."""
    if tensor.dim() < 2 or tensor.numel() != tensor.shape[-1] * tensor.shape[-2]:
        return None
    positions, causal, windows, keys = None, False, [], tensor.shape[-1]
    for part in parts:
        terms = dict(part.terms)
        key = terms.pop(("index", -1), 0)
        if not terms and key > 0 and key * (keys - 1) + part.constant <= 0:
            continue  # true of every key
        if len(terms) != 1 or key not in (1, -1):
            return None
        (term, factor), = terms.items()
        if term[0] != "position" or term[1] != -2 or factor != -key or (positions not in (None, term[2])):
            return None
        positions = term[2]
        if key == 1 and part.constant == 0:
            causal = True
        elif key == -1 and part.constant <= 0:
            windows.append(1 - part.constant)
        else:
            return None
    if positions is None or tensor.shape[-2] != positions.tensor.numel():
        return None
    return positions, causal, min(windows, default=-1)


def rewrite_positions(builder, outputs):
    """Makes positions and masks of a finished graph what is said above, and returns its npu.generate."""
    states = [state.value for state in builder.states]
    users = [value for value in builder.inputs if value not in states]
    known = getattr(builder.memory, "consecutive", None)
    consecutive = {v.key for v in users if is_consecutive(v.tensor)} if known is None else known
    forms = Forms(builder, consecutive)
    replace_counted(builder, forms)
    replace_masks(builder, forms)
    return roles_of(builder, users, outputs)


def is_consecutive(tensor):
    if tensor.dtype != torch.int64 or not is_row(tensor):
        return False
    flat = tensor.reshape(-1)
    return torch.equal(flat, torch.arange(int(flat[0]), int(flat[0]) + flat.numel()))


def insert(builder, node, new):
    """Places nodes that were emitted last in front of another one."""
    at = builder.nodes.index(node)
    builder.nodes[at:at] = new


def emitted(builder, make):
    """What `make` gives and the nodes that it added, taken off the list again."""
    count = len(builder.nodes)
    value = make()
    new = builder.nodes[count:]
    del builder.nodes[count:]
    return value, new


def substitute(builder, old, new):
    """Lets all readers of a Value read another one; outputs stay."""

    def changed(item):
        if isinstance(item, Value):
            return new if item is old else item
        return [changed(part) for part in item] if isinstance(item, (list, tuple)) else item

    for node in builder.nodes:
        if old in flatten_values(node.args):
            node.args = [changed(item) for item in node.args]


def replace_counted(builder, forms):
    names = {}
    for value, (_, dim, source) in forms.read_from_first:
        shape = list(value.tensor.shape)
        if value.tensor.numel() != source.tensor.numel() or value.tensor.dtype != source.tensor.dtype:
            continue
        new, nodes = source, []
        if shape != list(source.tensor.shape):
            new, nodes = emitted(builder, lambda: builder.one(torch.ops.aten.reshape.default, [source, shape]))
        insert(builder, value.node, nodes)
        substitute(builder, value, new)
        names[source.key] = None
    already = getattr(builder.memory, "said", set())
    for name in names:
        if name not in already:
            warn(f"forward() counts positions from the first of '{name}'; all of them are read, so they must follow each other")
        already.add(name)


def replace_masks(builder, forms):
    made = {}
    readers = {}
    for node in builder.nodes:
        for value in flatten_values(node.args):
            readers.setdefault(value, []).append(node)
    found = {}
    for value, form in forms.known.items():
        if isinstance(form, list) and value.kind == "op":
            found[value] = mask_of(form, value.tensor)
    for node in list(builder.nodes):
        value = node.outputs[0] if len(node.outputs) == 1 else None
        if found.get(value) is None or all(found.get(reader.outputs[0]) for reader in readers.get(value, ())):
            continue  # none, or part of a larger one
        positions, causal, window = found[value]
        tensor = value.tensor
        attributes = {"operands": "positions", "keys": tensor.shape[-1], "causal": causal, "window": window}
        key = (positions, *attributes.values())
        if key not in made:
            made[key], nodes = emitted(builder, lambda: emit_mask(builder, positions, attributes))
            insert(builder, node, nodes)
        mask = made[key]
        is_exact = torch.equal(mask.tensor.reshape(tensor.shape), tensor)
        if not is_exact and is_consecutive(positions.tensor):
            raise UserError(f"{node.op_type} was taken for a mask of lengths, and gives another one; please report")
        if mask.tensor.shape != tensor.shape:
            shape = list(tensor.shape)
            mask, nodes = emitted(builder, lambda: builder.one(torch.ops.aten.reshape.default, [made[key], shape]))
            insert(builder, node, nodes)
        substitute(builder, value, mask)


def emit_mask(builder, positions, attributes):
    flat = positions
    if positions.tensor.dim() != 1:
        flat = builder.one(torch.ops.aten.reshape.default, [positions, [positions.tensor.numel()]])
    node = Node(LENGTH_MASK, "npu.length_mask", "length_mask", [flat, *attributes.values()])
    node.outputs = [Value(length_mask(flat.tensor, **attributes), "op", node)]
    builder.nodes.append(node)
    return node.outputs[0]


# ------------------------------------------------------------------------------------------------------------- roles


def roles_of(builder, users, outputs):
    """npu.generate: tokens are what an embedding is read at, positions what a state's rows are written at; {} if unclear."""
    if not builder.states:
        return {}
    tokens, positions, rows = [], [], []
    for node in builder.nodes:
        name = node.op._schema.name.split("::")[-1] if node.op is not None else ""
        given = [source_of(value) for value in flatten_values(node.args)]
        if name == "length_mask":
            positions.append(given[0])
        elif name == "index_copy":
            positions.append(given[1])
        elif name == "embedding":
            rows.append(given[1])
    positions = [value for value in dict.fromkeys(positions) if value in users]
    tokens = [v for v in dict.fromkeys(rows) if v in users and v not in positions and v.tensor.dtype == torch.int64]
    tokens = [value for value in tokens if value.tensor.dim() == 2 and value.tensor.shape[0] == 1]
    if len(tokens) != 1 or len(positions) > 1:
        return {}
    count = tokens[0].tensor.shape[1]
    logits = [v for v in outputs if v.tensor.dim() == 3 and v.tensor.shape[0] == 1 and v.tensor.shape[1] in (1, count)]
    logits = [value for value in logits if value.tensor.is_floating_point()]
    if len(logits) != 1:
        return {}
    return {"tokens": tokens[0], **({"positions": positions[0]} if positions else {}), "logits": logits[0]}


def source_of(value):
    """The tensor that a chain of views begins with."""
    views = ("view", "reshape", "unsqueeze", "squeeze", "alias", "expand", "to", "contiguous", "clone", "flatten")
    while value.node is not None and value.node.op is not None:
        if value.node.op._schema.name.split("::")[-1] not in views:
            break
        value = value.node.args[0]
    return value


