"""`OnnxEmbedder`: computes embeddings in this process with onnxruntime, from a folder with an exported ONNX model.

The folder holds `tokenizer.json` and `model.onnx` (or `onnx/model.onnx`, the layout of sentence-transformers'
repositories). Where the graph returns one vector per token, they are averaged here. onnxruntime is imported at first
use, in the worker thread, because the import costs 0.2 s and 40 MB.
"""

import asyncio
import hashlib
import importlib
import importlib.util
import json
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent.core.errors import ConfigError, EmbedderError
from agent.core.extras import format_install_hint
from agent.core.surrogates import replace_surrogates
from agent.core.vector_space import VectorSpace
from agent.llm.embedder.port import MAX_TEXT_CHARS, Embedded

BATCH = 16
"""Texts per batch. Larger batches are not faster, and a query waits for one batch of a running ingestion."""
MAX_THREADS = 4
"""Cores per batch. The gateway needs some too, and small models gain little from more."""
DEFAULT_TOKENS = 256
"""Maximum tokens per text where the folder does not say: the length all-MiniLM-L6-v2 was trained for."""

MODEL_FILE, TOKENIZER_FILE = "model.onnx", "tokenizer.json"

_HOW_TO_GET = (
    "use a folder with an exported ONNX model, such as a copy of the repository sentence-transformers/all-MiniLM-L6-v2 "
    "with its onnx/model.onnx"
)

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Model:
    """A loaded model. `inputs` names the graph's inputs: two or three of those a BERT model has."""

    session: Any
    tokenizer: Any
    space: VectorSpace
    inputs: tuple[str, ...]


