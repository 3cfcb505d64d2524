"""Run the spine once and tell: python -m benchmarks.spine [--mtu 1500] [--delay 0.005] [--seconds 5]"""

from __future__ import annotations

import argparse
import json

from benchmarks.spine.run import run

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mtu", type=int)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--connections", type=int, default=2)
    parser.add_argument("--window", type=int, default=2000)
    parser.add_argument("--ring", type=json.loads, default={}, help="settings of the Ring, as JSON")
    parser.add_argument("--profile", help="a file for the profile of node p")
    chosen = parser.parse_args()
    outcome = run(**vars(chosen))
    print(outcome)
    for name, said in outcome.nodes.items():
        print(name, said)
