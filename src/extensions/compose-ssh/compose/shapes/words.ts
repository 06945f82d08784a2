/** Texts that a compose file may contain: names, paths, sizes, durations. Every pattern matches a text as a whole. */

import { isIP } from 'node:net';
import { posix } from 'node:path';
import { bytesOf, numberOf, textOf } from '../yaml/scalars.ts';
import type { Shape, TextRule } from './shape.ts';
import { map, numberIn, text } from './shape.ts';

/** Control, format and unassigned characters, lone surrogates, and the separators of lines and paragraphs. */
const CONTROL = /[\p{C}\p{Zl}\p{Zp}]/u;
const LONGEST_PATH = 4096;
const LONGEST_VALUE = 1_048_576;

export function hasControl(value: string): boolean {
  return CONTROL.test(value);
}

const word = (what: string, pattern: RegExp, ...examples: string[]): TextRule => ({
  what,
  pattern,
  examples,
});

export const SERVICE_NAME = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$/;
/** Names of networks, volumes, secrets and configs: they become names of the engine, and items of printed lists. */
export const SECTION_NAME = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/;

/** Any text on one line. */
export const LINE: TextRule = word('text on one line', /^[^\p{C}\p{Zl}\p{Zp}]{0,4096}$/u, 'some text');
export const line = text(LINE);

/** Text that only the program of a service reads: all characters except NUL and broken ones. */
export const freeText: Shape<string> = {
  read(value, at) {
    const given = textOf(value);
    if (given !== null && given.length <= LONGEST_VALUE && !given.includes('\0') && given.isWellFormed())
      return given;
    return at.invalid('It is not text that a program can be given.', 'Remove NUL and broken characters.');
  },
  examples: ['some text'],
};

const HOST_NAME = word('a host name', /^[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252})$/, 'box.example');
export const hostName = text(HOST_NAME);
export const hostNameRule = HOST_NAME;
export const sectionName = text(word('a name', SECTION_NAME, 'data'));
export const userName = text(word('a user', /^[\w.-]{1,64}(?::[\w.-]{1,64})?$/, '1000:1000', 'app'));
export const groupName = text(word('a group', /^[\w.-]{1,64}$/, 'staff'));
export const signal = text(word('a signal', /^(?:[A-Z][A-Z0-9]{1,8}(?:[+-]\d{1,2})?|\d{1,2})$/, 'SIGTERM'));
export const platform = text(
  word('a platform', /^[a-z0-9_]{1,32}(?:\/[a-z0-9_]{1,32}(?:\/[a-z0-9_]{1,32})?)?$/, 'linux/amd64'),
);
export const macAddress = text(
  word('a MAC address', /^(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$/, '02:42:ac:11:65:43'),
);
export const cpuSet = text(
  word('a list of processors', /^\d{1,4}(?:-\d{1,4})?(?:,\d{1,4}(?:-\d{1,4})?){0,63}$/, '0-1'),
);
export const capability = text(word('a capability', /^[A-Za-z_]{2,40}$/, 'NET_RAW'));
export const resolverOption = text(word('an option of a resolver', /^[a-z-]{2,32}(?::\d{1,4})?$/, 'ndots:1'));
export const searchDomain = text(
  word('a domain', /^(?:\.|[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}))$/, 'example.org'),
);
export const exposedPort = text(word('a port', /^\d{1,5}(?:-\d{1,5})?(?:\/(?:tcp|udp|sctp))?$/, '8080'));
export const duration = text({
  what: 'a duration',
  pattern: /^(?:0|(?:\d{1,9}(?:\.\d{1,9})?(?:ns|us|µs|ms|s|m|h|d|w)){1,8})$/,
  examples: ['1m30s'],
  remedy: 'Write it with its unit, as in "10s".',
});
export const restartPolicy = text(
  word('a restart policy', /^(?:no|always|unless-stopped|on-failure(?::\d{1,4})?)$/, 'on-failure:3'),
);
/** `service`, or `service:alias`. */
export const serviceLink = text(
  word(
    'a link to a service',
    /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,62})?$/,
    'db:database',
  ),
);
export const name = text(word('a name', /^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$/, 'thing'));

export const address: Shape<string> = {
  read(value, at) {
    const given = (textOf(value) ?? '').replace(/^\[(.*)\]$/, '$1');
    return isIP(given) !== 0 && !given.includes('%')
      ? given
      : at.invalid(`${JSON.stringify(value)} is not an address.`, 'Write an IP address.');
  },
  examples: ['192.0.2.7'],
};

/** Address of `extra_hosts`: also the engine's word for the host's address. */
export const hostAddress: Shape<string> = {
  read: (value, at) => (value === 'host-gateway' ? 'host-gateway' : address.read(value, at)),
  examples: ['192.0.2.7', 'host-gateway'],
};

export const bytes = numberIn(bytesOf, 0, 2 ** 50, '64m');
export const integer = (least: number, most: number, example: number) =>
  numberIn(
    (value) => {
      const number = numberOf(value);
      return Number.isInteger(number) ? number : null;
    },
    least,
    most,
    example,
  );

/** Resolves `/a/./b/../c` to `/a/c`; `null` for a text that is no absolute path of printable characters, or the root itself. */
export function insidePath(value: string): string | null {
  if (!value.startsWith('/') || hasControl(value) || value.length > LONGEST_PATH) return null;
  const path = posix.normalize(value).replace(/^\/+|\/+$/g, '');
  return path === '' ? null : `/${path}`;
}

/** A path in the container, resolved. */
const containerPath: Shape<string> = {
  read(value, at) {
    const path = insidePath(textOf(value) ?? '');
    return (
      path ?? at.invalid(`${JSON.stringify(value)} is not an absolute path below "/".`, 'Write "/path".')
    );
  },
  examples: ['/srv/data'],
};

export const workingDirectory: Shape<string> = {
  read: (value, at) => (/^\/+$/.test(textOf(value) ?? '') ? '/' : containerPath.read(value, at)),
  examples: ['/srv/data'],
};

const VARIABLE: TextRule = word('a name of a variable', /^[^\s=\p{C}"'$`\\]{1,256}$/u, 'NAME');
export const variables = map(VARIABLE, freeText);
export const variableRule = VARIABLE;

/** Names of the parts that are added to every stack. */
export const RESERVED_NAME = /^sandboxer-/i;
