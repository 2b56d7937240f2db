"""How fast, how frugal and how exact the constrained search is, beside what people use instead."""
