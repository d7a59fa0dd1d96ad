"""Benchmark results for people: one document, rendered as HTML (offline, printable), Markdown, and tables as CSV.

words      the texts, English and Chinese
blocks     what a document is made of
charts     SVG drawings out of results
content    results → document, verdict first
html, markdown, csv_tables    the document or its results as a file
"""
