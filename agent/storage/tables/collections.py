"""Collections of documents: their passages, their vectors, and who writes into them."""

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from agent.storage.tables.schema import COUNTER, metadata

collections = Table(
    "collections",
    metadata,
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("pipeline", Text, nullable=False),
    Column("sources", Text, nullable=False),
    Column("embedder", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
    PrimaryKeyConstraint("owner", "name"),
)

documents = Table(
    "documents",
    metadata,
    Column("owner", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("document_id", Text, nullable=False),
    Column("checksum", Text, nullable=False),
    Column("data", Text, nullable=False),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("owner", "collection", "source"),
)
Index("documents_by_id", documents.c.owner, documents.c.document_id)
Index("documents_by_checksum", documents.c.owner, documents.c.checksum)

chunk_sets = Table(
    "chunk_sets",
    metadata,
    Column("id", COUNTER, primary_key=True, autoincrement=True),
    Column("owner", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("changes", BigInteger, nullable=False),
)
Index("chunk_sets_by_owner", chunk_sets.c.owner, chunk_sets.c.collection, unique=True)

chunks = Table(
    "chunks",
    metadata,
    Column("seq", COUNTER, primary_key=True, autoincrement=True),
    Column("set_id", COUNTER, ForeignKey("chunk_sets.id", ondelete="CASCADE"), nullable=False),
    Column("chunk_id", Text, nullable=False),
    Column("document_id", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("title_terms", Text, nullable=False),
    Column("text_terms", Text, nullable=False),
    Column("text", Text, nullable=False),
)
Index("chunks_by_id", chunks.c.set_id, chunks.c.chunk_id, unique=True)
Index("chunks_by_document", chunks.c.set_id, chunks.c.document_id)
Index("chunks_by_number", chunks.c.set_id, chunks.c.seq)

vector_sets = Table(
    "vector_sets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("embedder", Text, nullable=False),
    Column("dimension", Integer, nullable=False),
    Column("generation", Text, nullable=False),
    Column("added", BigInteger, nullable=False, server_default="0"),
    Column("removed", BigInteger, nullable=False, server_default="0"),
)

vectors = Table(
    "vectors",
    metadata,
    Column("name", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("payload", Text, nullable=False),
    PrimaryKeyConstraint("name", "id"),
)
Index("vectors_by_owner", vectors.c.name, vectors.c.owner, vectors.c.seq)

collection_vectors = Table(
    "collection_vectors",
    metadata,
    Column("owner", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("serving", Text, nullable=False),
    Column("remaking", Text, nullable=False),
    PrimaryKeyConstraint("owner", "collection"),
)

ingestions = Table(
    "ingestions",
    metadata,
    Column("owner", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("holder", Text, nullable=False),
    Column("until", Float, nullable=False),
    Column("pending", Text, nullable=False),
    PrimaryKeyConstraint("owner", "collection"),
)

# What writers are about to write, until their documents are placed. `ingestions.pending` held one of them before.
pending_passages = Table(
    "pending_passages",
    metadata,
    Column("owner", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("document_id", Text, nullable=False),
    Column("amount", Integer, nullable=False),
    Column("holder", Text, nullable=False),
    PrimaryKeyConstraint("owner", "collection", "document_id"),
)
