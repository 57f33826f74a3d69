"""What makes a model worth trusting: measures of chapter 8 of the book.

A. Jung, "Federated Learning: From Theory to Practice": oversight (8.1), robustness
(8.2, `tacita.theory.sensitivity`), explainability (8.3), traceability (8.4), fairness
(8.5) and sustainability (8.6).
"""
