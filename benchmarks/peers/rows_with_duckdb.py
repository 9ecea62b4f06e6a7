"""Computes value and derivatives of each row of a table with DuckDB, with derivatives written by hand."""

import sys

import duckdb

_, formula, source, target = sys.argv[1:]
if formula == "short":
    results = (
        "sin(q*ln(x))*exp(-x) AS value, cos(q*ln(x))*ln(x)*exp(-x) AS d_q, "
        "(cos(q*ln(x))*q/x - sin(q*ln(x)))*exp(-x) AS d_x"
    )
else:
    terms = {"value": [], "d_x": [], "d_q": []}
    for k in range(1, 5):
        weight = f"exp(-{k}*x)/(1+{k}*q*q)"
        terms["value"].append(f"sin({k}*x*q)*{weight}")
        terms["d_x"].append(f"{k}*(q*cos({k}*x*q)-sin({k}*x*q))*{weight}")
        terms["d_q"].append(f"(x*{k}*cos({k}*x*q)-sin({k}*x*q)*2*{k}*q/(1+{k}*q*q))*{weight}")
    results = ", ".join(f"{' + '.join(parts)} AS {name}" for name, parts in terms.items())
form = "" if source.endswith(".csv") else "(FORMAT parquet)"
duckdb.sql(f"COPY (SELECT *, {results} FROM '{source}') TO '{target}' {form}")
