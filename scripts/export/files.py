# SPDX-License-Identifier: Apache-2.0
"""Files that appear as a whole or not at all."""

import contextlib
import os
import tempfile

from export.errors import UserError


def write_files(directory, writers):
    """Writes all files under temporary names first: a failure leaves none of them half done."""
    pending = []
    try:
        os.makedirs(directory, exist_ok=True)
        for name, writer in writers.items():
            handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
            pending.append((temporary, os.path.join(directory, name)))
            with os.fdopen(handle, "wb") as file:
                writer(file)
                file.flush()
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
        while pending:
            os.replace(*pending[0])
            pending.pop(0)
    except OSError as error:
        raise UserError(f"cannot write to {directory}: {error.strerror or error}") from None
    finally:
        for temporary, _ in pending:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
