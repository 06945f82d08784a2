import type { StackModel } from '../model/stack-model.ts';
import { readImageName } from '../shapes/image-name.ts';
import type { TreeView } from '../tree/tree-view.ts';
import { realInTree } from '../tree/tree-view.ts';
import type { Findings } from '../yaml/finding.ts';
import { dockerfileImages } from './dockerfile-images.ts';

/** File names that a builder tries when a build names none. */
const DEFAULT_NAMES = ['Dockerfile', 'dockerfile'];
const REMEDY = 'Name images with a tag, and stages by words that are no hexadecimal numbers.';
const LINK = 'Replace the link by a file of the repository.';

/** Judges the images that Dockerfiles name, and returns those that a builder may take from the host. */
export async function judgeBuilds(
  { services }: StackModel,
  tree: TreeView,
  findings: Findings,
): Promise<readonly string[]> {
  const images = new Set<string>();
  for (const { name, build } of services.values()) {
    if (build === null || 'outside' in build.context) continue;
    const { context, dockerfile, fields } = build;
    const below = (file: string) => (context.inside === '' ? file : `${context.inside}/${file}`);
    const own = dockerfile === null ? DEFAULT_NAMES.map(below) : [];
    const files = dockerfile !== null && 'inside' in dockerfile ? [dockerfile.inside] : own;
    const texts: string[] = fields.dockerfile_inline === undefined ? [] : [fields.dockerfile_inline];
    for (const file of files) {
      const real = realInTree(tree, file);
      if (real !== null) texts.push((await tree.read(real)) ?? '');
      else findings.boundary(name, 'build', `${file} leads out of the shipped tree by a link.`, LINK);
    }
    for (const text of texts) {
      const { fault, names } = dockerfileImages(text, fields.args ?? {});
      if (fault !== null) findings.boundary(name, 'build.dockerfile', fault, REMEDY);
      for (const image of names) if ('image' in readImageName(image)) images.add(image);
    }
  }
  return [...images];
}
