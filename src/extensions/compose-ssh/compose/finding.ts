import { SandboxerError } from '../../../contract/errors.ts';

/**
 * `invalid`: no engine would run it, or we cannot tell what it means. `boundary`: it would reach out of the sandbox;
 * `elevated` lets it through.
 */
export interface Finding {
  readonly kind: 'invalid' | 'boundary';
  /** `null` when it is about the file as a whole. */
  readonly service: string | null;
  /** As a path: `volumes[0].source`. */
  readonly field: string;
  readonly detail: string;
  readonly remedy: string;
}

const MOST_TOLD = 20;

/** What is found while a stack is read. An error of the whole is thrown; the rest is collected, so that all are told at once. */
export class Findings {
  readonly #all: Finding[] = [];

  get all(): readonly Finding[] {
    return this.#all;
  }

  add(kind: Finding['kind'], service: string | null, field: string, detail: string, remedy: string): void {
    this.#all.push({ kind, service, field, detail, remedy });
  }

  invalid(service: string | null, field: string, detail: string, remedy: string): void {
    this.add('invalid', service, field, detail, remedy);
  }

  boundary(service: string | null, field: string, detail: string, remedy: string): void {
    this.add('boundary', service, field, detail, remedy);
  }

  /** Throws what stands in the way. */
  settle(elevated: boolean): void {
    const invalid = this.#all.filter(({ kind }) => kind === 'invalid');
    if (invalid.length > 0) throw stackError('SBX_COMPOSE_INVALID', invalid);
    const boundary = this.#all.filter(({ kind }) => kind === 'boundary');
    if (boundary.length > 0 && !elevated) throw stackError('SBX_COMPOSE_REFUSED', boundary);
  }
}

/** `web: privileged: It has all rights on the host.` */
function told({ service, field, detail }: Finding): string {
  return `${service === null ? '' : `${service}: `}${field === '' ? '' : `${field}: `}${detail}`;
}

function stackError(code: 'SBX_COMPOSE_INVALID' | 'SBX_COMPOSE_REFUSED', findings: readonly Finding[]) {
  const [first] = findings as [Finding, ...Finding[]];
  const more = findings.length > 1 ? ` (and ${findings.length - 1} more)` : '';
  return new SandboxerError(code, `${told(first)}${more}`, {
    creation: 'not_created',
    backend: 'ext.compose-ssh',
    remedy: first.remedy,
    field: first.service === null ? first.field : `services.${first.service}.${first.field}`,
    members: { issues: findings.slice(0, MOST_TOLD) },
  });
}

/** Ends the reading at once: what follows would make no sense. */
export function invalidStack(field: string, detail: string, remedy: string, service: string | null = null) {
  return stackError('SBX_COMPOSE_INVALID', [{ kind: 'invalid', service, field, detail, remedy }]);
}
