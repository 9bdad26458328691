"""Builds the ONNX graph of a BERT sentence encoder from safetensors, without torch, so that tests run a real model.

The graph is Devlin et al. (2018) with mean pooling and unit length behind it, as sentence-transformers runs
all-MiniLM-L6-v2.
"""

import hashlib
import importlib
import json
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent.core.errors import ConfigError

OPSET = 20
"""The first with Gelu; onnxruntime reads it since 1.17."""
IR_VERSION = 9
WEIGHTS, GRAPH, TOKENIZER = "model.safetensors", "model.onnx", "tokenizer.json"
MAX_HEADER_BYTES = 10_000_000
_FAR = -10_000.0
"""Added to the attention of padding: its share becomes zero in float32, and no row of it becomes NaN."""

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a BERT's `config.json` says, as far as the graph needs it. Lengths are in tokens."""

    layers: int
    heads: int
    hidden: int
    epsilon: float
    max_tokens: int

    @property
    def name(self) -> str:
        """The kind of model, as part of its name."""
        return f"bert-{self.layers}x{self.hidden}"


def build(source: Path, target: Path) -> Path:
    """Write the graph and the tokenizer of a folder of safetensors into `target`; the graph's path.

    `ConfigError` for a folder that is no BERT sentence encoder, or where the extra is not installed."""
    serialized = graph_of(source)
    tokenizer = _bytes(source / TOKENIZER)
    try:
        target.mkdir(parents=True, exist_ok=True)
        _write(target / TOKENIZER, tokenizer)
        _write(target / GRAPH, serialized)  # last: a folder with a graph is a whole one
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror}") from error
    return target / GRAPH


def graph_of(source: Path) -> bytes:
    """The serialized graph of a folder of safetensors, with its name, length and digest among the metadata."""
    shape = read_shape(source)
    weights = read_weights(source / WEIGHTS)
    digest = hashlib.sha256(_bytes(source / WEIGHTS)).hexdigest()
    onnx = _onnx()
    try:
        model = _Graph(onnx, shape, weights).model()
    except KeyError as error:
        raise ConfigError(f"{source / WEIGHTS} holds no {error.args[0]}: it is no BERT sentence encoder") from error
    for key, value in (("name", f"{shape.name}@{digest[:8]}"), ("max_tokens", str(shape.max_tokens))):
        model.metadata_props.add(key=f"stepgate.{key}", value=value)
    return bytes(model.SerializeToString(deterministic=True))


