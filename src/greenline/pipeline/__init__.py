"""The data pipeline on Spark: the ordered log into tables and back, and audits of any size.

Only this room and the command speak to Spark, and only through `session`; all else of Greenline does without it.
"""
