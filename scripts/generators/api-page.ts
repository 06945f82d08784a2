import type { Generator } from './generator.ts';
import { page, table } from './generator.ts';
import type { ApiDocument, ApiResponse, ListedOperation, Media } from './openapi-json.ts';
import { apiDocument, operationsOf, scopeText } from './openapi-json.ts';
import type { Schema } from './schema-text.ts';
import { defaultText, fieldsOf, kindOf } from './schema-text.ts';

const PLACES = { path: 'in the path', query: 'query', header: 'header' } as const;

function link(name: string): string {
  return `[${name}](#${anchorOf(name)})`;
}

function anchorOf(name: string): string {
  return `schema-${name.toLowerCase()}`;
}

function parameters({ parameters: list = [] }: ListedOperation): string[] {
  if (list.length === 0) return [];
  const rows = list.map(({ name, in: place, required, description = '', schema }) => [
    `\`${name}\``,
    PLACES[place] + (required && place !== 'path' ? ', required' : ''),
    kindOf(schema, link),
    defaultText(schema.default),
    description,
  ]);
  return [table(['Parameter', 'Where', 'Value', 'Default', 'Meaning'], rows)];
}

function mediaText(content: Readonly<Record<string, Media>>): string {
  return Object.entries(content)
    .map(([type, { schema }]) => `${schema ? kindOf(schema, link) : 'bytes'} as \`${type}\``)
    .join(', or ');
}

function body({ requestBody }: ListedOperation): string[] {
  if (!requestBody) return [];
  const { required, description, content } = requestBody;
  const note = description ? ` ${description}` : '';
  return [`**Body**${required ? '' : ' (optional)'}: ${mediaText(content)}.${note}`];
}

function answerRow([status, response]: readonly [string, ApiResponse]): string[] {
  const { description = '', content = {}, headers = {} } = response;
  const names = Object.keys(headers).map((name) => `\`${name}\``);
  const told = names.length > 0 ? `${description} Header ${names.join(', ')}.` : description;
  return [status, Object.keys(content).length === 0 ? '–' : mediaText(content), told];
}

function operation(entry: ListedOperation): string[] {
  const answers = Object.entries(entry.responses).filter(([, { $ref }]) => $ref === undefined);
  const socket = entry['x-websocket'] ? ' Served as a WebSocket.' : '';
  return [
    `### \`${entry.method} ${entry.url}\``,
    `${entry.summary}${socket}`,
    `*${entry.operationId}* · ${scopeText(entry)}`,
    ...parameters(entry),
    ...body(entry),
    table(['Answer', 'Body', 'Meaning'], answers.map(answerRow)),
  ];
}

function schemaSection(name: string, schema: Schema): string[] {
  const fields = fieldsOf(schema);
  const heading = `### <a id="${anchorOf(name)}"></a>${name}`;
  const told = schema.description ? [schema.description] : [];
  if (fields.length === 0) return [heading, ...told, kindOf(schema, link)];
  const rows = fields.map((field) => [
    `\`${field.path}\``,
    kindOf(field.schema, link),
    field.required ? 'yes' : '',
    defaultText(field.schema.default),
    field.schema.description ?? '',
  ]);
  return [heading, ...told, table(['Field', 'Value', 'Always', 'Default', 'Meaning'], rows)];
}

function contents(document: ApiDocument): string {
  const rows = document.tags.flatMap(({ name }) =>
    operationsOf(document, name).map(({ method, url, summary, ...entry }) => [
      name,
      `\`${method} ${url}\``,
      scopeText(entry as ListedOperation),
      summary,
    ]),
  );
  return table(['Resource', 'Request', 'Needs', 'What'], rows);
}

export const apiPage: Generator = {
  file: 'docs/reference/api.md',
  render: () => {
    const document = apiDocument();
    return page(
      'src/http/server/route-table.ts',
      '# HTTP API',
      'The server describes itself at `/v1/openapi.json`; the same document is [openapi.json](openapi.json), and [api.html](api.html) is this page as one file to open in a browser, without a network.',
      'On the unix socket a caller needs no key and is the local administrator. On TCP every request but those marked *no key* carries `Authorization: Bearer <key>`; the scope named with each request must be among the key’s. A key with the scope `server` acts in another workspace with the header `sandboxer-workspace`. Errors are [problems](errors.md) (`application/problem+json`) and are not repeated below. *Always* marks a field that an answer always has and a request must have. A *duration* is text such as `"90s"`, `"2h"` or `"1h30m"`, or a number of seconds; a *size* is text such as `"2GiB"`, or a number of megabytes.',
      contents(document),
      ...document.tags.flatMap(({ name }) => [
        `## ${name}`,
        ...operationsOf(document, name).flatMap(operation),
      ]),
      '## Schemas',
      ...Object.entries(document.components.schemas).flatMap(([name, schema]) => schemaSection(name, schema)),
    );
  },
};
