import { ERRORS } from '../../src/contract/errors.ts';
import type { Generator } from './generator.ts';
import { page, table } from './generator.ts';

export const errorsPage: Generator = {
  file: 'docs/reference/errors.md',
  render: () =>
    page(
      'src/contract/errors.ts',
      '# Errors',
      'Every error has a code that is never reused for another meaning. Over HTTP it is a problem document (RFC 9457, `application/problem+json`) with `code`, `detail`, `remedy` and `retryable`; `type` is `urn:sand-boxer:error:<code>`. *Retry* says whether the same request may succeed later; whether sand-boxer itself falls over to another backend is decided by `creation` alone.',
      table(
        ['Code', 'Status', 'Retry', 'Meaning', 'Remedy'],
        Object.entries(ERRORS).map(([code, { status, retryable, title, remedy }]) => [
          `<a id="${code.toLowerCase()}"></a>\`${code}\``,
          String(status),
          retryable ? 'yes' : 'no',
          title,
          remedy,
        ]),
      ),
    ),
};
