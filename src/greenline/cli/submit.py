"""What `spark-submit` takes: `greenline pipeline`, on the master that it was given.

    spark-submit --master spark://10.0.0.9:7077 .../greenline/cli/submit.py run --at ... --into /shared/tables

Workers need Greenline as well: installed there, or with `--py-files`.
"""

from __future__ import annotations

import sys

from greenline.cli.main import run

if __name__ == "__main__":
    sys.argv.insert(1, "pipeline")
    run()
