const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

export function byteText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < BYTE_UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${BYTE_UNITS[unit]}`;
}

/** Formats `$1.50`, with as many digits as a small amount needs. */
export function moneyText(microUsd: number): string {
  const sign = microUsd < 0 ? '-' : '';
  const [whole = '0', micros = '000000'] = (Math.abs(microUsd) / 1_000_000).toFixed(6).split('.');
  const cents = micros.replace(/0+$/, '').padEnd(2, '0');
  return `${sign}$${whole}.${cents}`;
}
