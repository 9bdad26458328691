"""A BERT sentence encoder of the architecture of all-MiniLM-L6-v2, tiny and random, and its mathematics in float64."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HIDDEN, LAYERS, HEADS, WIDE, PLACES = 24, 2, 3, 48, 32
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = (
    "the", "a", "red", "green", "boat", "car", "sails", "drives", "on", "over", "sea", "road", "wind", "night", "fast",
    "slow", "##s", "##ing", "o", "b", "x",
)  # fmt: skip
Floats = NDArray[np.float64]


def write_model(folder: Path, *, seed: int = 7, max_tokens: int = 16) -> Path:
    """A folder as sentence-transformers writes it: safetensors, configuration, tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "intermediate_size": WIDE, "max_position_embeddings": PLACES,
        "layer_norm_eps": 1e-12, "vocab_size": len(SPECIAL) + len(WORDS),
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": max_tokens}), "utf-8")
    (folder / "tokenizer.json").write_text(json.dumps(_tokenizer()), "utf-8")
    write_safetensors(folder / "model.safetensors", random_weights(seed))
    return folder


def random_weights(seed: int) -> dict[str, NDArray[np.float32]]:
    """The tensors by the names BERT gives them."""
    numbers = np.random.default_rng(seed)

    def tensor(*shape: int) -> NDArray[np.float32]:
        return numbers.normal(0, 0.3, shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": tensor(len(SPECIAL) + len(WORDS), HIDDEN),
        "embeddings.position_embeddings.weight": tensor(PLACES, HIDDEN),
        "embeddings.token_type_embeddings.weight": tensor(2, HIDDEN),
        "pooler.dense.weight": tensor(HIDDEN, HIDDEN),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in (f"encoder.layer.{number}" for number in range(LAYERS)):
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
        square = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
        for name in (*square, f"{layer}.attention.output.dense"):
            weights |= {f"{name}.weight": tensor(HIDDEN, HIDDEN), f"{name}.bias": tensor(HIDDEN)}
        weights |= {f"{layer}.intermediate.dense.weight": tensor(WIDE, HIDDEN)}
        weights |= {f"{layer}.intermediate.dense.bias": tensor(WIDE), f"{layer}.output.dense.bias": tensor(HIDDEN)}
        weights |= {f"{layer}.output.dense.weight": tensor(HIDDEN, WIDE)}
    for name in norms:
        weights |= {f"{name}.weight": 1 + tensor(HIDDEN), f"{name}.bias": tensor(HIDDEN)}
    return weights


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[np.float32]]) -> None:
    """The format in full: a length, a header, the numbers."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, tensor in tensors.items():
        data = tensor.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def vector_of(weights: Mapping[str, NDArray[np.float32]], tokens: Sequence[int], layers: int, heads: int) -> Floats:
    """The vector of one text, step by step as the papers have it, without batches and padding."""
    w = {name: tensor.astype(np.float64) for name, tensor in weights.items()}

    def dense(name: str, given: Floats) -> Floats:
        return np.asarray(given @ w[f"{name}.weight"].T + w[f"{name}.bias"])

    def norm(name: str, given: Floats) -> Floats:
        centred = given - given.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return np.asarray(scaled * w[f"{name}.weight"] + w[f"{name}.bias"])

    held = w["embeddings.word_embeddings.weight"][list(tokens)]
    held = (
        held
        + w["embeddings.position_embeddings.weight"][: len(tokens)]
        + w["embeddings.token_type_embeddings.weight"][0]
    )
    held = norm("embeddings.LayerNorm", held)
    for layer in (f"encoder.layer.{number}" for number in range(layers)):
        query, key, value = (
            np.stack(np.split(dense(f"{layer}.attention.self.{part}", held), heads, axis=-1))
            for part in ("query", "key", "value")
        )
        near = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        share = np.exp(near - near.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
        attended = dense(f"{layer}.attention.output.dense", np.concatenate(list(share @ value), axis=-1))
        held = norm(f"{layer}.attention.output.LayerNorm", attended + held)
        wide = dense(f"{layer}.intermediate.dense", held)
        wide *= 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        held = norm(f"{layer}.output.LayerNorm", dense(f"{layer}.output.dense", wide) + held)
    mean = held.mean(0)
    return np.asarray(mean / np.linalg.norm(mean))


def _tokenizer() -> dict[str, Any]:
    vocabulary = {piece: at for at, piece in enumerate((*SPECIAL, *WORDS))}
    marks = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
             {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]  # fmt: skip
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
        "padding": None,
        "added_tokens": [{"id": at, "content": piece, **added} for at, piece in enumerate(SPECIAL)],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing", "single": marks, "pair": [*marks, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {
                mark: {"id": mark, "ids": [vocabulary[mark]], "tokens": [mark]} for mark in ("[CLS]", "[SEP]")
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary,
        },
    }  # fmt: skip
