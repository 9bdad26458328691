"""`stepgate embedder build`: a model's safetensors to the folder that AGENT_EMBEDDER_MODEL_DIR names."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.groups import Group

app = typer.Typer(help="Embedder: a local model of meaning, for better retrieval without a server.", cls=Group)


@app.callback()
def options() -> None:
    """Keep `build` a command of its own, though it is the only one."""


@app.command()
def build(
    source: Annotated[Path, typer.Argument(help="Folder with model.safetensors, config.json and tokenizer.json.")],
    target: Annotated[Path, typer.Argument(help="Folder to write the model to; made if it is not there.")],
) -> None:
    """Build the ONNX graph of a BERT sentence encoder, such as all-MiniLM-L6-v2. Nothing is downloaded."""
    from agent.core.embedder import OnnxEmbedder  # noqa: PLC0415 - only here
    from agent.core.embedder.graph import build as built  # noqa: PLC0415

    path = built(source, target)
    space = OnnxEmbedder(target).check()
    print(f"{path} gives vectors of {space.dimension} numbers ({space.embedder})")
    print(f"AGENT_EMBEDDER_MODEL_DIR={target.resolve()}")
