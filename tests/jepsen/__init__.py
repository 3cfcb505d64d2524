"""A run like Jepsen's on real nodes: clients on all sides, everything goes wrong, and values are judged in the end."""
