import { ERRORS } from '../../src/contract/errors/errors.ts';
import type { Generator } from './generator.ts';
import { page, table } from './generator.ts';

export const errorsPage: Generator = {
  file: 'docs/reference/errors.md',
  render: () =>
    page(
      'src/contract/errors/errors.ts',
      '# Errors',
      "Every error has a code that is never reused for another meaning. Over HTTP it is a problem document (RFC 9457, `application/problem+json`) with `code`, `detail`, `remedy`, `fault` and `retryable`; `type` is `urn:sand-boxer:error:<code>`. *Retry* says whether the same request may succeed later; whether sand-boxer itself falls over to another backend is decided by `creation` alone. *Fault* says whose fault it is: only faults of a backend, or of a host for that host, count against the health that routing sees; after a caller's fault no other backend is tried, unless another backend may accept the request (*elsewhere*).",
      table(
        ['Code', 'Status', 'Fault', 'Retry', 'Meaning', 'Remedy'],
        Object.entries(ERRORS).map(([code, { status, fault, retryable, title, remedy, ...more }]) => [
          `<a id="${code.toLowerCase()}"></a>\`${code}\``,
          String(status),
          'elsewhere' in more ? `${fault}, elsewhere` : fault,
          retryable ? 'yes' : 'no',
          title,
          remedy,
        ]),
      ),
    ),
};
