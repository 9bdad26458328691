"""The local model: its graph compared with the mathematics, its runner, and defective folders."""

import asyncio
import json
import math
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="the extra local-embedder is not installed")
pytest.importorskip("onnx", reason="the extra local-embedder is not installed")

from agent.core.errors import ConfigError, EmbedderError
from agent.llm.embedder import LanguageAwareEmbedder, OnnxEmbedder, check_model_folder
from tests.support.bert_onnx import build, read_weights
from tests.support.tiny_bert import HEADS, HIDDEN, LAYERS, random_weights, vector_of, write_model

TEXTS = ("a red boat sails over the sea", "cars", "", "the green car drives on the road at night , fast", "x")
MODEL = os.environ.get("STEPGATE_TEST_EMBEDDER_SOURCE", "")


def export_model(folder: Path, *, seed: int = 7) -> Path:
    """A folder with a model as `stepgate` of earlier versions built it: finished vectors, name and length inside."""
    build(write_model(folder, seed=seed), folder)
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return export_model(tmp_path / "source")


@pytest.fixture
async def model(source: Path) -> AsyncIterator[OnnxEmbedder]:
    embedder = OnnxEmbedder(source)
    yield embedder
    await embedder.aclose()


def tokens_of(folder: Path, text: str, longest: int) -> list[int]:
    """The tokens of a text, by the tokenizer alone."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(longest)
    tokenizer.no_padding()
    ids: list[int] = tokenizer.encode(text or " ").ids
    return ids


async def test_the_graph_is_the_mathematics_of_the_paper(model: OnnxEmbedder, source: Path) -> None:
    made = await model.embed(TEXTS)
    weights = random_weights(7)
    for text, vector in zip(TEXTS, made.vectors, strict=True):
        expected = vector_of(weights, tokens_of(source, text, 16), LAYERS, HEADS)
        assert float(np.dot(expected, vector)) >= 0.9999995
        assert math.fsum(x * x for x in vector) == pytest.approx(1.0, abs=1e-5)


async def test_a_batch_gives_what_each_text_gives_alone_in_their_order(model: OnnxEmbedder) -> None:
    many = [f"{text} {'wind ' * (n % 7)}" for n, text in enumerate(TEXTS * 9)]
    together = (await model.embed(many)).vectors
    for at in (0, 17, 44):
        alone = (await model.embed([many[at]])).vectors[0]
        assert together[at] == pytest.approx(alone, abs=1e-5)


async def test_a_text_is_cut_at_the_model_s_length(model: OnnxEmbedder) -> None:
    """The four tokens that the tokenizer's file was saved with do not count."""
    cut, whole, longer = (await model.embed([f"red boat {'sea ' * n}" for n in (2, 12, 4_000)])).vectors
    assert whole == pytest.approx(longer, abs=1e-6)
    assert cut != pytest.approx(whole, abs=1e-3)


async def test_odd_texts_have_vectors(model: OnnxEmbedder) -> None:
    made = await model.embed(["", " \n", "\ud800", "\x00", "漢字", "🚤" * 10_000])
    assert all(len(vector) == HIDDEN and all(map(math.isfinite, vector)) for vector in made.vectors)
    with pytest.raises(EmbedderError, match="no texts"):
        await model.embed([])


async def test_the_event_loop_goes_on_while_the_model_computes(model: OnnxEmbedder) -> None:
    await model.embed(["a boat"])
    loop_thread = threading.get_ident()
    threads: set[int] = set()
    inner = model._compute_vectors

    def watched(*arguments: object) -> object:
        threads.add(threading.get_ident())
        return inner(*arguments)  # type: ignore[arg-type]

    model._compute_vectors = watched  # type: ignore[method-assign,assignment]
    beats = 0
    working = asyncio.create_task(model.embed(["a red boat sails over the sea"] * 200))
    while not working.done():
        beats += 1
        await asyncio.sleep(0)
    assert len((await working).vectors) == 200
    assert threads
    assert loop_thread not in threads
    assert beats > 1


async def test_other_weights_are_another_space(source: Path, tmp_path: Path) -> None:
    spaces = {OnnxEmbedder(source).check(), OnnxEmbedder(export_model(tmp_path / "other", seed=8)).check()}
    assert len(spaces) == 2


