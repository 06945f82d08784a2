import { describe, expect, it } from 'vitest';
import { dockerfileImages } from './dockerfile-images.ts';

const fault = (text: string, args: Record<string, string> = {}) => dockerfileImages(text, args).fault;
const ID = '998f3';
const WHOLE = 'ab'.repeat(32);

describe('compose: images that a Dockerfile names', () => {
  it.each([
    ['FROM', `FROM ${ID}`],
    ['FROM with a platform and a stage', `FROM --platform=linux/amd64 ${ID} AS app`],
    ['a whole id', `FROM ${WHOLE}`],
    ['an id with its algorithm', `FROM sha256:${ID}`],
    ['a name of another sandbox', 'FROM sandboxer-sbx0123456789abcdef0123-web'],
    ['the same with a registry', 'FROM docker.io/library/sandboxer-snapshot-0123-web:latest'],
    ['COPY', `FROM redis\nCOPY --from=${ID} / /x`],
    ['COPY with other flags', `FROM redis\nCOPY --chown=1:1 --from=${ID} / /x`],
    ['COPY, quoted', `FROM redis\nCOPY --from="${ID}" / /x`],
    ['a number that is no stage', 'FROM redis\nCOPY --from=98712 / /x'],
    ['a mount of RUN', `FROM redis\nRUN --mount=type=bind,from=${ID},target=/x ls`],
    ['a mount that begins with from', `FROM redis\nRUN --mount=from=${ID},target=/x ls`],
    ['ONBUILD', `FROM redis\nONBUILD COPY --from=${ID} / /x`],
    ['lower case', `from ${ID}`],
    ['blanks before it', `  \t FROM   ${ID}`],
    ['a byte order mark', `\uFEFFFROM ${ID}`],
    ['a line that goes on', `FROM \\\n${ID}`],
    ['a line that goes on, with a comment between', `FROM \\\n# redis\n\n ${ID}`],
    ['a word over two lines', `FROM 998\\\nf3`],
    ['another escape', `# escape=\`\nFROM \`\n${ID}`],
    ['behind a line that seems to go on', `# escape=\`\nRUN dir c:\\\nFROM ${ID}`],
    ['an argument', `ARG BASE=${ID}\nFROM $BASE`],
    ['a quoted argument', `ARG BASE="${ID}"\nFROM "\${BASE}"`],
    ['an argument of two parts', 'ARG A=998\nARG B=${A}f3\nFROM ${B}'],
    ['an argument beside text', 'ARG A=f3\nFROM 998$A'],
    ['an argument without a value', 'ARG A\nFROM 998f3$A'],
    ['the default of an argument', 'FROM ${NONE:-998f3}'],
    ['the default of an argument, without a colon', 'FROM ${NONE-998f3}'],
    ['what stands where an argument is set', 'ARG A=x\nFROM ${A:+998f3}'],
    ['the later of two values', `ARG A=redis\nARG A=${ID}\nFROM $A`],
    ['a stage with the name of an id', `FROM redis AS ${ID}\nFROM ${ID}`],
    ['a platform that is not there', 'FROM 998f3$TARGETARCH'],
    ['an operator that is not understood', 'ARG A=998f3x\nFROM ${A%x}'],
    ['a backslash', 'FROM 99\\8f3'],
    ['another frontend', '# syntax=evil.example/frontend\nFROM redis'],
  ])('compose: an image by its id, or of another sandbox, is refused: %s', (_what, text) => {
    expect(fault(text)).not.toBeNull();
  });

  it('compose: an argument of the build is judged', () => {
    expect(fault('ARG BASE=redis\nFROM $BASE', { BASE: ID })).not.toBeNull();
    expect(fault('ARG BASE=redis\nFROM $BASE', { BASE: 'alpine:3.20' })).toBeNull();
  });

  it.each([
    'FROM redis',
    'FROM scratch\nCOPY app /app',
    'FROM node:22 AS build\nRUN npm ci\nFROM nginx:1.27\nCOPY --from=build /app /usr/share/nginx/html',
    'FROM golang:1.23 AS Builder\nFROM scratch\nCOPY --from=0 /app /app',
    'ARG VERSION=22\nFROM node:${VERSION}-alpine',
    'ARG REGISTRY\nFROM ${REGISTRY}node:22',
    'FROM --platform=$BUILDPLATFORM golang:1.23 AS base-amd64\nFROM base-$TARGETARCH',
    '# syntax=docker/dockerfile:1.7-labs\nFROM redis\nRUN --mount=type=cache,target=/root/.npm npm ci',
    'FROM redis\nRUN sed -e "s/from=a/x/" /etc/passwd && echo $PATH ${HOME%/} \\\n  && true',
    'FROM cafe:latest',
    `FROM registry.example:5000/team/cafe@sha256:${WHOLE}`,
    '',
  ])('compose: an honest Dockerfile is accepted: %j', (text) => {
    expect(fault(text)).toBeNull();
  });

  it('compose: a Dockerfile with many variables is judged in bounded time', () => {
    const args = Array.from({ length: 2_000 }, (_, n) => `ARG A=${'$A$B'.repeat(20)}${n}\nARG B=$A${n}`);
    const start = performance.now();
    dockerfileImages(`${args.join('\n')}\nFROM $A$B$A$B`, {});
    expect(performance.now() - start).toBeLessThan(2_000);
  });
});
