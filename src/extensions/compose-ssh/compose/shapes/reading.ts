import type { Findings } from '../yaml/finding.ts';

/** The place in a compose file that is being read, with the list for findings about it. */
export class Reading {
  readonly findings: Findings;
  readonly service: string | null;
  readonly field: string;

  constructor(findings: Findings, service: string | null, field: string) {
    this.findings = findings;
    this.service = service;
    this.field = field;
  }

  below(key: string): Reading {
    return new Reading(this.findings, this.service, this.field === '' ? key : `${this.field}.${key}`);
  }

  invalid(detail: string, remedy: string): undefined {
    this.findings.invalid(this.service, this.field, detail, remedy);
  }

  boundary(detail: string, remedy = 'Remove it.'): undefined {
    this.findings.boundary(this.service, this.field, detail, remedy);
  }

  /** Notes that the emitted file does not have this field. */
  leaveOut(): undefined {
    this.findings.leaveOut(this.service, this.field);
  }
}
