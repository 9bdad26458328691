"""`VectorSpace`: what makes two vectors comparable."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """The space of a vector: embedder and dimension. Only vectors of one space can be compared."""

    embedder: str
    dimension: int

    def __str__(self) -> str:
        return f"{self.embedder} ({self.dimension} numbers)"
