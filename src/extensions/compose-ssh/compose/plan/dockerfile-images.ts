/**
 * Images that a Dockerfile names. A builder resolves a name of hexadecimal digits only as the beginning of an image's id, and so
 * would reach the images of other sandboxes. Each line is read by itself and as a part of the instruction it continues, and each
 * variable with every value that it ever gets: every reading of a builder is among those judged here, whatever its own rules for
 * lines are.
 */
import { readImageName } from '../shapes/image-name.ts';

const MOST_VALUES = 64;
const MOST_SHOWN = 80;
/** Arguments that builders set themselves, or leave empty. */
const PLATFORM_ARGS = ['OS', 'ARCH', 'VARIANT', 'PLATFORM'].flatMap((part) => [
  `TARGET${part}`,
  `BUILD${part}`,
]);
const FRONTEND =
  /^(?:docker\.io\/)?docker\/dockerfile(?:-upstream)?(?::[\w.-]{1,128})?(?:@sha256:[0-9a-f]{64})?$/;

type Values = Map<string, Set<string>>;

/** Returns why a Dockerfile may not name an image, or `null`. */
function fault(name: string): string | null {
  const shown = JSON.stringify(name.slice(0, MOST_SHOWN));
  if (/[\s$\\"'{}]/.test(name)) return `The image ${shown} is not understood.`;
  if (/^[0-9a-f]+$/.test(name)) return `${shown} could be the beginning of the id of an image.`;
  const read = readImageName(name);
  // A text that is no name of an image names a stage, or has no meaning.
  return 'wrong' in read && (read.isOurs || /^sha\d+:/.test(name)) ? read.wrong : null;
}

/** Returns each line by itself, and each instruction with the lines that continue it. */
function linesOf(text: string): string[] {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  const instructions = ['\\', '`'].flatMap((mark) => {
    const joined: string[] = [];
    let open = '';
    for (const line of lines) {
      if (/^\s*(?:#|$)/.test(line)) continue;
      const trimmed = line.trimEnd();
      if (trimmed.endsWith(mark)) open += trimmed.slice(0, -1);
      else {
        joined.push(open + line);
        open = '';
      }
    }
    return [...joined, open];
  });
  return [...new Set([...lines, ...instructions].map((line) => line.trim()))];
}

/** Returns every text that a builder may make of a text with variables; `null`: too many. */
function expansions(text: string, values: Values): readonly string[] | null {
  let open = [text.replaceAll(/["']/g, '')];
  for (let rounds = 0; open.some((one) => one.includes('$')); rounds += 1) {
    if (rounds > 16 || open.length > MOST_VALUES) return null;
    open = open.flatMap((one) => {
      const found = /\$(?:(\w+)|\{(\w+)(?::?([-+?])([^{}$]*))?\})/.exec(one);
      if (found === null) return [one.replaceAll('$', '\\')];
      const [whole, plain, braced = plain ?? '', operator, word = ''] = found;
      const known = [...(values.get(braced) ?? []), ''];
      const given = operator === '-' || operator === '+' ? [...known, word] : known;
      const after = one.slice(found.index + whole.length);
      return [...new Set(given)].map((value) => one.slice(0, found.index) + value + after);
    });
  }
  return open;
}

/** Returns all values that arguments get from the file or the build. */
function argumentsOf(lines: readonly string[], given: Readonly<Record<string, string>>): Values {
  const values: Values = new Map(PLATFORM_ARGS.map((name) => [name, new Set(['amd64', 'linux'])]));
  const add = (name: string, value: string) => {
    values.set(name, (values.get(name) ?? new Set()).add(value));
  };
  for (const [name, value] of Object.entries(given)) add(name, value);
  for (const line of lines) {
    const [, words] = /^(?:ONBUILD\s+)?(?:ARG|ENV)\s+(.*)$/i.exec(line) ?? [];
    for (const [, name = '', raw = ''] of (words ?? '').matchAll(/(\w+)=("[^"]*"|'[^']*'|\S*)/g)) {
      if (!line.includes('$')) add(name, raw.replaceAll(/["'\\]/g, ''));
      else for (const value of expansions(raw, values) ?? [raw]) add(name, value);
    }
  }
  return values;
}

/** Returns the images and stages that a line names, as they are written. */
function namesOf(line: string): string[] {
  const bare = line.replace(/^(?:ONBUILD\s+)+/i, '');
  const [, image] = /^FROM\s+(?:--\S+\s+)*(\S+)/i.exec(bare) ?? [];
  // The image is on the next line: that line is read as a part of this one, too.
  if (image !== undefined) return /^[\\`]$/.test(image) ? [] : [image];
  if (!/^(?:COPY|ADD|RUN)\s/i.test(bare)) return [];
  const named = [...bare.matchAll(/(?:--|[=,"'])from=("[^"]*"|'[^']*'|[^\s,]+)/g)].map(
    ([, name = '']) => name,
  );
  // A number names a stage.
  return named.filter((name) => !/^\d{1,3}$/.test(name));
}

export interface DockerfileImages {
  /** Reason why it cannot be built for a sandbox, or `null`. */
  readonly fault: string | null;
  /** Names that may be images; some are names of stages. */
  readonly names: readonly string[];
}

export function dockerfileImages(text: string, args: Readonly<Record<string, string>>): DockerfileImages {
  const lines = linesOf(text);
  const frontend = lines
    .map((line) => /^#\s*syntax\s*=\s*(\S+)/i.exec(line)?.[1])
    .find((name) => name !== undefined);
  if (frontend !== undefined && !FRONTEND.test(frontend))
    return {
      fault: `The frontend ${JSON.stringify(frontend.slice(0, MOST_SHOWN))} is not docker/dockerfile.`,
      names: [],
    };
  const values = argumentsOf(lines, args);
  const names = new Set<string>();
  for (const written of lines.flatMap(namesOf)) {
    const all = expansions(written, values);
    if (all === null)
      return {
        fault: `${JSON.stringify(written.slice(0, MOST_SHOWN))} can mean too many images.`,
        names: [],
      };
    for (const name of all) if (name !== '') names.add(name);
  }
  for (const name of names) {
    const found = fault(name);
    if (found !== null) return { fault: found, names: [] };
  }
  return { fault: null, names: [...names] };
}
