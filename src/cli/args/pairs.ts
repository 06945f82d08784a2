import { UsageError } from '../failures/usage-error.ts';

export type Pairs = Readonly<Record<string, string>>;

/** Parses `KEY=VALUE`; may be repeated. */
export function pairs(what: string): (text: string, before: Pairs | undefined) => Pairs {
  return (text, before) => {
    const equals = text.indexOf('=');
    if (equals < 1) throw new UsageError(`"${text}" is no ${what}.`, `Write ${what}s as KEY=VALUE.`);
    return { ...before, [text.slice(0, equals)]: text.slice(equals + 1) };
  };
}

/** Parses `KEY=VALUE`, or `KEY` for the value of this process. */
export function variables(text: string, before: Pairs | undefined): Pairs {
  if (text.includes('=')) return pairs('variable')(text, before);
  const value = process.env[text];
  if (value === undefined) throw new UsageError(`The variable ${text} is not set here.`, 'Write KEY=VALUE.');
  return { ...before, [text]: value };
}

export function list(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), text];
}
