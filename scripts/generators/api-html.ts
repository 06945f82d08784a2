import type { Generator } from './generator.ts';
import type { ApiResponse, ListedOperation, Media } from './openapi-json.ts';
import { apiDocument, operationsOf, scopeText } from './openapi-json.ts';
import type { Schema } from './schema-text.ts';
import { defaultText, fieldsOf, kindOf } from './schema-text.ts';

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --link: light-dark(#0550ae, #79b8ff) }
* { box-sizing: border-box }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; display: grid; grid-template-columns: 19rem minmax(0, 1fr) }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1rem; border-right: 1px solid var(--line) }
nav input { width: 100%; font: inherit; padding: .4rem .6rem; border: 1px solid var(--line); border-radius: 6px }
nav h2 { font-size: .8rem; text-transform: uppercase; letter-spacing: .05em; margin: 1.2rem 0 .3rem; opacity: .7 }
nav a { display: block; font-size: .85rem; text-decoration: none; padding: .1rem 0; overflow-wrap: anywhere }
main { padding: 1.5rem 2.5rem 6rem; max-width: 64rem }
a { color: var(--link) }
code { font: .9em ui-monospace, monospace; background: var(--soft); padding: .1em .3em; border-radius: 4px }
article { border-top: 1px solid var(--line); padding: 1rem 0; scroll-margin-top: 1rem }
article h3 { margin: 0 0 .3rem; font: 600 1rem ui-monospace, monospace; overflow-wrap: anywhere }
article h3 b { display: inline-block; min-width: 4.2rem }
.meta { opacity: .75; font-size: .85rem }
.table { overflow-x: auto }
table { border-collapse: collapse; width: 100%; margin: .7rem 0; font-size: .88rem }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line) }
th { font-weight: 600; opacity: .75 }
[hidden] { display: none }
@media (max-width: 50rem) { body { display: block } nav { position: static; height: auto; border: 0 } main { padding: 1rem } }
`;

/** Hides entries that lack one of the typed words. */
const SCRIPT = `
const field = document.querySelector('#find');
const entries = [...document.querySelectorAll('[data-text]')];
field.addEventListener('input', () => {
  const words = field.value.toLowerCase().split(/\\s+/).filter(Boolean);
  for (const entry of entries) entry.hidden = !words.every((word) => entry.dataset.text.includes(word));
});
`;

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Formats text with \`code\` in it. */
function prose(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? `<code>${escaped(part.slice(1, -1))}</code>` : escaped(part)))
    .join('');
}

const MARK = '\u0001';

/** Links are set apart first, since all other text is escaped. */
function kind(schema: Schema): string {
  const text = kindOf(schema, (name) => `${MARK}${name}${MARK}`);
  return text
    .split(MARK)
    .map((part, index) => (index % 2 === 1 ? `<a href="#schema-${part}">${part}</a>` : prose(part)))
    .join('');
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const head = header.map((text) => `<th>${text}</th>`).join('');
  const lines = rows.map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join('')}</tr>`);
  return `<div class="table"><table><thead><tr>${head}</tr></thead><tbody>\n${lines.join('\n')}\n</tbody></table></div>`;
}

function media(content: Readonly<Record<string, Media>>): string {
  return Object.entries(content)
    .map(([type, { schema }]) => `${schema ? kind(schema) : 'bytes'} as <code>${escaped(type)}</code>`)
    .join('<br>');
}

function parameters({ parameters: list = [] }: ListedOperation): string {
  return table(
    ['Parameter', 'Where', 'Value', 'Default', 'Meaning'],
    list.map(({ name, in: place, required, description = '', schema }) => [
      `<code>${escaped(name)}</code>`,
      place + (required ? ', required' : ''),
      kind(schema),
      prose(defaultText(schema.default)),
      prose(description),
    ]),
  );
}

function answers(responses: Readonly<Record<string, ApiResponse>>): string {
  const declared = Object.entries(responses).filter(([, { $ref }]) => $ref === undefined);
  return table(
    ['Answer', 'Body', 'Meaning'],
    declared.map(([status, { description = '', content = {} }]) => [
      status,
      media(content),
      prose(description),
    ]),
  );
}

function operation(entry: ListedOperation): string {
  const { method, url, operationId, summary, requestBody } = entry;
  const text = escaped(`${method} ${url} ${operationId} ${summary}`.toLowerCase());
  const socket = entry['x-websocket'] ? ' · WebSocket' : '';
  const body = requestBody
    ? `<p>Body${requestBody.required ? '' : ' (optional)'}: ${media(requestBody.content)}</p>`
    : '';
  return [
    `<article id="${operationId}" data-text="${text}">`,
    `<h3><b>${method}</b>${escaped(url)}</h3>`,
    `<p>${prose(summary)}</p>`,
    `<p class="meta">${operationId} · ${prose(scopeText(entry))}${socket}</p>`,
    parameters(entry),
    body,
    answers(entry.responses),
    '</article>',
  ]
    .filter(Boolean)
    .join('\n');
}

function schemaSection(name: string, schema: Schema): string {
  const fields = fieldsOf(schema);
  const content =
    fields.length === 0
      ? `<p>${kind(schema)}</p>`
      : table(
          ['Field', 'Value', 'Always', 'Default', 'Meaning'],
          fields.map((field) => [
            `<code>${escaped(field.path)}</code>`,
            kind(field.schema),
            field.required ? 'yes' : '',
            prose(defaultText(field.schema.default)),
            prose(field.schema.description ?? ''),
          ]),
        );
  const text = escaped(`schema ${name.toLowerCase()}`);
  return `<article id="schema-${name}" data-text="${text}">\n<h3>${name}</h3>\n${content}\n</article>`;
}

export const apiHtml: Generator = {
  file: 'docs/reference/api.html',
  render: () => {
    const document = apiDocument();
    const byTag = document.tags.map(({ name }) => ({ name, operations: operationsOf(document, name) }));
    const menu = byTag.map(({ name, operations }) => {
      const links = operations.map(
        ({ method, url, operationId, summary }) =>
          `<a href="#${operationId}" data-text="${escaped(`${method} ${url} ${operationId} ${summary}`.toLowerCase())}">${method} ${escaped(url)}</a>`,
      );
      return `<h2>${name}</h2>\n${links.join('\n')}`;
    });
    return `<!doctype html>
<!-- Written by \`npm run generate\` from src/http/server/route-table.ts. Do not edit. -->
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>sand-boxer ${document.info.version}: HTTP API</title>
<style>${STYLE}</style>
</head>
<body>
<nav>
<input id="find" type="search" placeholder="Find" aria-label="Find a request or a schema" autofocus>
${menu.join('\n')}
</nav>
<main>
<h1>sand-boxer ${document.info.version}: HTTP API</h1>
<p>${prose(document.info.description)}</p>
<p>On the unix socket a caller needs no key. On TCP a request carries <code>Authorization: Bearer &lt;key&gt;</code> with a key that has the named scope. A duration is text such as <code>2h</code> or a number of seconds; a size is text such as <code>2GiB</code> or a number of megabytes.</p>
${byTag.map(({ name, operations }) => `<section>\n<h2>${name}</h2>\n${operations.map(operation).join('\n')}\n</section>`).join('\n')}
<section>
<h2>Schemas</h2>
${Object.entries(document.components.schemas)
  .map(([name, schema]) => schemaSection(name, schema))
  .join('\n')}
</section>
</main>
<script>${SCRIPT}</script>
</body>
</html>
`;
  },
};