class OnnxEmbedder:
    """Implements `Embedder` and `LanguageAwareEmbedder`. Computes in one thread of its own, off the event loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._model: _Model | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedder")

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `Embedder.embed`. Raises `EmbedderError`, also for a folder without a usable model."""
        if not texts:
            raise EmbedderError("there are no texts to embed", agent_id="embedder")
        model = await self._run(self._get_model)
        tokens = await self._run(_tokenize, model, texts)
        # Sort by length: padding costs as much as text, so texts of similar length share a batch.
        order = sorted(range(len(texts)), key=lambda at: len(tokens[at]))
        vectors: list[tuple[float, ...]] = [()] * len(texts)
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            made = await self._run(self._compute_vectors, model, [tokens[at] for at in part])
            for at, vector in zip(part, made.tolist(), strict=True):
                vectors[at] = tuple(vector)
        return Embedded(model.space, tuple(vectors))

    async def aclose(self) -> None:
        """See `Embedder.aclose`. Finishes the running batch and drops the waiting ones."""
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)
        self._model = None

    def count_tokens_per_word(self, text: str) -> float:
        """See `LanguageAwareEmbedder.count_tokens_per_word`. Returns 1.0 before the first text is embedded."""
        if self._model is None:
            return 1.0
        encoding = self._model.tokenizer.encode(_clean(text), add_special_tokens=False)
        unknown = self._model.tokenizer.token_to_id("[UNK]")
        words = len({at for at in encoding.word_ids if at is not None})
        if unknown is not None and encoding.ids.count(unknown) * 2 > words > 0:
            return math.inf
        return len(encoding.ids) / words if words else 1.0

    @staticmethod
    def _compute_vectors(model: _Model, tokens: Sequence[Sequence[int]]) -> Vectors:
        """The unit vectors of one batch; a zero vector stays zero."""
        longest = max(len(one) for one in tokens)
        ids, mask = np.zeros((len(tokens), longest), np.int64), np.zeros((len(tokens), longest), np.int64)
        for row, one in enumerate(tokens):
            ids[row, : len(one)] = one
            mask[row, : len(one)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            out = model.session.run(None, {name: given[name] for name in model.inputs})[0]
        except Exception as error:  # onnxruntime's errors share no class but this one
            raise EmbedderError(f"the model cannot be run: {_shorten(error)}", agent_id="embedder") from error
        if out.ndim == 3:
            wide = mask[:, :, None].astype(np.float32)
            out = (out * wide).sum(axis=1) / wide.sum(axis=1)
        if not np.isfinite(out).all():
            raise EmbedderError("the model returned NaN or infinite numbers", agent_id="embedder")
        length = np.linalg.norm(out, axis=1, keepdims=True)
        return np.asarray(out / np.maximum(length, 1e-12), np.float32)

    def check(self) -> VectorSpace:
        """Loads the model in this thread. Returns its vector space. Raises `EmbedderError` for an unusable folder."""
        return self._get_model().space

    def _get_model(self) -> _Model:
        if self._model is None:
            try:
                self._model = _load(self._folder)
            except ConfigError as error:
                raise EmbedderError(error.message, agent_id="embedder") from error
        return self._model

    async def _run(self, work: Any, *arguments: Any) -> Any:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        except RuntimeError as error:  # the executor's refusal, and onnxruntime's errors
            raise EmbedderError(f"the model in {self._folder} failed: {error}", agent_id="embedder") from error


def check_model_folder(folder: Path) -> Path:
    """The folder if it holds the files of a model and the extra is installed. Loads nothing.

    Raises `ConfigError`, which says what is missing and how to get it."""
    setting = "AGENT_EMBEDDER_MODEL_DIR"
    if not folder.is_dir():
        raise ConfigError(f"{setting}: there is no folder {folder}; {_HOW_TO_GET}")
    if _find_model_file(folder) is None:
        raise ConfigError(f"{setting}: {folder} holds no {MODEL_FILE}; {_HOW_TO_GET}")
    if not (folder / TOKENIZER_FILE).is_file():
        raise ConfigError(f"{setting}: {folder} holds no {TOKENIZER_FILE}; copy it from the model's repository")
    if missing := [name for name in ("onnxruntime", "tokenizers") if importlib.util.find_spec(name) is None]:
        raise ConfigError(
            f"{setting}: {' and '.join(missing)} is not installed; {format_install_hint('local-embedder')}, or unset it"
        )
    return folder


def _find_model_file(folder: Path) -> Path | None:
    return next((path for path in (folder / MODEL_FILE, folder / "onnx" / MODEL_FILE) if path.is_file()), None)


def _load(folder: Path) -> _Model:
    model_file = _find_model_file(check_model_folder(folder))
    assert model_file is not None  # checked
    runtime, tokenizers = importlib.import_module("onnxruntime"), importlib.import_module("tokenizers")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = min(MAX_THREADS, _count_cores())
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Idle threads would otherwise spin on the cores that the rest of the gateway needs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = runtime.InferenceSession(str(model_file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no class but this one
        raise ConfigError(f"onnxruntime cannot run {model_file}: {_shorten(error)}") from error
    # Graphs that earlier versions of Stepgate built carry their name and length.
    metadata = session.get_modelmeta().custom_metadata_map
    max_tokens = int(metadata.get("stepgate.max_tokens") or _read_max_tokens(folder))
    tokenizer = _load_tokenizer(tokenizers, folder, max_tokens)
    inputs = tuple(one.name for one in session.get_inputs())
    outputs = session.get_outputs()
    if not {"input_ids", "attention_mask"} <= set(inputs) <= {"input_ids", "attention_mask", "token_type_ids"}:
        raise ConfigError(
            f"{model_file} has the inputs {', '.join(inputs)}; a sentence encoder has input_ids and attention_mask"
        )
    dimension = outputs[0].shape[-1] if outputs[0].shape else None
    if len(outputs[0].shape) not in (2, 3) or not isinstance(dimension, int):
        raise ConfigError(
            f"{model_file} returns the shape {outputs[0].shape}; a sentence encoder has a fixed dimension"
        )
    if tokenizer.get_vocab_size() > (rows := _read_vocabulary_size(folder) or tokenizer.get_vocab_size()):
        raise ConfigError(
            f"{folder / TOKENIZER_FILE} has {tokenizer.get_vocab_size()} tokens and the model {rows}: "
            "they belong to different models"
        )
    name = metadata.get("stepgate.name") or f"onnx@{_hash_file(model_file)}"
    return _Model(session, tokenizer, VectorSpace(name, dimension), inputs)


def _load_tokenizer(tokenizers: Any, folder: Path, max_tokens: int) -> Any:
    path = folder / TOKENIZER_FILE
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ConfigError(f"{path} is not a tokenizer: {_shorten(error)}") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _tokenize(model: _Model, texts: Sequence[str]) -> list[list[int]]:
    encoded = model.tokenizer.encode_batch([_clean(text) for text in texts])
    return [one.ids or [0] for one in encoded]


def _clean(text: str) -> str:
    """Text a tokenizer accepts: no lone surrogates, and a blank for an empty text."""
    return replace_surrogates(text[:MAX_TEXT_CHARS]) or " "


def _read_vocabulary_size(folder: Path) -> int | None:
    size = _read_json(folder / "config.json").get("vocab_size")
    return size if isinstance(size, int) else None


def _read_max_tokens(folder: Path) -> int:
    length = _read_json(folder / "sentence_bert_config.json").get("max_seq_length")
    return length if isinstance(length, int) and length > 2 else DEFAULT_TOKENS


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    return value if isinstance(value, dict) else {}


def _hash_file(path: Path) -> str:
    """Eight hexadecimal digits that identify the model: vectors of two models are never compared."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:8]


def _shorten(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
