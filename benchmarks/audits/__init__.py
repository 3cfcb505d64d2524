"""Audits at scale: a trace of any size with violations planted in it, judged by both engines.

BENCH_EVENTS=50000000 python -m benchmarks.audits            # on this machine, DuckDB and Spark
BENCH_EVENTS=2000000 BENCH_MASTERS="local-cluster[2,1,1024] standalone" python -m benchmarks.audits
"""
