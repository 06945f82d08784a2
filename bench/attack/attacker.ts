/** Runs one attack in a process of its own: `attacker.ts NAME`; ATTACK_TARGET names the server to attack. */
import type { Target } from './attacks.ts';
import { ATTACKS, answers } from './attacks.ts';

const attack = ATTACKS[process.argv[2] ?? ''];
if (!attack) throw new Error(`there is no attack ${process.argv[2]}`);
attack(JSON.parse(process.env.ATTACK_TARGET ?? '') as Target);
process.stdout.write('ready\n');
process.once('SIGTERM', () => {
  const told = [...answers].map(([status, times]) => `${status}×${times}`).join(' ');
  process.stdout.write(told, () => process.exit(0));
});
