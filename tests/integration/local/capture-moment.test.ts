/** A capture is of one moment: programs that write all the while are copied as they were then, and go on. */
import { afterAll, describe, expect, it } from 'vitest';
import { LocalServer } from '../../support/local-server.ts';

const server = await LocalServer.start();
const { client } = server;
const reason = await whyNot();

/** Where nothing can be frozen, nothing stands still. */
async function whyNot(): Promise<string | null> {
  const { items } = await client.extensions.list();
  const freezes = items.find(({ id }) => id === 'ext.local')?.capabilities.pause === 'frozen';
  return (await server.whyNot()) ?? (freezes ? null : 'this machine cannot freeze');
}

/** So many files beside and between that a copy takes far longer than a round of the writer. */
const BALLAST =
  'mkdir a b c d1 d2 more; echo here > d1/token; cd more; for n in 1 2 3; do mkdir $n; (cd $n; seq 600 | split -l 1 -a 3); done';

/** Every round in this order: A, B, one line in each log, the token to its other place, a file more and one less. */
const WRITER = `
sub put { my ($path, $n) = @_; open my $f, ">", "$path.new" or die; print $f $n; close $f; rename "$path.new", $path or die }
open my $one, ">>", "b/log1" or die; open my $two, ">>", "a/log2" or die;
for (my $n = 1; ; $n++) {
  put("a/A", $n); put("b/B", $n);
  syswrite $one, "$n\\n"; syswrite $two, "$n\\n";
  my ($from, $to) = $n % 2 ? (1, 2) : (2, 1);
  rename "d$from/token", "d$to/token" or die;
  put("c/$n", $n); unlink "c/" . ($n - 40);
}`;

/** Says what is not as it can have been at any moment. */
const JUDGE = `
sub get { open my $f, "<", $_[0] or return 0; local $/; my $text = <$f>; $text }
my ($first, $second) = (get("a/A"), get("b/B"));
my ($one, $two) = map { my @lines = split /\\n/, get($_); my $n = 0; $_ == ++$n or print "$n is $_\\n" for @lines; scalar @lines } "b/log1", "a/log2";
my @kept = sort { $a <=> $b } map { m{^c/(\\d+)$} ? $1 : () } glob "c/*";
print "order: $first $second $one $two $kept[-1]\\n" unless $first >= $second && $second >= $one && $one >= $two && $two >= $kept[-1] && $kept[-1] >= $first - 1;
print "tokens: " . join(" ", glob "d?/token") . "\\n" if 1 != (() = glob "d?/token");
print "kept: @kept\\n" if $kept[-1] - $kept[0] + 1 != @kept || @kept > 41 || grep { get("c/$_") != $_ } @kept;
my @more = glob "more/*/*"; print "more: " . @more . "\\n" if @more != 1800;
print "judged $first\\n";`;

const quoted = (script: string) => `perl -e '${script}'`;

afterAll(() => server.close());

describe.skipIf(reason !== null)(`a capture of writers${reason === null ? '' : ` (${reason})`}`, () => {
  it('a capture of writers is of one moment, as a snapshot and as a fork, and they go on', async () => {
    const { sandbox_id: id } = await client.sandboxes.create({ profile: 'profile.agent-dev' });
    await server.inside(id, BALLAST);
    await client.background(id, { command: ['/bin/sh', '-c', quoted(WRITER)] });
    const reached = async () => Number(await server.inside(id, 'cat a/A 2>/dev/null || echo 0'));
    await expect.poll(reached, { timeout: 60_000 }).toBeGreaterThan(100);
    let last = 100;
    for (let round = 0; round < 2; round++) {
      const { snapshot_id } = await client.sandboxes.snapshot(id, { name: `moment-${round}` });
      const restored = (await client.snapshots.restore(snapshot_id)).sandbox_id;
      const forked = (await client.sandboxes.fork(id)).sandbox_id;
      for (const copy of [restored, forked]) {
        const said = await server.inside(copy, quoted(JUDGE));
        expect(said).toMatch(/^judged \d+\n$/);
        // Each is of a moment after the one before.
        const moment = Number(said.slice(7));
        expect(moment).toBeGreaterThan(last);
        last = moment;
        await client.sandboxes.destroy(copy);
      }
      await expect.poll(reached, { timeout: 60_000 }).toBeGreaterThan(last);
      await client.snapshots.delete(snapshot_id);
    }
    await client.sandboxes.destroy(id);
  });
});
