import { stringify } from 'yaml';

/** Characters that YAML readers take for line ends, or refuse. */
const UNSAFE = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** Writes every key and text in double quotes on one line, nothing shared: no reader takes a value for another. */
export function writeQuotedYaml(value: unknown): string {
  const text = stringify(value, {
    defaultStringType: 'QUOTE_DOUBLE',
    defaultKeyType: 'QUOTE_DOUBLE',
    doubleQuotedAsJSON: true,
    doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER,
    lineWidth: 0,
    aliasDuplicateObjects: false,
  });
  return text.replaceAll(UNSAFE, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
