import type { ErrorCode } from '../../../../contract/errors/errors.ts';
import { SandboxerError } from '../../../../contract/errors/errors.ts';

/**
 * `invalid`: no engine would run it, or its meaning is unknown. `boundary`: it would reach out of the sandbox; `elevated` allows
 * it.
 */
export interface Finding {
  readonly kind: 'invalid' | 'boundary';
  /** `null`: the finding is about the file as a whole. */
  readonly service: string | null;
  /** Path of the field: `volumes[0].source`. */
  readonly field: string;
  readonly detail: string;
  readonly remedy: string;
}

const MOST_TOLD = 20;
/** Issues are kept with the sandbox and sent with its events. */
const MOST_ISSUES = 100;
const MOST_SHOWN = 400;

/** Returns one printable line: names and values in messages come from the compose file. */
function printable(text: string): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '\uFFFD').slice(0, MOST_SHOWN);
}

interface FindingText {
  readonly detail: string;
  readonly remedy: string;
}

/** Findings and notes of a stack; `settle` reports all findings in one error. */
export class Findings {
  readonly #all: Finding[] = [];
  readonly #leftOut = new Map<string, Set<string>>();

  get all(): readonly Finding[] {
    return this.#all;
  }

  /** One line for each service (or for the file): which fields the emitted file does not have. */
  get notes(): readonly string[] {
    return [...this.#leftOut].map(
      ([service, fields]) => `${service === '' ? '' : `${service}: `}left out: ${[...fields].join(', ')}.`,
    );
  }

  add(kind: Finding['kind'], service: string | null, field: string, { detail, remedy }: FindingText): void {
    this.#all.push({ kind, service, field: printable(field), detail: printable(detail), remedy });
  }

  invalid(service: string | null, field: string, detail: string, remedy: string): void {
    this.add('invalid', service, field, { detail, remedy });
  }

  boundary(service: string | null, field: string, detail: string, remedy: string): void {
    this.add('boundary', service, field, { detail, remedy });
  }

  leaveOut(service: string | null, field: string): void {
    const fields = this.#leftOut.get(service ?? '') ?? new Set();
    this.#leftOut.set(service ?? '', fields);
    if (fields.size < MOST_TOLD) fields.add(printable(field));
  }

  /** Throws an error with all findings that prevent the stack. */
  settle(elevated: boolean): void {
    const invalid = this.#all.filter(({ kind }) => kind === 'invalid');
    const boundary = elevated ? [] : this.#all.filter(({ kind }) => kind === 'boundary');
    if (invalid.length > 0) throw new StackRefusal('SBX_COMPOSE_INVALID', [...invalid, ...boundary]);
    if (boundary.length > 0) throw new StackRefusal('SBX_COMPOSE_REFUSED', boundary);
  }
}

/** Formats `web: privileged: It has all rights on the host.` */
function told({ service, field, detail }: Finding): string {
  return `${service === null ? '' : `${service}: `}${field === '' ? '' : `${field}: `}${detail}`;
}

/** Returns the path in the request or the stack: `services.web.privileged`, `inputs.compose_files`. */
function placeOf({ service, field }: Finding): string {
  return service === null ? field || 'compose' : ['services', service, field].filter(Boolean).join('.');
}

/** Refusal of a stack, with all findings that prevent it. */
export class StackRefusal extends SandboxerError {
  readonly findings: readonly Finding[];

  constructor(code: ErrorCode, findings: readonly Finding[]) {
    const [first] = findings as [Finding, ...Finding[]];
    const more = findings.length > 1 ? ` (and ${findings.length - 1} more)` : '';
    super(code, `${told(first)}${more}`, {
      creation: 'not_created',
      backend: 'ext.compose-ssh',
      remedy: first.remedy,
      field: placeOf(first),
      issues: findings.slice(0, MOST_ISSUES).map((finding) => ({
        field: placeOf(finding),
        problem: finding.detail,
        remedy: finding.remedy,
        kind: finding.kind,
        service: finding.service,
      })),
    });
    this.findings = findings;
  }
}

/** Returns an error that ends the reading at once, for input whose rest would make no sense. */
export function invalidStack(field: string, detail: string, remedy: string, service: string | null = null) {
  const finding = { service, field: printable(field), detail: printable(detail), remedy };
  return new StackRefusal('SBX_COMPOSE_INVALID', [{ kind: 'invalid', ...finding }]);
}
