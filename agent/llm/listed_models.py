"""Reads lists of models: OpenAI's `/v1/models` with what programs add to it, and Ollama's `/api/tags`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent.core.models import FrozenModel
from agent.llm.replies import get_object, list_objects

MAX_MODELS = 500
_PRODUCTS = {"llamacpp": "llama.cpp", "vllm": "vLLM", "library": "Ollama", "organization_owner": "LM Studio"}
"""The values of `owned_by` by which programs are recognised."""
_OTHER_KINDS = re.compile(
    r"(?<![a-z])(?:embed(?:ding|dings)?|text-embedding|bge|gte|e5|minilm|bert|rerank(?:er)?|whisper|tts|stable-diffusion)"
    r"(?![a-z])",
    re.IGNORECASE,
)
"""Parts of names of models that do not chat. Counts only where the endpoint says nothing about the model's kind."""
_CHAT_CAPABILITIES = frozenset({"completion", "chat", "vision", "tools", "multimodal"})
_CHAT_TYPES = frozenset({"llm", "vlm", "chat", "model", "text"})
_PATH = re.compile(r"^(?:/|[A-Za-z]:[\\/]).*[\\/]")


class ListedModel(FrozenModel):
    """A chat model as its endpoint lists it."""

    name: str
    size_bytes: int | None = None
    context_tokens: int | None = None
    """The context that the endpoint was started with, where it says so."""

    @property
    def short_name(self) -> str:
        """The name for people: llama.cpp lists the path of the file."""
        return _PATH.sub("", self.name).removesuffix(".gguf")


def read_listing(content: object) -> dict[str, Any] | None:
    """A list of models in OpenAI's form, whichever form it has: an array (Together), `models` in place of `data`, and
    names in place of ids. None for what is not a list of models.
    """
    listing = {"data": content} if isinstance(content, list) else content
    if not isinstance(listing, dict):
        return None
    entries = listing.get("data") if isinstance(listing.get("data"), list) else listing.get("models")
    if not isinstance(entries, list):
        return listing
    data = [{**one, "id": one.get("id") or one.get("name") or one.get("model")} for one in list_objects(entries)]
    return {**listing, "data": data}


def read_listed_models(listing: Mapping[str, Any], tags: Mapping[str, Mapping[str, Any]]) -> tuple[ListedModel, ...]:
    """The chat models of a list. `tags` are Ollama's entries by name, which know sizes and families."""
    listed_models = []
    kinds = {str(entry.get("model") or entry.get("name")): entry for entry in list_objects(listing.get("models"))}
    for entry in _iter_entries(listing):
        name = str(entry["id"])
        details = {**get_object(kinds.get(name)), **get_object(tags.get(name)), **entry}
        if is_chat_model(name, details):
            listed_models.append(
                ListedModel(name=name, size_bytes=_read_size(details), context_tokens=_read_context(details))
            )
    return tuple(listed_models)


def is_chat_model(name: str, entry: Mapping[str, Any]) -> bool:
    """Whether a model chats, as far as its entry and, where that is silent, its name say."""
    capabilities, kind = entry.get("capabilities"), entry.get("type")
    if isinstance(capabilities, list) and capabilities:
        return bool(_CHAT_CAPABILITIES & {str(one).lower() for one in capabilities})
    if isinstance(capabilities, dict):  # Mistral's and Azure's have a name for chats, Copilot's a type
        chats = [value for name, value in capabilities.items() if "chat" in name and isinstance(value, bool)]
        if chats:
            return any(chats)
        kind = kind or capabilities.get("type")
    if isinstance(kind, str) and kind:
        return kind.lower() in _CHAT_TYPES
    details = get_object(entry.get("details"))
    families = details.get("families") or [details.get("family")]
    if any("bert" in str(family).lower() for family in families if family):
        return False
    modalities = get_object(entry.get("architecture")).get("output_modalities")
    if isinstance(modalities, list) and modalities and "text" not in modalities:
        return False
    return _OTHER_KINDS.search(_PATH.sub("", name)) is None


def is_stepgate(listing: Mapping[str, Any]) -> bool:
    """Whether a list of models is one of a Stepgate, whose entries are rooms: a gateway that calls itself would
    never end. `suggestions` are in no other program's list.
    """
    return any("suggestions" in entry for entry in list_objects(listing.get("data")))


def read_product(listing: Mapping[str, Any]) -> str | None:
    """The program whose list this is; None if it does not say."""
    for entry in list_objects(listing.get("data")):
        product = _PRODUCTS.get(str(entry.get("owned_by")))
        if product is not None:
            return product
    return None


def read_tags(tags: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """The entries of Ollama's `/api/tags` by name."""
    entries = list_objects((tags or {}).get("models"))[:MAX_MODELS]
    return {str(entry.get("name") or entry.get("model")): entry for entry in entries}


def find_fingerprint(listing: Mapping[str, Any], model: str) -> str:
    """The identity of a model among others of the same name: its size, digest and shape as listed, without
    the times, which some programs make up at every request.
    """
    kinds = {str(entry.get("model") or entry.get("name")): entry for entry in list_objects(listing.get("models"))}
    entry = next((one for one in _iter_entries(listing) if one["id"] == model), {})
    details = {**get_object(kinds.get(model)), **entry}
    meta = get_object(details.get("meta"))
    parts = (
        details.get("digest"),
        details.get("root"),
        details.get("max_model_len"),
        *(meta.get(key) for key in sorted(meta)),
    )
    return "/".join(str(part) for part in parts if part not in (None, ""))


def _iter_entries(listing: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for entry in list_objects(listing.get("data"))[:MAX_MODELS]:
        if isinstance(entry.get("id"), str) and entry["id"]:
            yield entry


def _read_size(entry: Mapping[str, Any]) -> int | None:
    for value in (get_object(entry.get("meta")).get("size"), entry.get("size")):
        if isinstance(value, int) and value > 0:
            return value
    return None


def _read_context(entry: Mapping[str, Any]) -> int | None:
    meta = get_object(entry.get("meta"))
    for value in (meta.get("n_ctx"), entry.get("max_model_len"), entry.get("loaded_context_length")):
        if isinstance(value, int) and value > 0:
            return value
    return None
