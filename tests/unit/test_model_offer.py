"""The line that offers a model which was found on this machine."""

import shlex

import pytest

from agent.llm.discovery import FoundEndpoint
from agent.llm.listed_models import ListedModel
from gateway.model_choice import format_offer


@pytest.mark.parametrize("name", ["qwen3:8b", "a model", "x'; touch /tmp/here; echo '"])
def test_the_command_of_an_offer_is_one_command_whatever_a_program_calls_its_model(name: str) -> None:
    offer = format_offer(FoundEndpoint(product="Ollama", base_url="http://x", models=(ListedModel(name=name),)))
    assert shlex.split(offer[offer.index("stepgate models") :]) == ["stepgate", "models", "use", name]
