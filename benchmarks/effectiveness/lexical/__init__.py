"""A study of the default lexical model: n-grams, weights and the default distance.

Values are compared in the exact sparse space of their n-grams and words; see
`benchmarks.effectiveness.lexical.space`. The command is
``python -m benchmarks.effectiveness.lexical_study``.
"""
