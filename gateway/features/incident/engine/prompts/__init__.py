"""The prompts of this feature, one Markdown file each."""

from pathlib import Path

from agent.llm.prompts import PromptSource

PROMPTS = PromptSource(Path(__file__).parent)
render = PROMPTS.render
