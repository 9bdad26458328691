"""The pipeline builder: conversations that analyse a source, propose a pipeline, validate it and apply it."""
