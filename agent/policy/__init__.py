"""Policy: guardrails, egress, labels of texts, redaction, and when a person must approve.

Begin with `approval/question.py` `format_approval_question`, `redaction/events.py` `EventRedactor`, `egress.py`
`make_link_filter` and `message_labels.py` `label_message`.
"""
