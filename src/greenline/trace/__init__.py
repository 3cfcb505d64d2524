"""The trace: what a run leaves behind to be judged, and told.

One schema, flat, one row an event. Written as a stream that survives kill -9, turned into Parquet, put into an
order for people, and shown as a story or as a space-time diagram.
"""
