"""Policy: what texts may say and where words may go, what is redacted, and when a person must approve.

Begin with `approval/question.py` `format_approval_question`, `redaction/events.py` `EventRedactor`,
`guardrails/run_links.py` `make_link_filter` and `guardrails/message_labels.py` `label_message`.
"""
