import { TRANSITIONS } from '../../src/core/lifecycle/lifecycle.ts';
import type { Generator } from './generator.ts';
import { page, table } from './generator.ts';

export const lifecyclePage: Generator = {
  file: 'docs/reference/lifecycle.md',
  render: () =>
    page(
      'src/core/lifecycle/lifecycle.ts',
      '# Lifecycle',
      'Nothing moves a sandbox except along one of these arrows. Each move, its effect on money and its event are one transaction.',
      [
        '```mermaid',
        'stateDiagram-v2',
        '  [*] --> requested',
        ...arrows(),
        '  destroyed --> [*]',
        '```',
      ].join('\n'),
      table(
        ['From', 'To', 'By'],
        TRANSITIONS.map(({ from, to, by }) => [`\`${from}\``, `\`${to}\``, by]),
      ),
    ),
};

/** A colon would end the label of an arrow. */
function arrows(): string[] {
  return TRANSITIONS.map(({ from, to, by }) => `  ${from} --> ${to}: ${by.replaceAll(':', ' –')}`);
}
