# SPDX-License-Identifier: Apache-2.0
"""Subcommands of the command line: each a file that declares its arguments and carries it out."""
