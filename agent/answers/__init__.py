"""Answers: the completion step, the final answer, translation, figures, and answers without a model.

Begin with `final_answer.py` `build_final_answer`, `completion.py` `CompletionWriter`, `evidence.py`
`get_no_answer_text`, `translator.py` `Translator` and `composed_answers.py` `compose_results`.
"""
