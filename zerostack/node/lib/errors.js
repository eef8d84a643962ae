'use strict';

/**
 * What a host call is refused with. It has the members of the kernel's own errors: `kind`, `detail`, `retryable`, and where
 * known `path` and `accepted`.
 */
class ZeroKernelError extends Error {
  constructor({ kind, detail, retryable = false, path, location, accepted }) {
    super(`${kind}: ${detail}`);
    this.kind = kind;
    this.detail = detail;
    this.retryable = retryable;
    if (path !== undefined) this.path = path;
    if (location !== undefined) this.location = location;
    if (accepted !== undefined) this.accepted = accepted;
  }
}
Object.defineProperty(ZeroKernelError.prototype, 'name', { value: 'ZeroKernelError' });

/** Makes the error of a call that is not as it should be. */
function misuse(detail, path, accepted) {
  return new ZeroKernelError({ kind: 'invalid_input', detail, path, accepted });
}

module.exports = { ZeroKernelError, misuse };