async def test_graphs_that_others_export_are_pooled_here(source: Path, tmp_path: Path) -> None:
    import onnx

    path = build(source, tmp_path / "exported" / "onnx")
    graph = onnx.load(str(path))
    del graph.metadata_props[:]
    last = next(node for node in reversed(graph.graph.node) if node.op_type == "LayerNormalization")
    graph.graph.node.append(onnx.helper.make_node("Identity", [last.output[0]], ["last_hidden_state"]))
    del graph.graph.output[:]
    shape = ["batch", "tokens", HIDDEN]
    graph.graph.output.append(onnx.helper.make_tensor_value_info("last_hidden_state", onnx.TensorProto.FLOAT, shape))
    onnx.save(graph, str(path))
    for name in ("tokenizer.json", "sentence_bert_config.json", "config.json"):
        shutil.copy(source / name, tmp_path / "exported" / name)
    foreign, own = OnnxEmbedder(tmp_path / "exported"), OnnxEmbedder(source)
    theirs, ours = await foreign.embed(TEXTS), await own.embed(TEXTS)
    assert np.allclose(theirs.vectors, ours.vectors, atol=1e-5)
    assert theirs.space.embedder.startswith("onnx@")
    await foreign.aclose()
    await own.aclose()


async def test_it_tells_the_languages_it_was_made_for(model: OnnxEmbedder) -> None:
    assert isinstance(model, LanguageAwareEmbedder)
    assert model.count_tokens_per_word("a red boat") == 1.0, "nothing is known before the first text"
    await model.embed(["a boat"])
    assert model.count_tokens_per_word("a red boat") == 1.0
    assert model.count_tokens_per_word("boats cars") == 2.0
    assert model.count_tokens_per_word("سفينة في البحر") == math.inf
    assert model.count_tokens_per_word("") == 1.0


def damaged(source: Path, case: str) -> Path:
    """The folder, with one thing wrong."""
    graph, told = source / "model.onnx", source / "config.json"
    config = json.loads(told.read_text("utf-8"))
    damages: dict[str, Callable[[], object]] = {
        "no folder": lambda: shutil.rmtree(source),
        "empty": lambda: [shutil.move(file, source.parent / file.name) for file in list(source.iterdir())],
        "no graph": graph.unlink,
        "no tokenizer": (source / "tokenizer.json").unlink,
        "half": lambda: graph.write_bytes(graph.read_bytes()[: graph.stat().st_size // 2]),
        "no json": lambda: told.write_text("{", "utf-8"),
        "no tokenizer's json": lambda: (source / "tokenizer.json").write_text("{}", "utf-8"),
        "larger vocabulary": lambda: told.write_text(json.dumps(config | {"vocab_size": 3}), "utf-8"),
        "another file": lambda: graph.write_bytes(b"not a graph"),
    }
    damages[case]()
    return source


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("no folder", "there is no folder"),
        ("empty", "holds no model.onnx"),
        ("no graph", "holds no model.onnx"),
        ("no tokenizer", "holds no tokenizer.json"),
        ("half", "onnxruntime cannot run"),
        ("no json", "cannot be read"),
        ("no tokenizer's json", "is not a tokenizer"),
        ("larger vocabulary", "has 25 tokens and the model 3"),
        ("another file", "onnxruntime cannot run"),
    ],
)
async def test_what_is_wrong_with_a_folder_is_told(source: Path, case: str, said: str) -> None:
    embedder = OnnxEmbedder(damaged(source, case))
    with pytest.raises(EmbedderError, match=said):
        await embedder.embed(["a boat"])
    await embedder.aclose()


def test_a_folder_is_looked_at_before_anything_is_loaded(source: Path, tmp_path: Path) -> None:
    assert check_model_folder(source) == source
    with pytest.raises(ConfigError, match="AGENT_EMBEDDER_MODEL_DIR"):
        check_model_folder(tmp_path / "nowhere")


@pytest.mark.skipif(not MODEL, reason="set STEPGATE_TEST_EMBEDDER_SOURCE to a folder of all-MiniLM-L6-v2's safetensors")
async def test_the_real_model_is_the_mathematics_too(tmp_path: Path) -> None:
    source = Path(MODEL)
    build(source, tmp_path / "model")
    embedder = OnnxEmbedder(tmp_path / "model")
    texts = ["What is the refund policy?", "", "boundary layer " * 400, "naïve café 漢字 👍", "Ein Satz auf Deutsch."]
    made = await embedder.embed(texts)
    weights = read_weights(source / "model.safetensors")
    for text, vector in zip(texts, made.vectors, strict=True):
        expected = vector_of(weights, tokens_of(source, text[:8_000], 256), 6, 12)
        assert float(np.dot(expected, vector)) >= 0.9999995
    refund, money, weather = (
        await embedder.embed(["What is the refund policy?", "You get your money back.", "It will rain tomorrow."])
    ).vectors
    assert np.dot(refund, money) > np.dot(refund, weather) + 0.1
    await embedder.aclose()
