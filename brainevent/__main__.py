# SPDX-License-Identifier: Apache-2.0
"""``python -m brainevent`` is the command ``brainevent``."""

import sys

from brainevent._cli import main

if __name__ == '__main__':
    sys.exit(main())
