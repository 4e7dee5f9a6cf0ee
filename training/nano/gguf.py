"""The GGUF container: writes a model file from metadata and encoded tensors, and reads one back, every bound checked.

Metadata values are plain Python values where the type is obvious (bool, str, int as u32, float as f32, lists of str,
int as i32, or float as f32) and typed wrappers where it is not:

    write("model.gguf", {"general.name": "nano", "qwen35moe.block_count": U32(8), "general.sampling.top_k": I32(40)},
          [("token_embd.weight", (256, 8192), "Q6_K", payload)])

Dimensions are in file order: the row length first, the reverse of a numpy shape.
"""

import functools
import math
import mmap
import os
import struct
from dataclasses import dataclass

MAGIC = b"GGUF"
VERSION = 3
DEFAULT_ALIGNMENT = 32
MAX_ALIGNMENT = 1 << 16
MAX_DIMENSION = 1 << 40
MAX_DIMENSIONS = 4
MAX_NAME_BYTES = 63
MAX_ARRAY_COUNT = 1 << 30
SMALLEST_KEY_VALUE = 13
SMALLEST_TENSOR_INFO = 24

# name: (id in the file, elements of a block, bytes of a block)
TENSOR_TYPES = {
    "F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22),
    "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34), "Q2_K": (10, 256, 84), "Q3_K": (11, 256, 110), "Q4_K": (12, 256, 144),
    "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210), "IQ2_XXS": (16, 256, 66), "IQ2_XS": (17, 256, 74),
    "IQ3_XXS": (18, 256, 98), "IQ1_S": (19, 256, 50), "IQ4_NL": (20, 32, 18), "IQ3_S": (21, 256, 110),
    "IQ2_S": (22, 256, 82), "IQ4_XS": (23, 256, 136), "I8": (24, 1, 1), "I16": (25, 1, 2), "I32": (26, 1, 4),
    "I64": (27, 1, 8), "F64": (28, 1, 8), "IQ1_M": (29, 256, 56), "BF16": (30, 1, 2), "TQ1_0": (34, 256, 54),
    "TQ2_0": (35, 256, 66), "MXFP4": (39, 32, 17), "NVFP4": (40, 64, 36), "Q1_0": (41, 128, 18), "Q2_0": (42, 64, 18),
}
TENSOR_TYPE_NAMES = {type_id: name for name, (type_id, _, _) in TENSOR_TYPES.items()}

# name: (id in the file, struct code); strings and arrays have a layout of their own
SCALAR_TYPES = {
    "u8": (0, "B"), "i8": (1, "b"), "u16": (2, "H"), "i16": (3, "h"), "u32": (4, "I"), "i32": (5, "i"),
    "f32": (6, "f"), "bool": (7, "?"), "u64": (10, "Q"), "i64": (11, "q"), "f64": (12, "d"),
}
STRING_ID = 8
ARRAY_ID = 9
SCALAR_NAMES = {type_id: name for name, (type_id, _) in SCALAR_TYPES.items()}


class GgufError(ValueError):
    """The file, or what was asked to be written, breaks the format; the message says where."""


@dataclass(frozen=True)
class Typed:
    """A metadata value with its type: a scalar type name, "str", or "array" with the element type in `element`."""

    kind: str
    value: object
    element: str = ""


U8, U16, U32, U64 = (functools.partial(Typed, kind) for kind in ("u8", "u16", "u32", "u64"))
I32, I64 = (functools.partial(Typed, kind) for kind in ("i32", "i64"))
F32, F64 = (functools.partial(Typed, kind) for kind in ("f32", "f64"))
BOOL = functools.partial(Typed, "bool")


def STR(value):
    """Text, or bytes where the string need not be UTF-8."""
    return Typed("str", value)


def ARRAY(element, values):
    """An array whose element type is named: a scalar type such as "i32", or "str"."""
    return Typed("array", list(values), element)


