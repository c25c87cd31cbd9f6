"""How good a language model is: perplexity, choices by likelihood, answers it writes, and the tasks of lm-eval.

python -m nlp.evaluation FOLDER --perplexity book.txt
"""
