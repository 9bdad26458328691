"""`OnnxEmbedder`: a sentence encoder from a folder, on onnxruntime in this process: no torch and no network.

The folder holds `model.onnx` and `tokenizer.json`, as `stepgate embedder build` writes them or as others export them
(then the hidden states of the tokens are averaged here), or the safetensors the graph is made of (see `graph.py`).
onnxruntime is imported at the first use, in the thread that works: 0.2 s and 40 MB nobody else should pay.
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

from agent.core.codec import whole
from agent.core.embedder.graph import GRAPH, TOKENIZER, WEIGHTS, graph_of
from agent.core.embedder.port import MAX_TEXT_CHARS, Embedded
from agent.core.errors import ConfigError, EmbedderError
from agent.core.vectors import Space

BATCH = 16
"""Texts computed at a time: larger ones are no faster, and a query waits for one batch of somebody's ingestion."""
MAX_THREADS = 4
"""Cores one batch is spread over: the gateway needs some too, and small models gain little from more."""
DEFAULT_TOKENS = 256
"""The length all-MiniLM-L6-v2 was trained for, where nothing says another."""

Numbers = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Model:
    """A loaded model. `inputs` are those of its graph, of the three that BERT models have."""

    session: Any
    tokenizer: Any
    space: Space
    inputs: tuple[str, ...]


class OnnxEmbedder:
    """Implements `Embedder` and `Literate`. One thread of its own computes, so that the event loop goes on."""

    def __init__(self, folder: Path, *, threads: int | None = None) -> None:
        self._folder = folder
        self._threads = threads or min(MAX_THREADS, _cores())
        self._model: _Model | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedder")

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `Embedder.embed`. `EmbedderError` says what is wrong with the folder, too."""
        if not texts:
            raise EmbedderError("there are no texts to embed", agent_id="embedder")
        model = await self._run(self._loaded)
        tokens = await self._run(_tokens, model, texts)
        # Texts of like length share a batch: padding is computed like text.
        order = sorted(range(len(texts)), key=lambda at: len(tokens[at]))
        vectors: list[tuple[float, ...]] = [()] * len(texts)
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            made = await self._run(self._vectors_of, model, [tokens[at] for at in part])
            for at, vector in zip(part, made.tolist(), strict=True):
                vectors[at] = tuple(vector)
        return Embedded(model.space, tuple(vectors))

    async def aclose(self) -> None:
        """See `Embedder.aclose`: what is being computed is finished, what waits is not begun."""
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)
        self._model = None

    def pieces_a_word(self, text: str) -> float:
        """See `Literate.pieces_a_word`; before the first text was embedded nothing is known, and one is said."""
        if self._model is None:
            return 1.0
        encoding = self._model.tokenizer.encode(_clean(text), add_special_tokens=False)
        unknown = self._model.tokenizer.token_to_id("[UNK]")
        words = len({at for at in encoding.word_ids if at is not None})
        if unknown is not None and encoding.ids.count(unknown) * 2 > words > 0:
            return math.inf
        return len(encoding.ids) / words if words else 1.0

    @staticmethod
    def _vectors_of(model: _Model, tokens: Sequence[Sequence[int]]) -> Numbers:
        """The vectors of one batch, of length one; of zeros where the model gives none."""
        longest = max(len(one) for one in tokens)
        ids, mask = np.zeros((len(tokens), longest), np.int64), np.zeros((len(tokens), longest), np.int64)
        for row, one in enumerate(tokens):
            ids[row, : len(one)] = one
            mask[row, : len(one)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            out = model.session.run(None, {name: given[name] for name in model.inputs})[0]
        except Exception as error:  # onnxruntime's errors share no class but this one
            raise EmbedderError(f"the model cannot be run: {_short(error)}", agent_id="embedder") from error
        if out.ndim == 3:
            wide = mask[:, :, None].astype(np.float32)
            out = (out * wide).sum(axis=1) / wide.sum(axis=1)
        if not np.isfinite(out).all():
            raise EmbedderError("the model gave numbers that are none", agent_id="embedder")
        length = np.linalg.norm(out, axis=1, keepdims=True)
        return np.asarray(out / np.maximum(length, 1e-12), np.float32)

    def check(self) -> Space:
        """Load the model, in this thread; the space of its vectors. `EmbedderError` for a folder that holds none."""
        return self._loaded().space

    def _loaded(self) -> _Model:
        if self._model is None:
            try:
                self._model = _load(self._folder, self._threads)
            except ConfigError as error:
                raise EmbedderError(error.message, agent_id="embedder") from error
        return self._model

    async def _run(self, work: Any, *arguments: Any) -> Any:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        except RuntimeError as error:  # the executor's refusal, and onnxruntime's errors
            raise EmbedderError(f"the model in {self._folder} failed: {error}", agent_id="embedder") from error


def checked_folder(folder: Path) -> Path:
    """The folder, if it looks like a model's and what runs it is installed; else `ConfigError`. Loads nothing."""
    setting = "AGENT_EMBEDDER_MODEL_DIR"
    if not folder.is_dir():
        raise ConfigError(
            f"{setting}: {folder} is no folder; `stepgate embedder build` makes one from a model's safetensors"
        )
    if _graph(folder) is None and not (folder / WEIGHTS).is_file():
        raise ConfigError(
            f"{setting}: {folder} holds neither {GRAPH} nor {WEIGHTS}; `stepgate embedder build` makes one"
        )
    if not (folder / TOKENIZER).is_file():
        raise ConfigError(f"{setting}: {folder} holds no {TOKENIZER}, which every model has beside its weights")
    needed = ["onnxruntime", "tokenizers", *([] if _graph(folder) else ["onnx"])]
    if missing := [name for name in needed if importlib.util.find_spec(name) is None]:
        raise ConfigError(
            f"{setting}: {' and '.join(missing)} cannot be imported: pip install 'stepgate[local-embedder]'"
        )
    return folder


