# SPDX-License-Identifier: Apache-2.0
"""What the exporters of this folder's parent are made of."""
