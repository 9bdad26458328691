"""The pipeline builder: conversations in which a source is analysed, a pipeline proposed, validated and applied."""
