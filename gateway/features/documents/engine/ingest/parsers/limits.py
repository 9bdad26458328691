"""The limits on one file, passed from settings to the worker's command line."""

from pydantic import Field

from agent.core.models import FrozenModel


class ParserLimits(FrozenModel):
    """The limits on one file, and the OCR languages."""

    timeout_s: float = Field(default=60.0, gt=0, description="seconds for one file; then its worker is killed")
    memory_bytes: int = Field(default=2**29, ge=2**26, description="bytes a worker may take above its own size")
    file_bytes: int = Field(default=100 * 2**20, ge=1, description="bytes of the largest file that is opened")
    output_bytes: int = Field(default=64 * 2**20, ge=2**16, description="bytes of the largest result, as JSON")
    ocr_languages: str = Field(default="eng", pattern=r"^[A-Za-z_]+(\+[A-Za-z_]+)*$", description="e.g. eng+deu")
