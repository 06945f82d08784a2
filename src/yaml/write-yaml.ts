import { stringify } from 'yaml';

/** Every key and text in double quotes, nothing shared: no reader takes a value for another. */
export function writeQuotedYaml(value: unknown): string {
  return stringify(value, {
    defaultStringType: 'QUOTE_DOUBLE',
    defaultKeyType: 'QUOTE_DOUBLE',
    lineWidth: 0,
    aliasDuplicateObjects: false,
  });
}