def tensor_bytes(dims, type_name):
    """The size of a tensor's payload. dims in file order; the row length must be whole blocks."""
    if type_name not in TENSOR_TYPES:
        raise GgufError(f"unknown tensor type {type_name!r}")
    _, block_elems, block_bytes = TENSOR_TYPES[type_name]
    if dims[0] % block_elems:
        raise GgufError(f"row length {dims[0]} is not a multiple of {block_elems}, the block of {type_name}")
    return math.prod(dims) // block_elems * block_bytes


def padded(size, alignment):
    return -(-size // alignment) * alignment


# ---------------------------------------------------------------------------------------------------------- writing


def typed(value):
    """Gives a plain Python value its obvious GGUF type."""
    if isinstance(value, Typed):
        return value
    if isinstance(value, bool):
        return BOOL(value)
    if isinstance(value, (str, bytes)):
        return STR(value)
    if isinstance(value, int):
        return U32(value) if 0 <= value < 1 << 32 else I64(value)
    if isinstance(value, float):
        return F32(value)
    if isinstance(value, (list, tuple)) and value:
        for element, classes in (("bool", bool), ("i32", int), ("f32", (int, float)), ("str", (str, bytes))):
            if all(isinstance(item, classes) for item in value):
                return ARRAY(element, value)
        raise GgufError("an array needs elements of one type: all bool, int, float or str")
    if isinstance(value, (list, tuple)):
        raise GgufError("an empty list has no obvious element type: wrap it as ARRAY(element, [])")
    raise GgufError(f"no GGUF type for a Python {type(value).__name__}")


def string_bytes(text):
    data = text.encode("utf-8") if isinstance(text, str) else bytes(text)
    return struct.pack("<Q", len(data)) + data


def scalar_bytes(kind, value):
    if kind == "str":
        return string_bytes(value)
    try:
        return struct.pack("<" + SCALAR_TYPES[kind][1], value)
    except (struct.error, OverflowError) as error:
        raise GgufError(f"{value!r} does not fit {kind}: {error}") from None


def array_bytes(element, values):
    if element == "str":
        return struct.pack("<IQ", STRING_ID, len(values)) + b"".join(string_bytes(text) for text in values)
    if element not in SCALAR_TYPES:
        raise GgufError(f"unknown array element type {element!r}")
    element_id, code = SCALAR_TYPES[element]
    try:
        packed = struct.pack(f"<{len(values)}{code}", *values)
    except (struct.error, OverflowError) as error:
        raise GgufError(f"an element does not fit {element}: {error}") from None
    return struct.pack("<IQ", element_id, len(values)) + packed


def key_value_bytes(key, value):
    if not key:
        raise GgufError("empty metadata key")
    try:
        item = typed(value)
        if item.kind == "array":
            body = struct.pack("<I", ARRAY_ID) + array_bytes(item.element, item.value)
        elif item.kind == "str":
            body = struct.pack("<I", STRING_ID) + string_bytes(item.value)
        elif item.kind in SCALAR_TYPES:
            body = struct.pack("<I", SCALAR_TYPES[item.kind][0]) + scalar_bytes(item.kind, item.value)
        else:
            raise GgufError(f"unknown type {item.kind!r}")
    except GgufError as error:
        raise GgufError(f"metadata key {key!r}: {error}") from None
    return string_bytes(key) + body


def check_tensor(name, dims, type_name, payload):
    encoded = name.encode("utf-8")
    if not encoded or len(encoded) > MAX_NAME_BYTES or b"\0" in encoded:
        raise GgufError(f"tensor name {name!r} must have 1 to {MAX_NAME_BYTES} bytes and no NUL")
    if not 1 <= len(dims) <= MAX_DIMENSIONS or any(not 1 <= dim < MAX_DIMENSION for dim in dims):
        raise GgufError(f"tensor {name!r}: dimensions {tuple(dims)} out of range")
    try:
        expected = tensor_bytes(dims, type_name)
    except GgufError as error:
        raise GgufError(f"tensor {name!r}: {error}") from None
    given = memoryview(payload).nbytes
    if given != expected:
        raise GgufError(f"tensor {name!r}: {type_name} {tuple(dims)} takes {expected} bytes, {given} given")


def alignment_of(metadata):
    value = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    value = value.value if isinstance(value, Typed) else value
    if isinstance(value, bool) or not isinstance(value, int):
        raise GgufError("general.alignment is not an integer")
    if not 1 <= value <= MAX_ALIGNMENT or value & (value - 1):
        raise GgufError(f"general.alignment {value} is not a power of two up to {MAX_ALIGNMENT}")
    return value


def write(path, metadata, tensors):
    """Writes a version 3 file. tensors: (name, dims in file order, type name, payload bytes), stored in this order."""
    alignment = alignment_of(metadata)
    head = [MAGIC, struct.pack("<IQQ", VERSION, len(tensors), len(metadata))]
    head += [key_value_bytes(key, value) for key, value in metadata.items()]
    offset = 0
    seen = set()
    for name, dims, type_name, payload in tensors:
        check_tensor(name, dims, type_name, payload)
        if name in seen:
            raise GgufError(f"tensor {name!r} given twice")
        seen.add(name)
        head.append(string_bytes(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims))
        head.append(struct.pack("<IQ", TENSOR_TYPES[type_name][0], offset))
        offset += padded(memoryview(payload).nbytes, alignment)
    header = b"".join(head)
    with open(path, "wb") as file:
        file.write(header + bytes(padded(len(header), alignment) - len(header)))
        for _, _, _, payload in tensors:
            size = memoryview(payload).nbytes
            file.write(payload)
            file.write(bytes(padded(size, alignment) - size))


# ---------------------------------------------------------------------------------------------------------- reading


class Cursor:
    """Reads fields from the front of the file and refuses to pass its end."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def remaining(self):
        return len(self.data) - self.at

    def take(self, size, what):
        if size > self.remaining():
            raise GgufError(f"truncated: {what} needs {size} bytes at offset {self.at}, {self.remaining()} left")
        self.at += size
        return self.data[self.at - size:self.at]

    def number(self, code, what):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code), what))[0]

    def string(self, what):
        raw = bytes(self.take(self.number("Q", what + " length"), what))
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return raw

    def name(self, what):
        text = self.string(what)
        if not isinstance(text, str) or not text or "\0" in text:
            raise GgufError(f"{what} at offset {self.at} is empty, holds NUL or is not UTF-8")
        return text


def read_array(cursor, key):
    element_id = cursor.number("I", f"element type of {key!r}")
    count = cursor.number("Q", f"count of {key!r}")
    if element_id == STRING_ID:
        smallest = 8
    elif element_id in SCALAR_NAMES:
        code = SCALAR_TYPES[SCALAR_NAMES[element_id]][1]
        smallest = struct.calcsize("<" + code)
    else:
        raise GgufError(f"key {key!r}: array of unknown or nested element type {element_id}")
    if count > MAX_ARRAY_COUNT or count * smallest > cursor.remaining():
        raise GgufError(f"key {key!r}: {count} array elements do not fit the file")
    if element_id == STRING_ID:
        return ARRAY("str", [cursor.string(f"element of {key!r}") for _ in range(count)])
    raw = cursor.take(count * smallest, f"array {key!r}")
    return ARRAY(SCALAR_NAMES[element_id], struct.unpack(f"<{count}{code}", raw))


def read_value(cursor, key):
    type_id = cursor.number("I", f"type of {key!r}")
    if type_id == STRING_ID:
        return STR(cursor.string(f"value of {key!r}"))
    if type_id == ARRAY_ID:
        return read_array(cursor, key)
    if type_id not in SCALAR_NAMES:
        raise GgufError(f"key {key!r}: unknown value type {type_id}")
    kind = SCALAR_NAMES[type_id]
    return Typed(kind, cursor.number(SCALAR_TYPES[kind][1], f"value of {key!r}"))


def read_metadata(cursor, count):
    metadata = {}
    for _ in range(count):
        key = cursor.name("metadata key")
        if key in metadata:
            raise GgufError(f"key {key!r} occurs twice")
        metadata[key] = read_value(cursor, key)
    return metadata


def read_infos(cursor, count):
    infos = {}
    for _ in range(count):
        name = cursor.name("tensor name")
        if name in infos:
            raise GgufError(f"tensor {name!r} occurs twice")
        n_dims = cursor.number("I", f"dimension count of {name!r}")
        if not 1 <= n_dims <= MAX_DIMENSIONS:
            raise GgufError(f"tensor {name!r}: {n_dims} dimensions, 1 to {MAX_DIMENSIONS} are possible")
        dims = tuple(cursor.number("Q", f"dimensions of {name!r}") for _ in range(n_dims))
        if any(not 1 <= dim < MAX_DIMENSION for dim in dims):
            raise GgufError(f"tensor {name!r}: dimensions {dims} out of range")
        type_id = cursor.number("I", f"type of {name!r}")
        if type_id not in TENSOR_TYPE_NAMES:
            raise GgufError(f"tensor {name!r}: unknown tensor type {type_id}")
        infos[name] = (dims, TENSOR_TYPE_NAMES[type_id], cursor.number("Q", f"offset of {name!r}"))
    return infos


def slice_tensors(data, data_start, infos, alignment):
    """Payloads by name, each aligned, inside the file and apart from the others."""
    tensors = {}
    spans = []
    for name, (dims, type_name, offset) in infos.items():
        try:
            size = tensor_bytes(dims, type_name)
        except GgufError as error:
            raise GgufError(f"tensor {name!r}: {error}") from None
        begin = data_start + offset
        if offset % alignment:
            raise GgufError(f"tensor {name!r}: offset {offset} is not a multiple of {alignment}")
        if begin + size > len(data):
            raise GgufError(f"tensor {name!r}: ends at {begin + size}, the file at {len(data)}")
        spans.append((begin, begin + size, name))
        tensors[name] = (dims, type_name, data[begin:begin + size])
    spans.sort()
    for (_, end, first), (begin, _, second) in zip(spans, spans[1:]):
        if begin < end:
            raise GgufError(f"tensors {first!r} and {second!r} overlap")
    return tensors


def open_view(path):
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise GgufError("the file is empty")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def parse(data, keep_types=False):
    """As read(), from bytes in memory."""
    data = memoryview(data)
    cursor = Cursor(data)
    if bytes(cursor.take(4, "magic")) != MAGIC:
        raise GgufError("not a GGUF file: wrong magic")
    version = cursor.number("I", "version")
    if version & 0xFFFF == 0:
        raise GgufError("byte-swapped file: big-endian GGUF is not supported")
    if version not in (2, 3):
        raise GgufError(f"GGUF version {version} is not supported, 2 and 3 are")
    tensor_count = cursor.number("Q", "tensor count")
    kv_count = cursor.number("Q", "metadata count")
    if kv_count > cursor.remaining() // SMALLEST_KEY_VALUE:
        raise GgufError(f"{kv_count} metadata entries do not fit the file")
    metadata = read_metadata(cursor, kv_count)
    if tensor_count > cursor.remaining() // SMALLEST_TENSOR_INFO:
        raise GgufError(f"{tensor_count} tensors do not fit the file")
    infos = read_infos(cursor, tensor_count)
    alignment = alignment_of(metadata)
    tensors = slice_tensors(data, padded(cursor.at, alignment), infos, alignment)
    if not keep_types:
        metadata = {key: item.value for key, item in metadata.items()}
    return metadata, tensors


def read(path, keep_types=False):
    """Returns (metadata, {name: (dims in file order, type name, payload memoryview)}).

    Metadata values are plain Python values, or the Typed wrappers write() takes when keep_types is set. A string that
    is not UTF-8 comes back as bytes. The payloads are views of the mapped file and keep it open.
    """
    try:
        return parse(open_view(path), keep_types)
    except GgufError as error:
        raise GgufError(f"{path}: {error}") from None
