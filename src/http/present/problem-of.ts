import type { z } from 'zod';
import type { ErrorCode, ErrorIssue } from '../../contract/errors/errors.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { nearestNames } from '../../core/recipe/nearest-names.ts';

const MOST_ISSUES = 20;
const MOST_CHARACTERS = 300;
const MOST_QUOTED = 60;

function fieldOf(path: readonly PropertyKey[]): string {
  return path.map(String).join('.').slice(0, MOST_CHARACTERS);
}

/** Returns the issues of the branch of a union that came closest. */
function closest(branches: readonly (readonly z.core.$ZodIssue[])[]): readonly z.core.$ZodIssue[] {
  const typed = branches.find((issues) =>
    issues.every((issue) => issue.code !== 'invalid_type' || issue.path.length > 0),
  );
  return typed ?? [];
}

/** Quotes the value that was sent, where it is short enough to be shown. */
function given(input: unknown): string {
  return typeof input === 'string' && input.length <= MOST_QUOTED ? JSON.stringify(input) : 'This';
}

function noneOf(field: string, input: unknown, allowed: readonly string[]): ErrorIssue {
  const problem = `${given(input)} is not one of ${allowed.join(', ')}.`.slice(0, MOST_CHARACTERS);
  const [near] = typeof input === 'string' ? nearestNames(input, allowed, 1) : [];
  return near === undefined ? { field, problem } : { field, problem, remedy: `Did you mean "${near}"?` };
}

function issuesOf(issue: z.core.$ZodIssue, prefix: readonly PropertyKey[]): ErrorIssue[] {
  const path = [...prefix, ...issue.path];
  if (issue.code === 'unrecognized_keys') {
    return issue.keys
      .slice(0, MOST_ISSUES)
      .map((key) => ({ field: fieldOf([...path, key]), problem: 'There is no such field.' }));
  }
  if (issue.code === 'invalid_union') {
    const nested = closest(issue.errors).flatMap((inner) => issuesOf(inner, path));
    if (nested.length > 0) return nested;
  }
  if (issue.code === 'invalid_value' && issue.input !== undefined) {
    return [noneOf(fieldOf(path), issue.input, issue.values.map(String))];
  }
  return [{ field: fieldOf(path), problem: issue.message.slice(0, MOST_CHARACTERS) }];
}

/** Makes an error of a schema's issues: it names the first field and lists them all. */
export function invalidRequest(error: z.ZodError, where: 'body' | 'query' | 'path'): SandboxerError {
  const issues = error.issues
    .slice(0, MOST_ISSUES)
    .flatMap((issue) => issuesOf(issue, []))
    // A parameter that takes several is known by its name alone.
    .map((issue) => (where === 'query' ? { ...issue, field: issue.field.replace(/\.\d+$/, '') } : issue))
    .slice(0, MOST_ISSUES);
  const first: ErrorIssue = issues[0] ?? { field: '', problem: 'It is not valid.' };
  const subject = first.field === '' ? `The ${where}` : `"${first.field}" in the ${where}`;
  return new SandboxerError('SBX_INVALID_REQUEST', `${subject}: ${first.problem}`, {
    ...(first.field === '' ? {} : { field: first.field }),
    ...(first.remedy === undefined ? {} : { remedy: first.remedy }),
    issues,
  });
}

/** The errors that Fastify raises by itself, before a route is reached. */
const FRAMEWORK: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  FST_ERR_BAD_URL: ['SBX_INVALID_REQUEST', 'The path is not valid percent-encoded UTF-8.'],
  FST_ERR_MAX_PARAM_LENGTH: ['SBX_INVALID_REQUEST', 'A part of the path is too long.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['SBX_UNSUPPORTED_MEDIA', 'The Content-Type is not a media type.'],
  FST_ERR_ROUTE_MISSING_CONTENT_TYPE: ['SBX_UNSUPPORTED_MEDIA', 'The Content-Type is missing.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['SBX_INVALID_REQUEST', 'The Content-Length is not that of the body.'],
};

/** Turns whatever was thrown into an error of the catalogue. An unknown error reveals nothing to the caller. */
export function problemOf(error: unknown): SandboxerError {
  if (error instanceof SandboxerError) return error;
  const known = FRAMEWORK[(error as { code?: string } | null)?.code ?? ''];
  if (known) return new SandboxerError(known[0], known[1], { cause: error });
  return new SandboxerError('SBX_INTERNAL', 'Something failed that should not have.', { cause: error });
}
