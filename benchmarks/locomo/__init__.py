"""LoCoMo, the benchmark of very long conversations: does a memory bring back the turns that hold the answer?"""
