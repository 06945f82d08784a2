import { afterEach, describe, expect, it, vi } from 'vitest';
import { SandboxerApiError } from '../../client/transport/api-error.ts';
import { SandboxerConnectionError } from '../../client/transport/connection-error.ts';
import type { ErrorCode } from '../../contract/errors/errors.ts';
import { ERRORS, SandboxerError, toProblem } from '../../contract/errors/errors.ts';
import { CommandFailure } from '../failures/command-failure.ts';
import { EXIT, exitCodeOf } from '../failures/exit-code.ts';
import { UsageError } from '../failures/usage-error.ts';
import { printError } from './print-error.ts';
import { Printer } from './printer.ts';

const PRINTER = new Printer({ json: false, quiet: false, color: false });

function printed(error: unknown, printer = PRINTER): string {
  let text = '';
  const take = (part: string | Uint8Array) => {
    text += part;
    return true;
  };
  vi.spyOn(process.stderr, 'write').mockImplementation(take);
  vi.spyOn(process.stdout, 'write').mockImplementation(take);
  printError(error, printer);
  return text;
}

function apiError(code: ErrorCode, members = {}): SandboxerApiError {
  return new SandboxerApiError(toProblem(new SandboxerError(code, 'It went wrong.', { members }), 'req_1'));
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe('printError', () => {
  it('printError names the words of the command line, not fields of the request', () => {
    const refused = (detail: string) =>
      printed(new SandboxerApiError(toProblem(new SandboxerError('SBX_INVALID_REQUEST', detail), 'req_1')));
    expect(refused('"key_id" in the path: A key id looks like "key_…".')).toBe(
      'error: A key id looks like "key_…".\n├▶ SBX_INVALID_REQUEST (request req_1)\n╰▶ Correct it and run the command again.\n',
    );
    expect(refused('"ttl" in the body: It is too long.')).toContain('error: "ttl": It is too long.\n');
  });

  it('printError prints the message, the code and the remedy', () => {
    expect(printed(apiError('SBX_NOT_FOUND'))).toBe(
      'error: It went wrong.\n├▶ SBX_NOT_FOUND (request req_1)\n╰▶ List the resources to see what exists.\n',
    );
    expect(printed(new UsageError('No such flag.', 'Did you mean --json?'))).toBe(
      'error: No such flag.\n├▶ SBX_CLI_USAGE\n╰▶ Did you mean --json?\n',
    );
    expect(printed(new SandboxerConnectionError('unreachable', 'Nobody.', false))).toContain(
      'SBX_CLI_UNREACHABLE',
    );
    expect(printed(new Error('Strange.'))).toBe(
      'error: Strange.\n├▶ SBX_CLI_FAILED\n╰▶ If it happens again, report it with what sandboxer doctor says.\n',
    );
    expect(printed(new SandboxerError('SBX_STORE_BUSY', 'Locked.'))).toContain('SBX_STORE_BUSY');
  });

  it('printError lists candidates and issues', () => {
    const candidates = [{ extension: 'ext.local', excluded_by: [{ code: 'gpu', detail: 'has no GPU' }] }];
    expect(printed(apiError('SBX_NO_ROUTE', { candidates }))).toContain('├▶ ext.local: has no GPU\n');
    const issues = [{ file: 'p.yaml', line: 3, field: 'ttl', problem: 'Not a duration.' }];
    expect(printed(apiError('SBX_PROFILE_INVALID', { issues }))).toContain(
      '├▶ p.yaml:3: ttl: Not a duration.\n',
    );
  });

  it('printError is JSON when asked, and lets no text steer the terminal', () => {
    const json = new Printer({ json: true, quiet: false, color: false });
    expect(JSON.parse(printed(apiError('SBX_GONE'), json))).toMatchObject({
      error: { code: 'SBX_GONE', status: 410, request_id: 'req_1' },
    });
    expect(printed(new Error('a\x1b[2Jb'))).not.toContain('\x1b');
  });
});

describe('exitCodeOf', () => {
  it('exitCodeOf follows SPEC §13', () => {
    const codes = Object.fromEntries(
      (Object.keys(ERRORS) as ErrorCode[]).map((code) => [code, exitCodeOf(apiError(code), false)]),
    );
    expect(codes).toMatchObject({
      SBX_INVALID_REQUEST: EXIT.usage,
      SBX_NOT_FOUND: EXIT.notFound,
      SBX_PROFILE_NOT_FOUND: EXIT.notFound,
      SBX_PATH_NOT_FOUND: EXIT.notFound,
      SBX_GONE: EXIT.notFound,
      SBX_UNAUTHENTICATED: EXIT.refused,
      SBX_INSUFFICIENT_CREDITS: EXIT.refused,
      SBX_NO_ROUTE: EXIT.refused,
      SBX_QUOTA_EXCEEDED: EXIT.refused,
      SBX_EXTENSION_FAILED: EXIT.backend,
      SBX_PROVISION_FAILED: EXIT.backend,
      SBX_BACKEND_QUOTA: EXIT.backend,
      SBX_INTERNAL: EXIT.failed,
      SBX_UNAVAILABLE: EXIT.failed,
      SBX_TIMEOUT: EXIT.failed,
    });
    expect(exitCodeOf(new UsageError('x'), false)).toBe(2);
    expect(exitCodeOf(new CommandFailure('x', { code: 'c', remedy: 'r', exitCode: 4 }), false)).toBe(4);
    expect(exitCodeOf(new Error('x'), false)).toBe(1);
    expect(exitCodeOf(new UsageError('x'), true)).toBe(125);
  });
});
