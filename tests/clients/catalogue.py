"""The clients that are checked: their packages, and the script that uses them as their users do."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Client:
    """A client: `packages` are installed into its environment, the first one is the client itself."""

    name: str
    kind: Literal["python", "npm"]
    packages: tuple[str, ...]
    script: str
    title: str

    @property
    def package(self) -> str:
        """The name of the client's own package, without extras and version."""
        if self.kind == "npm":
            scope, at, rest = self.packages[0].rpartition("@")
            return scope if at and scope else f"@{rest}" if at else self.packages[0]
        return self.packages[0].split("[", 1)[0].split(">", 1)[0].split("<", 1)[0].split("=", 1)[0]


CLIENTS = (
    Client("openai-2", "python", ("openai>=2,<3",), "use_openai.py", "OpenAI SDK for Python, version 2"),
    Client("openai-3", "python", ("openai>=3,<4",), "use_openai.py", "OpenAI SDK for Python, version 3"),
    Client("openai-js", "npm", ("openai", "zod"), "use_openai.mjs", "OpenAI SDK for JavaScript"),
    Client("llm", "python", ("llm",), "use_llm.py", "llm (command line and Python)"),
    Client("litellm", "python", ("litellm", "mcp"), "use_litellm.py", "LiteLLM SDK"),
    Client("langchain", "python", ("langchain-openai", "langchain"), "use_langchain.py", "LangChain"),
    Client("instructor", "python", ("instructor",), "use_instructor.py", "Instructor"),
    Client(
        "llama-index", "python", ("llama-index-llms-openai-like", "llama-index-embeddings-openai-like"),
        "use_llama_index.py", "LlamaIndex",
    ),
    Client("openai-agents", "python", ("openai-agents",), "use_openai_agents.py", "OpenAI Agents SDK"),
    Client("pydantic-ai", "python", ("pydantic-ai-slim[openai,mcp]",), "use_pydantic_ai.py", "Pydantic AI"),
    Client(
        "vercel-ai", "npm", ("ai", "@ai-sdk/openai", "@ai-sdk/openai-compatible", "zod"), "use_vercel_ai.mjs",
        "Vercel AI SDK",
    ),
    Client("mcp-inspector", "npm", ("@modelcontextprotocol/inspector",), "use_inspector.mjs", "MCP Inspector CLI"),
    Client("fastmcp", "python", ("fastmcp",), "use_fastmcp.py", "FastMCP client"),
    Client(
        "langchain-mcp", "python", ("langchain-mcp-adapters",), "use_langchain_mcp.py", "LangChain MCP adapters"
    ),
    Client("a2a-sdk", "python", ("a2a-sdk[http-server]",), "use_a2a.py", "A2A SDK for Python"),
    Client("ag-ui", "npm", ("@ag-ui/client",), "use_ag_ui.mjs", "AG-UI client"),
)  # fmt: skip
