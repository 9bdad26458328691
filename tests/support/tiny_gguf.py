"""A GGUF file that llama.cpp loads in a moment: the shape of a language model with random weights, 200 kB.

What it writes means nothing; that it is loaded, asked, killed and started again is what the tests are about. The layout
is that of GGUF 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
"""

import random
import struct
from pathlib import Path
from typing import Any

WIDTH, HEADS, CONTEXT = 64, 2, 512
_ALIGNMENT = 32
_U32, _F32, _TEXT, _LIST, _I32 = 4, 6, 8, 9, 5
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
"""Types of tokens."""


def write_tiny_gguf(path: Path, *, architecture: str = "llama") -> Path:
    """Writes the file. An architecture that llama.cpp does not know makes a file that cannot be loaded."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *"abcdefghijklmnopqrstuvwxyz"]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256, *[_NORMAL] * 26]
    values: list[tuple[str, int, Any]] = [
        ("general.architecture", _TEXT, architecture),
        ("general.name", _TEXT, "tiny"),
        (f"{architecture}.context_length", _U32, CONTEXT),
        (f"{architecture}.embedding_length", _U32, WIDTH),
        (f"{architecture}.block_count", _U32, 1),
        (f"{architecture}.feed_forward_length", _U32, WIDTH),
        (f"{architecture}.attention.head_count", _U32, HEADS),
        (f"{architecture}.attention.layer_norm_rms_epsilon", _F32, 1e-5),
        (f"{architecture}.rope.dimension_count", _U32, WIDTH // HEADS),
        (f"{architecture}.vocab_size", _U32, len(tokens)),
        ("tokenizer.ggml.model", _TEXT, "llama"),
        ("tokenizer.ggml.tokens", _LIST, (_TEXT, tokens)),
        ("tokenizer.ggml.scores", _LIST, (_F32, [0.0] * len(tokens))),
        ("tokenizer.ggml.token_type", _LIST, (_I32, kinds)),
        ("tokenizer.ggml.bos_token_id", _U32, 1),
        ("tokenizer.ggml.eos_token_id", _U32, 2),
    ]
    square = (WIDTH, WIDTH)
    tensors = {
        "token_embd.weight": (WIDTH, len(tokens)),
        "output_norm.weight": (WIDTH,),
        "output.weight": (WIDTH, len(tokens)),
        "blk.0.attn_norm.weight": (WIDTH,),
        "blk.0.ffn_norm.weight": (WIDTH,),
        **{f"blk.0.{name}.weight": square for name in ("attn_q", "attn_k", "attn_v", "attn_output")},
        **{f"blk.0.{name}.weight": square for name in ("ffn_gate", "ffn_up", "ffn_down")},
    }
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    head += b"".join(_pack_text(name) + struct.pack("<I", kind) + _pack(kind, value) for name, kind, value in values)
    data, chance = bytearray(), random.Random(1)
    for name, shape in tensors.items():
        count = 1
        for size in shape:
            count *= size
        head += _pack_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        data += struct.pack(f"<{count}f", *(chance.uniform(-0.5, 0.5) for _ in range(count)))
        data += b"\0" * (-len(data) % _ALIGNMENT)
    path.write_bytes(head + b"\0" * (-len(head) % _ALIGNMENT) + bytes(data))
    return path


def _pack(kind: int, value: Any) -> bytes:
    if kind == _TEXT:
        return _pack_text(value)
    if kind == _LIST:
        inner, items = value
        return struct.pack("<IQ", inner, len(items)) + b"".join(_pack(inner, item) for item in items)
    return struct.pack({_U32: "<I", _I32: "<i", _F32: "<f"}[kind], value)


def _pack_text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded
