"""Answers on LoCoMo: every system with the same model, the same turns and the same prompt."""
