# SPDX-License-Identifier: Apache-2.0
"""Event-driven sparse operators for JAX."""
