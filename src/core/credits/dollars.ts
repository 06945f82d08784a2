/** `$1.50`, and as many digits as a small amount needs. */
export function dollars(microUsd: number): string {
  const [whole = '0', micros = ''] = (Math.abs(microUsd) / 1_000_000).toFixed(6).split('.');
  return `${microUsd < 0 ? '-' : ''}$${whole}.${micros.replace(/0+$/, '').padEnd(2, '0')}`;
}
