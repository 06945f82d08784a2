import { apiHtml } from './api-html.ts';
import { apiPage } from './api-page.ts';
import { architecturePage } from './architecture-page.ts';
import { attemptsPage, attemptsSummary } from './attempts-pages.ts';
import { cliPage } from './cli-page.ts';
import { configPage } from './config-page.ts';
import { errorsPage } from './errors-page.ts';
import type { Generator } from './generator.ts';
import { lifecyclePage } from './lifecycle-page.ts';
import { openApiJson } from './openapi-json.ts';
import { profilePage } from './profile-page.ts';
import { profileSchema } from './profile-schema.ts';
import { capabilityEntry, capabilityIndex, extensionEntries } from './registry-entries.ts';

/** List of all generators: `npm run generate` writes each, and `npm run generate:check` checks it. */
export const allGenerators: readonly Generator[] = [
  profileSchema,
  profilePage,
  errorsPage,
  lifecyclePage,
  cliPage,
  configPage,
  openApiJson,
  apiPage,
  apiHtml,
  attemptsPage,
  attemptsSummary,
  architecturePage,
  capabilityEntry,
  capabilityIndex,
  ...extensionEntries,
];
