import { errorsPage } from './errors-page.ts';
import type { Generator } from './generator.ts';
import { lifecyclePage } from './lifecycle-page.ts';
import { profilePage } from './profile-page.ts';
import { profileSchema } from './profile-schema.ts';

/** The one list: whatever is here is written by `npm run generate` and checked by `npm run generate:check`. */
export const allGenerators: readonly Generator[] = [profileSchema, profilePage, errorsPage, lifecyclePage];
