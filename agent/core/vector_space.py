"""`VectorSpace`: what makes two vectors comparable."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """What makes two vectors comparable: the embedder and the dimension."""

    embedder: str
    dimension: int

    def __str__(self) -> str:
        return f"{self.embedder} ({self.dimension} numbers)"