def _graph(folder: Path) -> Path | None:
    """Where the graph lies: our own layout, or that of exported repositories."""
    return next((path for path in (folder / GRAPH, folder / "onnx" / GRAPH) if path.is_file()), None)


def _load(folder: Path, threads: int) -> _Model:
    graph = _graph(checked_folder(folder))
    runtime, tokenizers = importlib.import_module("onnxruntime"), importlib.import_module("tokenizers")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Threads that wait for work would otherwise burn the cores that the rest of the gateway needs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    held: bytes | str = str(graph) if graph is not None else graph_of(folder)
    try:
        session = runtime.InferenceSession(held, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no class but this one
        raise ConfigError(f"{graph or folder} is no graph onnxruntime can run: {_short(error)}") from error
    told = session.get_modelmeta().custom_metadata_map
    tokenizer = _tokenizer(tokenizers, folder, int(told.get("stepgate.max_tokens") or _longest(folder)))
    inputs = tuple(one.name for one in session.get_inputs())
    outputs = session.get_outputs()
    if not {"input_ids", "attention_mask"} <= set(inputs) <= {"input_ids", "attention_mask", "token_type_ids"}:
        raise ConfigError(f"{graph or folder} takes {', '.join(inputs)}; a sentence encoder takes input_ids and a mask")
    dimension = outputs[0].shape[-1] if outputs[0].shape else None
    if len(outputs[0].shape) not in (2, 3) or not isinstance(dimension, int):
        raise ConfigError(f"{graph or folder} gives {outputs[0].shape}; a sentence encoder gives vectors of one length")
    if tokenizer.get_vocab_size() > (rows := _vocabulary(folder) or tokenizer.get_vocab_size()):
        raise ConfigError(f"{folder / TOKENIZER} knows {tokenizer.get_vocab_size()} pieces, the model {rows}")
    name = told.get("stepgate.name") or f"onnx@{_digest(graph)}"
    return _Model(session, tokenizer, Space(name, dimension), inputs)


def _tokenizer(tokenizers: Any, folder: Path, longest: int) -> Any:
    path = folder / TOKENIZER
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ConfigError(f"{path} is no tokenizer: {_short(error)}") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(longest)
    return tokenizer


def _tokens(model: _Model, texts: Sequence[str]) -> list[list[int]]:
    encoded = model.tokenizer.encode_batch([_clean(text) for text in texts])
    return [one.ids or [0] for one in encoded]


def _clean(text: str) -> str:
    """What the tokenizer takes: no half characters. A text of nothing is a blank."""
    return whole(text[:MAX_TEXT_CHARS]) or " "


def _vocabulary(folder: Path) -> int | None:
    """How many pieces the model knows, where `config.json` says so."""
    held = _told(folder / "config.json").get("vocab_size")
    return held if isinstance(held, int) else None


def _longest(folder: Path) -> int:
    held = _told(folder / "sentence_bert_config.json").get("max_seq_length")
    return held if isinstance(held, int) and held > 2 else DEFAULT_TOKENS


def _told(path: Path) -> dict[str, Any]:
    try:
        held = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    return held if isinstance(held, dict) else {}


def _digest(graph: Path | None) -> str:
    """What tells one foreign graph from another."""
    assert graph is not None  # graphs of our own carry their name
    with graph.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:8]


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
