"""Markdown of models and tools as clean HTML: `render_markdown` for a whole text, `BlockStream` for one that grows."""

from gateway.render.html.block_stream import BlockStream
from gateway.render.html.rendering import render_markdown

__all__ = ["BlockStream", "render_markdown"]
