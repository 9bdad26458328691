"""Which models are called, and how."""

from typing import Literal

from pydantic import BaseModel, Field, NonNegativeFloat, SecretStr, field_validator

from agent.core.model_endpoints import ExtraBody, ModelEndpoint, read_endpoint_keys
from agent.core.settings.field_types import HomePath, HttpUrl


class ModelSettings(BaseModel):
    """Which models are called, and how."""

    llm_base_url: HttpUrl | None = Field(
        default=None, description="any OpenAI-compatible endpoint, e.g. http://127.0.0.1:11434/v1"
    )
    llm_api_key: SecretStr | None = Field(default=None, description="bearer key of that endpoint")
    llm_extra_body: ExtraBody = Field(
        default={},
        description=(
            "further fields of every request to that endpoint, to AGENT_MODEL_FILE or to LiteLLM, as JSON, such as "
            '{"chat_template_kwargs": {"enable_thinking": false}}, which turns off the thinking of Qwen3'
        ),
    )
    model_file: HomePath | None = Field(
        default=None,
        description=(
            "a GGUF file that the gateway serves itself, with the extra `local`, instead of AGENT_LLM_BASE_URL and "
            "AGENT_MODEL_FAST"
        ),
    )
    model_context: int = Field(
        default=16_384, ge=512, description="context of AGENT_MODEL_FILE, in tokens; more needs more memory"
    )
    model_fast: str | None = Field(
        default=None,
        description=(
            "model that plans, supervises and runs skills, or a list of models that are tried in order; unset: the "
            "endpoint's first model; without a URL, a LiteLLM name"
        ),
    )
    model_high: str | None = Field(default=None, description="model for demanding answers; unset: the fast model")
    model_endpoints: dict[str, ModelEndpoint] = Field(
        default={},
        description=(
            "further endpoints, as JSON: "
            '{"backup": {"base_url": "https://models.example.org/v1", "key": "BACKUP_API_KEY"}}, where `key` names the '
            "environment variable with the bearer key; AGENT_MODEL_FAST and AGENT_MODEL_HIGH may be lists such as "
            "small,large@backup, tried in order; `cache_markers: true` sends `cache_control`, "
            "`extra_body` further fields"
        ),
    )
    llm_timeout_s: float = Field(
        default=60,
        gt=0,
        description=(
            "time limit of a model call, in seconds: of a streamed reply until its first token and between tokens, of "
            "any other reply in all; a small or unknown model's replies are all streamed"
        ),
    )
    model_prices: dict[str, tuple[NonNegativeFloat, NonNegativeFloat]] = Field(
        default={},
        description=(
            "USD per million tokens, of prompts and of replies, for endpoints that report no cost, as "
            'JSON: {"gpt-5-mini": [0.25, 2]}; * stands for any other model'
        ),
    )
    llm_max_tokens: int | None = Field(
        default=None, ge=16, description="longest reply requested from a model, in tokens; unset: the model's own limit"
    )

    model_profile: Literal["auto", "small", "capable"] = Field(
        default="auto",
        description=(
            "how the model is used: small: it decides on one batch of calls at a time, bound to the tools' "
            "types, and sees the results; capable: it plans all steps at once and may answer in the same call; auto: "
            "as measured, and as small until it was measured"
        ),
    )

    discover: Literal["auto", "on", "off"] = Field(
        default="auto",
        description=(
            "search this machine's usual ports for programs that serve models, to offer them (Ollama, LM Studio, "
            "llama.cpp, vLLM, Jan); none is used before you choose it; auto: off in containers, and where the "
            "gateway listens beyond this machine"
        ),
    )

    model_probe: Literal["auto", "off"] = Field(
        default="auto",
        description=(
            "auto: measure the model with small tasks if it runs on this machine and the gateway has been idle for a "
            "minute, for at most five minutes, and have it read its first prompt at the start; `stepgate models probe` "
            "measures any model"
        ),
    )

    @property
    def is_llm_configured(self) -> bool:
        """Whether the environment names a model. It wins over the saved list; without both the gateway works in rules
        mode.
        """
        return self.model_fast is not None or self.llm_base_url is not None or self.model_file is not None

    @field_validator("model_endpoints")
    @classmethod
    def _read_endpoint_keys(cls, value: dict[str, ModelEndpoint]) -> dict[str, ModelEndpoint]:
        return read_endpoint_keys(value)