def read_shape(source: Path) -> Shape:
    """The shape told by `config.json` and `sentence_bert_config.json`. `ConfigError` for what the graph cannot be."""
    config = _json(source / "config.json")
    extra = source / "sentence_bert_config.json"
    longest = _json(extra).get("max_seq_length") if extra.exists() else None
    pooling = source / "1_Pooling" / "config.json"
    if config.get("model_type") != "bert" or config.get("hidden_act", "gelu") != "gelu":
        raise ConfigError(f"{source} holds a {config.get('model_type')!r} model; only BERT encoders can be built")
    if pooling.exists() and not _json(pooling).get("pooling_mode_mean_tokens", False):
        raise ConfigError(f"{source} pools its tokens by other means than their mean; it cannot be built")
    try:
        shape = Shape(
            layers=int(config["num_hidden_layers"]),
            heads=int(config["num_attention_heads"]),
            hidden=int(config["hidden_size"]),
            epsilon=float(config.get("layer_norm_eps", 1e-12)),
            max_tokens=min(int(longest or config["max_position_embeddings"]), int(config["max_position_embeddings"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{source / 'config.json'} does not describe a BERT model: {error}") from error
    if min(shape.layers, shape.heads, shape.hidden) < 1 or shape.hidden % shape.heads or shape.max_tokens < 3:
        raise ConfigError(f"{source / 'config.json'} describes an impossible model: {shape}")
    return shape


def read_weights(path: Path) -> Weights:
    """The float tensors of a safetensors file: eight bytes of length, a JSON header, the numbers."""
    data = _bytes(path)
    size = int.from_bytes(data[:8], "little")
    try:
        if not 2 <= size <= min(MAX_HEADER_BYTES, len(data) - 8):
            raise ValueError("its header's length is wrong")
        header = json.loads(data[8 : 8 + size])
        body = memoryview(data)[8 + size :]
        return {
            name: _tensor(body, told)
            for name, told in header.items()
            if name != "__metadata__" and told["dtype"] in {"F32", "F16"}
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{path} is no whole safetensors file: {error}") from error


def _tensor(body: memoryview, told: Mapping[str, Any]) -> NDArray[np.float32]:
    start, end = told["data_offsets"]
    kind = np.dtype("<f4" if told["dtype"] == "F32" else "<f2")
    shape = tuple(int(side) for side in told["shape"])
    if not 0 <= start <= end <= len(body) or end - start != math.prod(shape) * kind.itemsize:
        raise ValueError("a tensor lies outside of the file")
    return np.frombuffer(body[start:end], dtype=kind).reshape(shape).astype(np.float32)


class _Graph:
    """The nodes in the order they are made; each method adds some and returns the name of what comes out."""

    def __init__(self, onnx: Any, shape: Shape, weights: Weights) -> None:
        self._onnx = onnx
        self._shape = shape
        # Some files name everything below the module that holds the model.
        self._weights = {name.removeprefix("bert.").removeprefix("0.auto_model."): w for name, w in weights.items()}
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def model(self) -> Any:
        """`input_ids` and `attention_mask`, both [batch, tokens] of int64, to `vectors`, [batch, hidden] of float32."""
        helper, kind = self._onnx.helper, self._onnx.TensorProto
        hidden = self._embedded()
        mask = self._add("Cast", "attention_mask", to=kind.FLOAT)
        far = self._add("Mul", self._add("Sub", self._number(1.0), mask), self._number(_FAR))
        far = self._add("Unsqueeze", far, self._constant("one_two", np.array([1, 2], np.int64)))
        for layer in range(self._shape.layers):
            hidden = self._layer(f"encoder.layer.{layer}", hidden, far)
        self._nodes.append(helper.make_node("Identity", [self._pooled(hidden, mask)], ["vectors"]))
        inputs = [
            helper.make_tensor_value_info(name, kind.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask")
        ]
        output = helper.make_tensor_value_info("vectors", kind.FLOAT, ["batch", self._shape.hidden])
        graph = helper.make_graph(self._nodes, self._shape.name, inputs, [output], list(self._constants.values()))
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="stepgate")

    def _embedded(self) -> str:
        """Words, places and the type of the first sentence, added up."""
        words = self._add("Gather", self._weight("embeddings.word_embeddings.weight"), "input_ids")
        length = self._add("Shape", "input_ids", start=1, end=2)
        zero, one = self._constant("zero", np.array(0, np.int64)), self._constant("one", np.array(1, np.int64))
        places = self._add("Range", zero, self._add("Squeeze", length), one)
        placed = self._add("Gather", self._weight("embeddings.position_embeddings.weight"), places)
        kind = self._constant("first_type", self._weights["embeddings.token_type_embeddings.weight"][0])
        return self._norm("embeddings.LayerNorm", self._add("Add", self._add("Add", words, kind), placed))

    def _layer(self, prefix: str, hidden: str, far: str) -> str:
        shape = self._shape
        size = shape.hidden // shape.heads
        split = self._constant("split", np.array([0, 0, shape.heads, size], np.int64))
        query, key, value = (
            self._add("Reshape", self._linear(f"{prefix}.attention.self.{part}", hidden), split)
            for part in ("query", "key", "value")
        )
        query, value = (self._add("Transpose", one, perm=[0, 2, 1, 3]) for one in (query, value))
        key = self._add("Transpose", key, perm=[0, 2, 3, 1])
        near = self._add("Mul", self._add("MatMul", query, key), self._number(1 / math.sqrt(size)))
        share = self._add("Softmax", self._add("Add", near, far), axis=-1)
        mixed = self._add("Transpose", self._add("MatMul", share, value), perm=[0, 2, 1, 3])
        joined = self._add("Reshape", mixed, self._constant("join", np.array([0, 0, shape.hidden], np.int64)))
        attended = self._linear(f"{prefix}.attention.output.dense", joined)
        hidden = self._norm(f"{prefix}.attention.output.LayerNorm", self._add("Add", attended, hidden))
        wide = self._add("Gelu", self._linear(f"{prefix}.intermediate.dense", hidden))
        return self._norm(
            f"{prefix}.output.LayerNorm", self._add("Add", self._linear(f"{prefix}.output.dense", wide), hidden)
        )

    def _pooled(self, hidden: str, mask: str) -> str:
        """The mean over the tokens of the text, of length one."""
        axis = self._constant("axis_one", np.array([1], np.int64))
        wide = self._add("Unsqueeze", mask, self._constant("axis_last", np.array([2], np.int64)))
        total = self._add("ReduceSum", self._add("Mul", hidden, wide), axis, keepdims=0)
        mean = self._add("Div", total, self._add("ReduceSum", mask, axis, keepdims=1))
        length = self._add("ReduceL2", mean, axis, keepdims=1)
        return self._add("Div", mean, self._add("Max", length, self._number(1e-12)))

    def _linear(self, name: str, given: str) -> str:
        weight = self._constant(f"{name}.transposed", np.ascontiguousarray(self._weights[f"{name}.weight"].T))
        return self._add("Add", self._add("MatMul", given, weight), self._weight(f"{name}.bias"))

    def _norm(self, name: str, given: str) -> str:
        scale, bias = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return self._add("LayerNormalization", given, scale, bias, epsilon=self._shape.epsilon, axis=-1)

    def _weight(self, name: str) -> str:
        return self._constant(name, self._weights[name])

    def _number(self, value: float) -> str:
        return self._constant(f"number_{value:g}", np.array(value, np.float32))

    def _constant(self, name: str, value: NDArray[Any]) -> str:
        if name not in self._constants:
            self._constants[name] = self._onnx.numpy_helper.from_array(value, name)
        return name

    def _add(self, kind: str, *inputs: str, **options: Any) -> str:
        output = f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), [output], **options))
        return output


def _onnx() -> Any:
    try:
        for part in ("helper", "numpy_helper"):
            importlib.import_module(f"onnx.{part}")
        return importlib.import_module("onnx")
    except ImportError as error:
        raise ConfigError("building a model needs the extra: pip install 'stepgate[local-embedder]'") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        held = json.loads(_bytes(path))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no JSON") from error
    if not isinstance(held, dict):
        raise ConfigError(f"{path} is no JSON object")
    return held


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror}); a model's folder holds {WEIGHTS}, config.json and {TOKENIZER}"
        ) from error


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).chmod(0o644)
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
