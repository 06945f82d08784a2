import { describe, expect, it } from 'vitest';
import { sampleRecipe } from '../../tests/support/route-samples.ts';
import { expectedUse } from './expected-use.ts';
import { UseBook } from './learned-use.ts';

function lived(lives: readonly number[], workspaceId = 'w'): UseBook {
  const book = new UseBook();
  for (const [n, seconds] of lives.entries())
    book.observe({ id: `m${n}`, workspaceId, profileId: 'profile.test', seconds });
  return book;
}

describe('how long sandboxes of a profile live', () => {
  it('is not said of few, and is the mean of many', () => {
    expect(lived([60, 60, 60, 60, 60, 60, 60]).learned('w', 'profile.test')).toBeNull();
    const ten = lived([10, 10, 10, 10, 10, 10, 10, 10, 10, 910]);
    expect(ten.learned('w', 'profile.test')).toEqual({ seconds: 100, samples: 10 });
  });

  it('counts a life once, and forgets old ones', () => {
    const book = lived(Array(300).fill(5));
    book.observe({ id: 'm299', workspaceId: 'w', profileId: 'profile.test', seconds: 5 });
    expect(book.learned('w', 'profile.test')).toEqual({ seconds: 5, samples: 100 });
  });

  it('tells one workspace nothing of another', () => {
    expect(lived(Array(20).fill(5), 'other').learned('w', 'profile.test')).toBeNull();
  });
});

describe('the use that is expected', () => {
  const learned = { seconds: 120, samples: 40 };

  it('is what the request says, then what was learned, then the whole ttl', () => {
    const told = sampleRecipe({ route: { expect: { duration: 30, cpu_utilisation: 0.5 } } });
    expect(expectedUse(told, learned)).toMatchObject({
      seconds: 30,
      cpuUtilisation: 0.5,
      evidence: { seconds_from: 'request', cpu_from: 'request' },
    });
    expect(expectedUse(sampleRecipe(), learned)).toMatchObject({
      seconds: 120,
      evidence: { seconds_from: 'learned', cpu_from: 'assumed', samples: 40 },
    });
    expect(expectedUse(sampleRecipe())).toMatchObject({
      seconds: 3600,
      evidence: { seconds_from: 'ttl', samples: 0 },
    });
  });

  it('never lasts longer than it may', () => {
    expect(expectedUse(sampleRecipe(), { seconds: 99_999, samples: 40 }).seconds).toBe(3600);
  });
});
