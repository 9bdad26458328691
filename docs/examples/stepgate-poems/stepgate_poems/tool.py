"""A tool: counts the words of a text."""

from pydantic import BaseModel, Field

from agent.tools import ToolContext, TypedTool


class CountWordsInput(BaseModel):
    """The text to count."""

    text: str = Field(max_length=100_000)


class CountWordsOutput(BaseModel):
    """The number of words."""

    words: int


class CountWordsTool(TypedTool[CountWordsInput, CountWordsOutput]):
    """Counts the words of a text."""

    name = "count_words"
    description = "Count the words of a text."
    keywords = ("count", "words")

    async def run(self, args: CountWordsInput, context: ToolContext) -> CountWordsOutput:
        """Counts what white space separates."""
        return CountWordsOutput(words=len(args.text.split()))

    def format_text(self, output: CountWordsOutput) -> str:
        """The count in a sentence."""
        return f"The text has {output.words} words."
