"""Output formats: tables for people; JSON, CSV and SPICE rawfiles for other programs.

Every function here takes plain values (the dictionary of `OperatingPoint.to_dict`, columns of numbers) and returns
text. Nothing writes files or prints; the same input gives the same text.
"""
